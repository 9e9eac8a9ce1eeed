"""The generations of a group in order: when each began, which members joined and which left.

Three sources have generations: the coordinator's log, records of the offsets topic, logs of consumers. The
one with most generations counts. A group that was removed begins again at generation 0. Not every generation
leaves a record.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.membership import person_in, person_of
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.model.words import counted
from kelpie.observations import Event, EventKind, Generation


class GenerationChange(NamedTuple):
    """A new generation, or the moment at which the group became empty."""

    at: Instant
    generation: int
    came: tuple[str, ...] = ()
    """By name (see membership.person_of)."""
    went: tuple[str, ...] = ()
    members: int | None = None
    began: Instant | None = None
    """When the rebalance began that led to it."""
    reason: str = ""
    text: str = ""
    source: str = ""
    has_expired: bool = False
    """Whether the coordinator says that the session of one that went had ended."""

    @property
    def cause(self) -> str:
        """One of CAUSES: what the members show, and the coordinator's log."""
        if self.has_expired:
            return "expired"
        if self.members == 0:
            return "emptied"
        if self.came:
            return "replaced" if self.went else "joined"
        return "left" if self.went else "same-members"


CAUSES = ("joined", "left", "replaced", "expired", "emptied", "same-members")
"""Of a rebalance: members came, went, or both; a session ended; the last one went; or no member changed, and
a subscription, a topic or an assignment did.
"""


def generation_changes(case: Case) -> list[GenerationChange]:
    """By time, from the source with most generations."""
    return max((_by_broker(case), _by_records(case.generations), _by_clients(case)), key=len)


def _by_records(rows: Sequence[Generation]) -> list[GenerationChange]:
    changes: list[GenerationChange] = []
    before: Generation | None = None
    for row in rows:
        if row.at is None or (not row.generation and not row.members):
            continue  # Kafka 4 writes down that a group was created, before anybody is in it.
        if before is not None and before.generation == row.generation:
            # A copy on another broker, or a static member that came back without a rebalance.
            before = row
            continue
        old = {} if before is None else {member.member_id: person_of(member) for member in before.members}
        new = {member.member_id: person_of(member) for member in row.members}
        changes.append(
            GenerationChange(
                row.at,
                row.generation,
                tuple(name for member, name in new.items() if member not in old),
                tuple(name for member, name in old.items() if member not in new),
                len(new),
                text=f"generation {row.generation} of {counted(len(new), 'member')}",
                source=row.source,
            )
        )
        before = row
    return changes


def _by_broker(case: Case) -> list[GenerationChange]:
    changes: list[GenerationChange] = []
    came: list[str] = []
    went: list[str] = []
    began: Event | None = None
    expired = False
    for event in _once(case.events):
        if event.at is None:
            continue
        match event.kind:
            case EventKind.REBALANCE_STARTED:
                began = began or event
            case EventKind.MEMBER_JOINED:
                came.append(person_in(event))
            case EventKind.MEMBER_LEFT | EventKind.MEMBER_EXPIRED:
                went.append(person_in(event))
                expired = expired or event.kind is EventKind.MEMBER_EXPIRED
            case EventKind.GENERATION_JOINED | EventKind.GROUP_EMPTY:
                generation = -1 if event.generation is None else event.generation
                since, reason = (began.at, began.reason) if began is not None else (None, "")
                about = (tuple(came), tuple(went), _members(event), since, reason, event.text, event.source)
                changes.append(GenerationChange(event.at, generation, *about, expired))
                came, went, began, expired = [], [], None, False
    return changes


def _by_clients(case: Case) -> list[GenerationChange]:
    """Each member logs each generation; the first line counts."""
    changes: list[GenerationChange] = []
    for event in case.events_of(EventKind.JOINED):
        if event.at is None or event.generation is None:
            continue
        if not changes or changes[-1].generation != event.generation:
            changes.append(GenerationChange(event.at, event.generation, text=event.text, source=event.source))
    return changes


def _members(event: Event) -> int | None:
    if event.kind is EventKind.GROUP_EMPTY:
        return 0
    return whole_number(event.details.get("members", ""))


def _once(events: Iterable[Event]) -> Iterable[Event]:
    """Without the lines that come a second time, from a copy of the same log."""
    once: dict[tuple[object, ...], Event] = {}
    for event in events:
        once.setdefault((event.kind, event.at, event.text), event)
    return once.values()


def runs(changes: Sequence[GenerationChange], gap_ms: int) -> list[list[GenerationChange]]:
    """Changes that follow each other within this time."""
    together: list[list[GenerationChange]] = []
    for change in changes:
        if together and change.at - together[-1][-1].at <= gap_ms:
            together[-1].append(change)
        else:
            together.append([change])
    return together


def unassigned_ms(case: Case, since: Instant, until: Instant) -> int | None:
    """How long no member had an assignment: from the start of a rebalance to the leader's assignment.

    None when no log of the coordinator tells.
    """
    total, began, is_known = 0, None, False
    for event in _once(case.events):
        if event.at is None or not since <= event.at <= until:
            continue
        if event.kind is EventKind.REBALANCE_STARTED:
            began = event.at if began is None else began
        elif event.kind is EventKind.ASSIGNMENT_RECEIVED and began is not None:
            total, began, is_known = total + event.at - began, None, True
        elif event.kind is EventKind.GROUP_EMPTY:
            began = None
    return total if is_known else None
