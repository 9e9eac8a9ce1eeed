"""KLP212 two-applications-in-one-group

What it sees: members of one group that subscribe to different topics, run on different
machines and have different client ids: two applications use the same group.id.

Why it matters: each restart, slow poll or crash of one application stops the other one
for a rebalance. Offsets, resets and deletions concern both. Somebody who looks at the
lag of the group sees two things at once.

How it decides: the members fall into parts that have no subscribed topic in common, and
each part has other hosts, or other client ids once numbers and random ends are taken
off. Two surveys at least 6 min apart must show it, so that a deployment that changes
the subscription does not count. If hosts and client ids both differ it is a warning;
if only one of them does, a notice: one application may have several consumers in one
group. Members that subscribe by a regular expression, applications of Kafka Streams,
share groups and workers of Kafka Connect are not judged.

What it needs: the right to describe the group, and a second survey. Where subscriptions
are not known (Kafka's own tools do not print them), it is undetermined.

What to do: give each application a group.id of its own. The new group begins where
nothing is committed: copy the offsets of its topics first (kelpie rehome does it).

When it is wrong: one application that reads each topic with consumers of its own, on
machines of their own, and shares the group on purpose.

Reproduce: kelpie lab run two-applications-in-one-group
"""

import re
from collections.abc import Sequence
from itertools import combinations

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import MOST_EVIDENCE, describing, people, person_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import duration, first_of, listed
from kelpie.observations import GroupState, Member
from kelpie.observations.groups import CLASSIC, CONSUMER

_LONG_MS = 6 * 60_000
_MOST_TOPICS = 3
_NUMBERS = re.compile(r"[-_.#]?\d+")


def judge(case: Case) -> Judgement:
    state = case.described
    if state is None:
        return undetermined("the members of the group and what they subscribe to")
    if not _is_judged(state) or len(state.members) < 2:
        return ABSENT
    if any(member.subscribed is None for member in state.members):
        return undetermined("what its members subscribe to")
    parts = _applications(state)
    if len(parts) < 2:
        return ABSENT
    kept = [row for row in case.states if row.at is not None]
    first = state.at
    for row in reversed(kept):
        if len(_applications(row)) < 2:
            break
        first = row.at
    if first is None or case.cluster.now - first < _LONG_MS:
        return undetermined(
            "whether it is a deployment that changes what its members subscribe to: run the doctor again "
            f"{duration(_LONG_MS)} later"
        )
    return _found(case, state, parts)


def _is_judged(state: GroupState) -> bool:
    return (
        state.kind in (CLASSIC, CONSUMER)
        and state.protocol_type in ("consumer", "")
        and not state.is_streams
        and not any(member.pattern for member in state.members)
    )


def _applications(state: GroupState) -> list[list[Member]]:
    """Parts without a topic in common, if all of them differ in hosts or client ids; else none."""
    members = [member for member in state.members if member.subscribed]
    first = members[0].subscribed if members else None
    if not _is_judged(state) or all(member.subscribed == first for member in members):
        return []  # Nearly all groups: everybody subscribes to the same.
    parts: list[tuple[set[str], list[Member]]] = []
    for member in members:
        topics = set(member.subscribed or ())
        own = [part for part in parts if part[0] & topics]
        joined = (topics.union(*(part[0] for part in own)), [m for part in own for m in part[1]] + [member])
        parts = [part for part in parts if part not in own] + [joined]
    found = [part for _, part in parts]
    return (
        found if len(found) > 1 and all(_differ(one, other) for one, other in combinations(found, 2)) else []
    )


def _differ(one: Sequence[Member], other: Sequence[Member]) -> bool:
    return _hosts_differ(one, other) or _names_differ(one, other)


def _hosts_differ(one: Sequence[Member], other: Sequence[Member]) -> bool:
    hosts, others = ({member.host for member in part} for part in (one, other))
    return "" not in hosts | others and not hosts & others


def _names_differ(one: Sequence[Member], other: Sequence[Member]) -> bool:
    names, others = ({_NUMBERS.sub("", person_of(member)) for member in part} for part in (one, other))
    return "" not in names | others and not names & others


def _found(case: Case, state: GroupState, parts: Sequence[Sequence[Member]]) -> Finding:
    both = all(
        _hosts_differ(one, other) and _names_differ(one, other) for one, other in combinations(parts, 2)
    )
    texts = [f"{people(map(person_of, part))} for {first_of(_topics(part), _MOST_TOPICS)}" for part in parts]
    seem = "are" if both else "seem to be"
    return RULE.finding(
        Severity.WARNING if both else Severity.NOTICE,
        case.group,
        f"In group {case.group} {seem} {len(parts)} applications without a topic in common: "
        f"{listed(texts[:4])}.",
        why="Each restart or crash of one of them stops the others for a rebalance. A reset or a deletion of "
        "the group concerns all of them.",
        evidence=[
            Evidence.of(
                state,
                f"{member.member_id}, client {member.client_id}, host {member.host.lstrip('/')}: "
                f"subscribed to {first_of(sorted(member.subscribed or ()), _MOST_TOPICS)}",
            )
            for part in parts
            for member in part[: MOST_EVIDENCE // 2]
        ][:MOST_EVIDENCE],
        remedies=[
            Remedy(
                "Give each application a group.id of its own. Copy the offsets of its topics to the new "
                "group before its first start: where nothing is committed, it would begin at the end, or "
                "at the beginning (auto.offset.reset)."
            )
        ],
        members=[member.member_id for part in parts for member in part],
        check=describing(case, "--members"),
    )


def _topics(part: Sequence[Member]) -> list[str]:
    return sorted({topic for member in part for topic in member.subscribed or ()})


RULE = Rule.of(
    __name__,
    judge,
    Presentation("is shared by applications", "are shared by applications"),
    asked_for=Sign.NOT_DESCRIBED | Sign.MEMBERS,
)
