"""The numbers of one look that exporters show, and what is filled in where a look did not see everything.

A coordinator that is dead, or a partition without a leader, must not make series vanish: alerts on them would
end just when they are needed. So what the look could not see keeps its last known value, and `seen` says how
old it is. A group that a look saw to be gone has no numbers any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kelpie.client.admin.log_dirs import LogDirSizes
from kelpie.cluster import ClusterView
from kelpie.doctor.broker_loss import BrokerLoss
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding
from kelpie.doctor.overview import (
    IN_ZOOKEEPER,
    GroupOverview,
    group_overview,
    idle_members,
    partitions_of,
)
from kelpie.doctor.standings import PartitionOverview
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Member

_new = tuple.__new__  # GroupNumbers(...) would be a call of a Python function, for 10,000 groups.


class TopicMembers(NamedTuple):
    """Of a group, in one topic."""

    members: int
    partitions: int
    """That members are assigned."""


class GroupNumbers(NamedTuple):
    """One group."""

    row: GroupOverview
    partitions: Sequence[PartitionOverview]
    protocol_type: str
    idle: int
    by_topic: Mapping[str, TopicMembers]
    seen: Instant
    """When its oldest number was seen."""
    tells_offsets: bool
    """Whether its coordinator said what is committed, so that what it left out is not there."""
    can_rebalance: bool
    """Whether it has members, or had some: groups that only commit never rebalance."""

    @property
    def is_whole(self) -> bool:
        """Whether the look saw all of it. What was never committed has no lag, and nothing is missing."""
        return (
            self.has_state
            and self.tells_offsets
            and (
                self.row.lag_is_whole
                or all(row.lag is not None or row.offset is None for row in self.partitions)
            )
        )

    @property
    def has_state(self) -> bool:
        """Whether its state could be asked. Groups in ZooKeeper have none."""
        return bool(self.row.state) or self.row.kind == IN_ZOOKEEPER


def group_numbers(case: Case, worst: Finding | None, at: Instant) -> GroupNumbers:
    partitions = partitions_of(case)
    row = group_overview(case, partitions, worst)
    state, members = case.state, case.members
    is_cut_off = row.coordinator is None and case.is_cut_off
    return _new(
        GroupNumbers,
        (
            row,
            partitions,
            state.protocol_type if state is not None else "",
            len(idle_members(case)) if members else 0,
            _by_topic(members) if members else {},
            _last_told(case, at) if is_cut_off else at,
            case.offsets_are_known,
            bool(members or case.generations),
        ),
    )


def _by_topic(members: Iterable[Member]) -> dict[str, TopicMembers]:
    counts: Counter[str] = Counter()
    assigned: Counter[str] = Counter()
    for member in members:
        if member.assigned:
            topics = [name.topic for name in member.assigned]
            assigned.update(topics)
            counts.update(set(topics))
    return {topic: TopicMembers(count, assigned[topic]) for topic, count in counts.items()}


def _last_told(case: Case, at: Instant) -> Instant:
    """When its coordinator, which is gone, said last what is committed."""
    return max((row.at for row in case.committed.values() if row.at is not None), default=at)


def with_last_known(now: GroupNumbers, before: GroupNumbers) -> GroupNumbers:
    """What the last look says of a group, and what an earlier one said where the last could not see."""
    if now.is_whole:
        return now
    known = {row.name: row for row in before.partitions}
    partitions = [_filled(row, known.pop(row.name, None), has_state=now.has_state) for row in now.partitions]
    if not now.tells_offsets:
        partitions = sorted([*partitions, *known.values()])
    lags = [row.lag for row in partitions if row.lag is not None]
    ages = [(row.lag_ms, row.may_be_older) for row in partitions if row.lag_ms is not None]
    lag_ms, may_be_older = max(ages, default=(None, False))
    row = now.row._replace(
        kind=now.row.kind or before.row.kind,
        protocol=now.row.protocol or before.row.protocol,
        members=before.row.members if now.row.members is None else now.row.members,
        lag=sum(lags) if lags else None,
        lag_is_whole=len(lags) == len(partitions),
        lag_ms=lag_ms,
        may_be_older=may_be_older,
        last_commit=before.row.last_commit if now.row.last_commit is None else now.row.last_commit,
    )
    told = now if now.has_state else before
    is_filled = row != now.row or partitions != now.partitions
    return now._replace(
        row=row,
        partitions=partitions,
        protocol_type=told.protocol_type,
        idle=told.idle,
        by_topic=told.by_topic,
        seen=before.seen if is_filled else now.seen,
        can_rebalance=now.can_rebalance or before.can_rebalance,
    )


def unseen(last_known: GroupNumbers) -> GroupNumbers:
    """Of a group that the last look saw nothing of: all but what can change at any moment."""
    return last_known._replace(row=last_known.row._replace(state="", coordinator=None))


def _filled(
    now: PartitionOverview, before: PartitionOverview | None, *, has_state: bool
) -> PartitionOverview:
    if before is None:
        return now
    missing: dict[str, Any] = {
        field: old
        for field, new, old in zip(now._fields, now, before, strict=True)
        if new is None and old is not None
    }
    if "lag_ms" in missing:
        missing["may_be_older"] = before.may_be_older
    if not has_state and not now.member_id:
        missing |= {"member_id": before.member_id, "client_id": before.client_id, "host": before.host}
    return now._replace(**missing) if missing else now


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a partition begins and ends. None: not known."""

    earliest: int | None
    latest: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What only grows, since Kelpie was started."""

    commits: Mapping[str, int]
    """By group: offsets that were committed, as far as looks saw them."""
    rebalances: Mapping[str, Mapping[str, int]]
    """By group, by cause."""
    records: int
    """Of the offsets topic that looks have read, each once."""


@dataclass(frozen=True, slots=True)
class ClusterNumbers:
    """All that exporters show of a cluster."""

    at: Instant
    took_ms: int
    answers: bool
    """Whether the last look saw anything."""
    requests: int | None
    cluster: ClusterView
    """Of the last look that saw anything."""
    losses: Sequence[BrokerLoss]
    ends: Mapping[TopicPartition, LogEnd]
    groups: Mapping[str, GroupNumbers]
    """By name."""
    findings: Sequence[Finding]
    """Those that are not over, and that nobody has acknowledged."""
    of_group: Mapping[str, Sequence[Finding]]
    """All findings of a group, worst first."""
    totals: Totals
    log_dirs: LogDirSizes | None
    """None: nobody asked for them, or no broker told."""


def log_ends(cluster: ClusterView, before: Mapping[TopicPartition, LogEnd]) -> dict[TopicPartition, LogEnd]:
    """Of all partitions that are still there: as the look saw them, or as an earlier one did."""
    ends = {}
    for name in sorted({*cluster.ends, *(before.keys() & cluster.views.keys())}):
        newest, last_known = cluster.newest_end(name), before.get(name)
        if newest is None:
            if last_known is not None:
                ends[name] = last_known
            continue
        earliest = next((row.earliest for row in reversed(cluster.ends[name]) if row.earliest >= 0), None)
        ends[name] = LogEnd(earliest, newest.latest)
    return ends
