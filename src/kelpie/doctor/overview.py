"""Groups at a glance: state, coordinator, how far each is behind, and whether that grows.

Healthy groups are shown like all others. Nothing is judged here: `worst` is the worst finding of the rules.
What is not known is None, and a sum that lacks a part says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import repeat
from typing import Any, NamedTuple, overload

from kelpie.cluster.view import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding
from kelpie.doctor.group_positions import Positions
from kelpie.doctor.positions import Track, lag
from kelpie.doctor.share_positions import ShareTrack, share_tracks
from kelpie.doctor.standings import (
    GroupLag,
    PartitionOverview,
    Standing,
    change_a_minute,
    partition_overview,
    standing_of,
    trend_ends,
)
from kelpie.doctor.zookeeper.looks import lag_of
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, GroupState, Member
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.observations.positions import NO_OFFSET
from kelpie.zookeeper.assignment import consumer_of

IN_ZOOKEEPER = "zookeeper"
"""The kind of groups that ZooKeeper keeps."""
_WITHOUT_MEMBERS = ("Empty", "Dead")
_NOBODY = _NOT_DESCRIBED = ("", "", "")
_new = tuple.__new__  # PartitionOverview(...) would be a call of a Python function, for 100,000 rows.


class GroupOverview(NamedTuple):
    """One group, in one line."""

    group: str
    kind: str
    """Kafka's word: classic, consumer, share, streams; or zookeeper. Empty: unknown."""
    state: str
    """Kafka's word, as the coordinator says now. Empty: it could not be asked, or there is none."""
    protocol: str
    """The assignor."""
    members: int | None
    coordinator: int | None
    offsets_partition: int | None
    lag: int | None
    """Records left to read, as far as known."""
    lag_is_whole: bool
    """Whether the lag of every partition is known."""
    lag_ms: int | None
    """How old the oldest record is that is left to read."""
    may_be_older: bool
    lag_change: float | None
    """By how many records a minute the lag grows; negative: it shrinks."""
    last_commit: Instant | None
    worst: Finding | None


ORDERS: dict[str, Callable[[GroupOverview], Any]] = {
    "worst": lambda row: (
        -(row.worst.severity if row.worst is not None else 0),
        -(row.lag_ms or 0),
        -(row.lag or 0),
        row.group,
    ),
    "name": lambda row: row.group,
    "lag": lambda row: (-(row.lag if row.lag is not None else -1), row.group),
    "lag-time": lambda row: (-(row.lag_ms if row.lag_ms is not None else -1), row.group),
    "lag-per-min": lambda row: (
        row.lag_change is None,
        -(row.lag_change if row.lag_change is not None else 0),
        row.group,
    ),
    "members": lambda row: (-(row.members if row.members is not None else -1), row.group),
    "last-commit": lambda row: (-(row.last_commit or 0), row.group),
}
"""In which groups are listed, by name: the first is what people look for first."""


def overview(cases: Iterable[Case], findings: Iterable[Finding]) -> Iterator[GroupOverview]:
    worst = worst_findings(findings)
    return (group_overview(case, partitions_of(case), worst.get(case.group)) for case in cases)


def worst_findings(findings: Iterable[Finding]) -> dict[str | None, Finding]:
    """By group, of those that are not over."""
    worst: dict[str | None, Finding] = {}
    for finding in findings:
        known = worst.get(finding.group)
        if finding.until is None and (known is None or finding.severity > known.severity):
            worst[finding.group] = finding
    return worst


def group_overview(
    case: Case, partitions: Sequence[PartitionOverview], worst: Finding | None
) -> GroupOverview:
    """`partitions`: what `partitions_of` says of the same case."""
    return _of_zookeeper(case, worst) if case.in_zookeeper else _of_kafka(case, partitions, worst)


