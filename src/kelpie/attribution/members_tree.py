"""The tree of the plan `incarnation`: which groups read from an address, one child per claim.

Below the node of an address (`addresses.address_node`):

- `<group>@<member id>@<coordinator epoch>`: a member, written by the coordinator of that epoch. Its value
  is a JSON object: `group`; `joined`, when the member came (0: before this coordinator did);
  `partitions` (topic → numbers; null while the group rebalances and any partition is possible); `since`, when
  the coordinator made this assignment; `before`, the partitions of the assignment before; `until`, when the
  member was removed; `left`, if it left by itself.
- `hint@<broker>-<life>-<number>`: some consumer of a group asked this broker for its coordinator. Its value:
  `group` and `at`, when it asked. A consumer that only assigns itself partitions has no other trace.

No name is ever used a second time by another writer, or for another claim. So a deletion that arrives late
can only remove what it means, and claims of different writers do not disturb each other.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kelpie.attribution.addresses import escaped
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

Partitions = frozenset[TopicPartition]

ASSIGNMENT_DELAY_MS = 10_000
"""So long after an assignment, a fetch may belong to the one before: a consumer reads its former partitions
until it has the answer to SyncGroup."""
CLOCK_DIFFERENCE_MS = 1_000
"""How far clocks of two brokers may differ."""
_HINT = "hint"


@dataclass(frozen=True, slots=True)
class MemberClaim:
    group: str
    epoch: int
    joined: Instant = 0
    partitions: Partitions | None = None
    """None: any partition is possible."""
    since: Instant = 0
    before: Partitions = frozenset()
    until: Instant | None = None
    has_left: bool = False
    """By itself. A member that was removed for another reason may not know it yet, and fetch on."""

    def may_have_read(self, partition: TopicPartition, at: Instant) -> bool:
        return self.is_before_removal(at) and self.may_have_had(partition, at)

    def is_before_removal(self, at: Instant) -> bool:
        return self.until is None or at <= self.until + CLOCK_DIFFERENCE_MS

    def may_have_had(self, partition: TopicPartition, at: Instant) -> bool:
        if at < self.joined - CLOCK_DIFFERENCE_MS:
            return False
        if self.partitions is None or partition in self.partitions:
            return True
        return partition in self.before and at <= self.since + ASSIGNMENT_DELAY_MS


@dataclass(frozen=True, slots=True)
class Hint:
    group: str
    at: Instant


class Claims(NamedTuple):
    """All that stands below one address, by the name of the child."""

    members: dict[str, MemberClaim]
    hints: dict[str, Hint]


def member_node(group: str, member_id: str, epoch: int) -> str:
    """With the group: since KIP-848, clients choose their member ids, and may use one in two groups."""
    return f"{escaped(group).replace('@', '%40')}@{escaped(member_id)}@{epoch}"


def hint_node(broker: int, life: int, number: int) -> str:
    return f"{_HINT}@{broker}-{life}-{number}"


def member_value(claim: MemberClaim) -> bytes:
    fields: dict[str, Any] = {
        "group": claim.group,
        "joined": claim.joined,
        "partitions": None if claim.partitions is None else _by_topic(claim.partitions),
        "since": claim.since,
    }
    if claim.before:
        fields["before"] = _by_topic(claim.before)
    if claim.until is not None:
        fields["until"] = claim.until
    if claim.has_left:
        fields["left"] = True
    return json.dumps(fields, separators=(",", ":")).encode()


def hint_value(hint: Hint) -> bytes:
    return json.dumps({"group": hint.group, "at": hint.at}, separators=(",", ":")).encode()


def read_claims(children: Mapping[str, bytes]) -> Claims:
    """From a listing. Children in another form are left out: nothing here wrote them."""
    claims = Claims({}, {})
    for name, value in children.items():
        owner, _, origin = name.rpartition("@")
        try:
            fields = json.loads(value)
            if owner == _HINT:
                claims.hints[name] = Hint(str(fields["group"]), int(fields["at"]))
            else:
                claims.members[name] = _member_claim(fields, int(origin))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return claims


def groups_of(claims: Claims, partition: TopicPartition, at: Instant) -> frozenset[str]:
    """The groups that may have read this partition from this address at this time.

    Of a group's present members, only claims of its newest coordinator count. A hint says nothing about
    partitions, so it may explain any fetch; but not if the group has a member here, whose own hint it is.

    A member that was removed without leaving may fetch on until it hears of that. If it has joined again
    since, the fetch may be its own. If not, it may be dead, and the fetch a stranger's: it explains nothing,
    but it makes other explanations uncertain.
    """
    present: dict[str, int] = {}
    for claim in claims.members.values():
        if claim.until is None:
            present[claim.group] = max(claim.epoch, present.get(claim.group, claim.epoch))
    reading: set[str] = set()
    removed: set[str] = set()
    for claim in claims.members.values():
        if claim.until is None and claim.epoch != present[claim.group]:
            continue
        if claim.may_have_read(partition, at):
            reading.add(claim.group)
        elif not claim.has_left and claim.may_have_had(partition, at):
            (reading if _joined_again(claim, claims, at) else removed).add(claim.group)
    hinted = {hint.group for hint in claims.hints.values() if at >= hint.at - CLOCK_DIFFERENCE_MS}
    explaining = reading | (hinted - present.keys())
    return frozenset(explaining | removed if explaining else ())


def _joined_again(removed: MemberClaim, claims: Claims, at: Instant) -> bool:
    """Whether the group has a member here that joined after the removal, and after the fetch."""
    assert removed.until is not None
    earliest = max(removed.until, at) - CLOCK_DIFFERENCE_MS
    return any(
        claim.group == removed.group and claim.until is None and claim.joined >= earliest
        for claim in claims.members.values()
    )


def _member_claim(fields: Any, epoch: int) -> MemberClaim:
    partitions, until = fields["partitions"], fields.get("until")
    return MemberClaim(
        str(fields["group"]),
        epoch,
        int(fields["joined"]),
        None if partitions is None else _partitions(partitions),
        int(fields["since"]),
        _partitions(fields.get("before", {})),
        None if until is None else int(until),
        fields.get("left") is True,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _partitions(by_topic: Mapping[str, Iterable[int]]) -> Partitions:
    return frozenset(
        TopicPartition(topic, int(number)) for topic, numbers in by_topic.items() for number in numbers
    )
