"""The past of a group that ZooKeeper keeps: looks at its tree show its members and how fast it read.

A group has no generations there. A look that finds other consumers than the one before, or other sessions of
theirs, shows that it has rebalanced.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from kelpie.doctor.case import Case
from kelpie.doctor.group_history import EXPIRED, LEFT, UNKNOWN, Departure, GroupHistory, Rebalance, Value
from kelpie.doctor.zookeeper.words import short
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, ZooKeeperGroup

_ENDS = {
    EventKind.ZK_SERVER_EXPIRED: EXPIRED,
    EventKind.ZK_SESSION_EXPIRED: EXPIRED,
    EventKind.ZK_CLOSED: LEFT,
    EventKind.ZK_CLOSING: LEFT,
}
"""What logs say of a consumer that goes."""


def history_in_zookeeper(case: Case) -> GroupHistory:
    seen = [(row.at, row) for row in case.zookeeper if row.at is not None and row.registrations is not None]
    rebalances = list(_rebalances(case, seen))
    return GroupHistory(
        records=list(_progress(case)),
        members=[Value(at, len(row.members)) for at, row in seen],
        rebalances=rebalances,
        departures=sorted(_departure(case, each, member) for each in rebalances for member in each.left),
    )


def _rebalances(case: Case, seen: list[tuple[Instant, ZooKeeperGroup]]) -> Iterator[Rebalance]:
    for (_, before), (at, after) in pairwise(seen):
        old, new = _sessions(before), _sessions(after)
        stayed = {member for member in old.keys() & new.keys() if _may_be_same(old[member], new[member])}
        if stayed < old.keys() | new.keys():
            joined, left = (
                tuple(sorted(short(case, member) for member in some.keys() - stayed)) for some in (new, old)
            )
            yield Rebalance(at, None, len(new), joined, left, source=after.source)


def _sessions(row: ZooKeeperGroup) -> dict[str, int | None]:
    return {each.member: each.session for each in row.registrations or ()}


def _may_be_same(one: int | None, other: int | None) -> bool:
    """Not every file tells sessions."""
    return one is None or other is None or one == other


def _departure(case: Case, seen: Rebalance, member: str) -> Departure:
    """By the last line that tells of its end before it was seen to be gone."""
    told = [event for event in case.events_of(*_ENDS) if _is_of(case, event, member)]
    last = [event for event in told if event.at is not None and event.at <= seen.at][-1:]
    if not last:
        return Departure(seen.at, member, UNKNOWN, source=seen.source)
    (event,) = last
    at = event.at if event.at is not None else seen.at
    return Departure(at, member, _ENDS[event.kind], text=event.text, source=event.source)


def _is_of(case: Case, event: Event, member: str) -> bool:
    return event.member is not None and short(case, event.member) == member


def _progress(case: Case) -> Iterator[Value]:
    """Records a second from look to look, in partitions of which both tell an offset."""
    seen = [(row.at, _offsets(row)) for row in case.zookeeper if row.at is not None and row.offsets]
    for (since, before), (at, after) in pairwise(seen):
        both = before.keys() & after.keys()
        if both and at > since:
            further = sum(max(0, after[name] - before[name]) for name in both)
            yield Value(at, further * 1000 / (at - since))


def _offsets(row: ZooKeeperGroup) -> Mapping[TopicPartition, int]:
    return {each.name: each.offset for each in row.offsets}