def partitions_of(case: Case) -> Sequence[PartitionOverview]:
    """What the group reads, partition by partition, and which member reads it. Of the case, little is derived
    and kept: tracks of single partitions go with a copy.
    """
    if case.in_zookeeper:
        return _partitions_in_zookeeper(case)
    members = case.members or ()
    holders = _holders(members) if members else {}
    if case.is_share and (tracks := share_tracks(case)):
        case = copy(case)
        return [_share_partition(case, track, holders.get(track.name)) for track in tracks]
    if not holders or holders.keys() <= set(case.reads.partitions):
        standing = standing_of(case)
        if standing is not None:
            return StandingRows(standing, _last_commit(case), members)
    case = copy(case)
    names = sorted({*case.reads.partitions, *holders})
    return [_partition(case, name, holders.get(name)) for name in names]


def reads_of(case: Case, partitions: Sequence[PartitionOverview]) -> tuple[TopicPartition, ...]:
    """What `case.reads` says, without deriving it where `partitions_of` has not."""
    return partitions.standing.names if isinstance(partitions, StandingRows) else case.reads.partitions


def _holders(members: Iterable[Member]) -> dict[TopicPartition, Member]:
    return {name: member for member in members for name in member.assigned or ()}


def _who(holder: Member | None) -> tuple[str, str, str]:
    return (holder.member_id, holder.client_id, holder.host) if holder is not None else _NOBODY


class StandingRows(Sequence[PartitionOverview]):
    """Rows of a group that commits all its partitions together; made when somebody asks for one of them.

    They keep nothing else of the look that they are from.
    """

    __slots__ = ("_members", "_rows", "last_commit", "standing")

    def __init__(self, standing: Standing, last_commit: Instant | None, members: Sequence[Member]) -> None:
        self.standing = standing
        """The same object for groups that stand at the same offsets."""
        self.last_commit, self._members = last_commit, members
        self._rows: list[PartitionOverview] | None = None

    @property
    def lag(self) -> GroupLag:
        return self.standing.lag

    @overload
    def __getitem__(self, place: int) -> PartitionOverview: ...

    @overload
    def __getitem__(self, place: slice) -> list[PartitionOverview]: ...

    def __getitem__(self, place: int | slice) -> PartitionOverview | list[PartitionOverview]:
        return self._made()[place]

    def __iter__(self) -> Iterator[PartitionOverview]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self.standing.names)

    def __eq__(self, other: object) -> bool:
        return self._made() == (other._made() if isinstance(other, StandingRows) else other)

    __hash__ = None  # type: ignore[assignment]

    def _made(self) -> list[PartitionOverview]:
        if self._rows is None:
            rows, last_commit = self.standing.rows, self.last_commit
            who: Iterable[tuple[str, str, str]] = repeat(_NOBODY)
            if self._members:
                who = map(_who, map(_holders(self._members).get, self.standing.names))
            self._rows = [
                _new(PartitionOverview, (*row[:6], last_commit, *holder, *row[10:]))
                for row, holder in zip(rows, who, strict=False)
            ]
        return self._rows


def idle_members(case: Case) -> list[Member]:
    """Members that are assigned no partition."""
    return [member for member in case.members or () if member.assigned == ()]


def _of_kafka(case: Case, partitions: Sequence[PartitionOverview], worst: Finding | None) -> GroupOverview:
    if isinstance(partitions, StandingRows):
        lag, last_commit = partitions.lag, partitions.last_commit
    else:
        lag, last_commit = _lag_of_rows(case, partitions), _last_commit(case)
    home = case.offsets_partition
    coordinator = case.cluster.once_by_identity(_leader, home) if home is not None else None
    state = None if coordinator is None and case.is_cut_off else _described_now(case.states)
    return _new(
        GroupOverview,
        (
            case.group,
            *((state.kind, state.state, state.protocol) if state is not None else _NOT_DESCRIBED),
            _member_count(state),
            coordinator,
            home.partition if home is not None else None,
            lag.records,
            lag.is_whole,
            lag.ms,
            lag.may_be_older,
            lag.change,
            last_commit,
            worst,
        ),
    )


def _leader(cluster: ClusterView, home: TopicPartition) -> int | None:
    return cluster.leader_of(home)


