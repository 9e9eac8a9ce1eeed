"""What logs of members say: each rebalance with its tries and conflicts, and what a member owned when.

A line "successfully owned" may belong to a try that is rolled back; only "selected partitions" is a success.
A member releases all its partitions when a rebalance begins, and when it is closed. One that is killed says
nothing: its nodes stay until ZooKeeper expires its session.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.model.names import TopicPartition
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind
from kelpie.zookeeper.assignment import consumer_of

_CLOSING = (EventKind.ZK_CLOSING, EventKind.ZK_CLOSED)


@dataclass(slots=True)
class Rebalance:
    """The tries of one member from "try #0" on, until it succeeded, gave up, or its log ends."""

    member: str
    begun: Instant
    failed_tries: int = 0
    conflicts: list[Event] = field(default_factory=list)
    succeeded: Event | None = None
    exhausted: Event | None = None

    @property
    def contested(self) -> dict[TopicPartition, str]:
        """Partitions that it could not claim, and the members that held them."""
        return {
            TopicPartition(event.topic or "", event.partition or 0): consumer_of(event.details["holder"])
            for event in self.conflicts
        }


class Owning(NamedTuple):
    """A member owned a partition. `until` None: its log does not say that it let go."""

    member: str
    since: Instant
    until: Instant | None


@dataclass(frozen=True)
class MemberLog:
    member: str
    events: tuple[Event, ...]
    """By time; those without a time are left out."""

    def rebalances(self) -> list[Rebalance]:
        rows: list[Rebalance] = []
        for event in self.events:
            at = event.at or 0
            if event.kind is EventKind.ZK_ATTEMPT and (event.details.get("attempt") == "0" or not rows):
                rows.append(Rebalance(self.member, at))
            elif rows and event.kind is EventKind.ZK_CONFLICT:
                rows[-1].conflicts.append(event)
            elif rows and event.kind is EventKind.ZK_ATTEMPT_FAILED:
                rows[-1].failed_tries += 1
            elif rows and event.kind is EventKind.ZK_REBALANCED:
                rows[-1].succeeded = event
            elif event.kind is EventKind.REBALANCE_FAILED:
                if not rows or rows[-1].exhausted is not None:
                    rows.append(Rebalance(self.member, at))
                rows[-1].exhausted = event
        return rows

    def ownings(self) -> Iterator[tuple[TopicPartition, Owning]]:
        held: dict[TopicPartition, Instant] = {}
        for event in self.events:
            at = event.at or 0
            if event.kind is EventKind.ZK_REBALANCED:
                held = dict.fromkeys(selected(event), at)
            elif event.kind is EventKind.ZK_RELEASED or event.kind in _CLOSING:
                yield from ((name, Owning(self.member, since, at)) for name, since in held.items())
                held = {}
        yield from ((name, Owning(self.member, since, None)) for name, since in held.items())

    def first(self, at: Instant, *kinds: EventKind) -> Event | None:
        """The first event of these kinds at this time or later."""
        return next((event for event in self.events if event.kind in kinds and (event.at or 0) >= at), None)

    @property
    def last_word(self) -> Instant:
        return self.events[-1].at or 0

    @property
    def is_closed(self) -> bool:
        return self.events[-1].kind in _CLOSING

    def closed_after(self, at: Instant) -> Instant | None:
        closed = self.first(at, *_CLOSING)
        return closed.at if closed is not None else None

    def over_at(self, failure: Event) -> Instant | None:
        """When a rebalance of the member succeeded after a failure, or the member was closed."""
        after = self.first((failure.at or 0) + 1, EventKind.ZK_REBALANCED, *_CLOSING)
        return after.at if after is not None else None


def member_logs(case: Case) -> dict[str, MemberLog]:
    """By member: the logs that there are."""
    events_by_member: defaultdict[str, list[Event]] = defaultdict(list)
    for event in case.events:
        if event.member is not None and event.at is not None:
            events_by_member[event.member].append(event)
    return {member: MemberLog(member, tuple(events)) for member, events in events_by_member.items()}


def named_members(case: Case) -> frozenset[str]:
    """All members that logs name, also those whose own log is not there."""
    named = {
        consumer_of(thread)
        for event in case.events_of(EventKind.ZK_COMPUTED)
        for thread in event.details.get("threads", "").split(",")
        if thread
    }
    holders = {consumer_of(event.details["holder"]) for event in case.events_of(EventKind.ZK_CONFLICT)}
    return frozenset(named | holders)


def selected(event: Event) -> list[TopicPartition]:
    names = []
    for text in event.details.get("partitions", "").split(","):
        topic, _, number = text.rpartition("-")
        partition = whole_number(number)
        if topic and partition is not None:
            names.append(TopicPartition(topic, partition))
    return names