def _lag_of_rows(case: Case, partitions: Sequence[PartitionOverview]) -> GroupLag:
    read = case.reads.partitions
    if len(partitions) > len(read):  # A member may still have a partition of a topic that is gone.
        names = set(read)
        partitions = [row for row in partitions if row.name in names]
    return GroupLag.of(partitions)


def _described_now(states: Sequence[GroupState]) -> GroupState | None:
    """What an earlier survey saw may no longer be so; nor what a coordinator said that is gone."""
    for row in reversed(states):
        if not row.error and row.source != EARLIER_SURVEY:
            return row
    return None


def _member_count(state: GroupState | None) -> int | None:
    """Listings of tools have states, and no members: only a group that is empty has none for sure."""
    if state is None or not (state.members or state.state in _WITHOUT_MEMBERS):
        return None
    return len(state.members)


def _change(track: Track, left: int) -> float | None:
    """Records a minute, from the last look that is long enough ago until now. `left`: the lag now."""
    for at, end in trend_ends(track.ends, track.now):
        offset = track.offset_at(at)
        before = lag(offset, end) if offset is not None else None
        if before is not None:
            return change_a_minute(left - before, track.now - at)
    return None


def _share_partition(case: Case, track: ShareTrack, holder: Member | None) -> PartitionOverview:
    """Its start is what Kafka's own tool shows, too: all records before it are done."""
    start = track.position.start
    return _partition(case, track.name, holder)._replace(
        offset=start if start >= 0 else None, end=track.end, lag=track.waiting
    )


def _partition(case: Case, name: TopicPartition, holder: Member | None) -> PartitionOverview:
    track = case.track(name)
    left = track.lag
    row = partition_overview(track, left, None if left is None else _change(track, left))
    member_id, client_id, host = _who(holder)
    last_commit = _last_time(case.commits.get(name, ()))
    return row._replace(last_commit=last_commit, member_id=member_id, client_id=client_id, host=host)


def _last_commit(case: Case) -> Instant | None:
    """In any partition."""
    if isinstance(case.commits, Positions):
        for run in reversed(case.commits.runs):
            if max(run.offsets) > NO_OFFSET:
                return run.at
        return None
    return max(filter(None, map(_last_time, case.commits.values())), default=None)


def _last_time(commits: Sequence[Commit]) -> Instant | None:
    """Of the newest commit that is no removal. They are by time, those without one first."""
    return next((row.at for row in reversed(commits) if not row.removed), None)


def _of_zookeeper(case: Case, worst: Finding | None) -> GroupOverview:
    newest = case.zookeeper[-1] if case.zookeeper else None
    registered = newest.registrations if newest is not None else None
    offsets = newest.offsets if newest is not None else ()
    names = [row.name for row in offsets]
    known = [name for name in names if case.cluster.ends.get(name)]
    return GroupOverview(
        group=case.group,
        kind=IN_ZOOKEEPER,
        state="",
        protocol="",
        members=len(registered) if registered is not None else None,
        coordinator=None,
        offsets_partition=None,
        lag=lag_of(case, names),
        lag_is_whole=len(known) == len(names),
        lag_ms=None,
        may_be_older=False,
        lag_change=None,
        last_commit=max((row.modified for row in offsets if row.modified is not None), default=None),
        worst=worst,
    )


def _partitions_in_zookeeper(case: Case) -> list[PartitionOverview]:
    newest = case.zookeeper[-1] if case.zookeeper else None
    if newest is None:
        return []
    owners = {row.name: consumer_of(row.thread) for row in newest.owners or ()}
    offsets = {row.name: row for row in newest.offsets}
    rows = []
    for name in sorted({*owners, *offsets}):
        stored, ends = offsets.get(name), case.cluster.ends.get(name)
        end = ends[-1].latest if ends and ends[-1].latest >= 0 else None
        rows.append(
            PartitionOverview(
                name,
                stored.offset if stored is not None else None,
                end,
                lag_of(case, [name]),
                None,
                False,
                stored.modified if stored is not None else None,
                owners.get(name, ""),
                high_watermark=end,
            )
        )
    return rows
