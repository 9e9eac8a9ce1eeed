"""Groups at a glance: state, coordinator, how far each is behind, and whether that grows.

Healthy groups are shown like all others. Nothing is judged here: `worst` is the worst finding of the rules.
What is not known is None, and a sum that lacks a part says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import Finding
from kelpie.doctor.positions import Track, lag, lag_ms
from kelpie.doctor.zookeeper.looks import lag_of
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, GroupState, Member
from kelpie.observations.earlier import EARLIER_SURVEY
from kelpie.zookeeper.assignment import consumer_of

IN_ZOOKEEPER = "zookeeper"
"""The kind of groups that ZooKeeper keeps."""
_WITHOUT_MEMBERS = ("Empty", "Dead")
_MINUTE_MS = 60_000
_LEAST_SPAN_MS = 45_000
_MOST_SPAN_MS = 20 * _MINUTE_MS
"""Between two looks at a lag that show where it goes."""


@dataclass(frozen=True, slots=True)
class GroupOverview:
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


class PartitionOverview(NamedTuple):
    """One partition that a group reads."""

    name: TopicPartition
    offset: int | None
    end: int | None
    """Where the log ends for this group."""
    lag: int | None
    lag_ms: int | None
    may_be_older: bool
    last_commit: Instant | None
    member_id: str = ""
    client_id: str = ""
    host: str = ""
    high_watermark: int | None = None
    stable: int | None = None
    """The last stable offset."""
    lag_change: float | None = None
    """By how many records a minute the lag grows."""

    @property
    def read_uncommitted_lag(self) -> int | None:
        """Records up to the high watermark: what a consumer may read that does not wait for transactions."""
        return _between(self.offset, self.high_watermark)

    @property
    def read_committed_lag(self) -> int | None:
        """Records up to the last stable offset: open transactions hold the others back."""
        return _between(self.offset, self.stable)


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


def partitions_of(case: Case) -> list[PartitionOverview]:
    """What the group reads, partition by partition, and which member reads it."""
    if case.in_zookeeper:
        return _partitions_in_zookeeper(case)
    holders = {name: member for member in case.members or () for name in member.assigned or ()}
    names = case.reads.partitions
    if not holders.keys() <= set(names):
        names = tuple(sorted({*names, *holders}))
    return [_partition(case, name, holders.get(name)) for name in names]


def idle_members(case: Case) -> list[Member]:
    """Members that are assigned no partition."""
    return [member for member in case.members or () if member.assigned == ()]


def _of_kafka(case: Case, partitions: Sequence[PartitionOverview], worst: Finding | None) -> GroupOverview:
    state = _current_state(case)
    read = case.reads.partitions
    if len(partitions) > len(read):  # A member may still have a partition of a topic that is gone.
        names = set(read)
        partitions = [row for row in partitions if row.name in names]
    known = [row.lag for row in partitions if row.lag is not None]
    ages = [(row.lag_ms, row.may_be_older) for row in partitions if row.lag_ms is not None]
    oldest = max(ages, default=None)
    changes = [row.lag_change for row in partitions if row.lag_change is not None]
    home = case.offsets_partition
    return GroupOverview(
        group=case.group,
        kind=state.kind if state is not None else "",
        state=state.state if state is not None else "",
        protocol=state.protocol if state is not None else "",
        members=_member_count(state),
        coordinator=case.cluster.coordinator_of(case.group),
        offsets_partition=home.partition if home is not None else None,
        lag=sum(known) if known else None,
        lag_is_whole=len(known) == len(partitions),
        lag_ms=oldest[0] if oldest is not None else None,
        may_be_older=oldest is not None and oldest[1],
        lag_change=sum(changes) if changes else None,
        last_commit=max(filter(None, map(_last_time, case.commits.values())), default=None),
        worst=worst,
    )


def _current_state(case: Case) -> GroupState | None:
    """As described now. What an earlier survey saw, or a coordinator that is gone, may no longer be so."""
    if case.is_cut_off:
        return None
    rows = (row for row in reversed(case.states) if not row.error and row.source != EARLIER_SURVEY)
    return next(rows, None)


def _member_count(state: GroupState | None) -> int | None:
    """Listings of tools have states, and no members: only a group that is empty has none for sure."""
    if state is None or not (state.members or state.state in _WITHOUT_MEMBERS):
        return None
    return len(state.members)


def _change(track: Track, left: int) -> float | None:
    """Records a minute, from the last look that is long enough ago until now. `left`: the lag now."""
    earliest, latest = track.now - _MOST_SPAN_MS, track.now - _LEAST_SPAN_MS
    for end in reversed(track.ends):
        if end.at is None or not earliest <= end.at <= latest:
            continue
        offset = track.offset_at(end.at)
        before = lag(offset, end) if offset is not None else None
        if before is not None:
            return (left - before) * _MINUTE_MS / (track.now - end.at)
    return None


def _partition(case: Case, name: TopicPartition, holder: Member | None) -> PartitionOverview:
    track = case.track(name)
    left, end = track.lag, track.end
    age = None if left is None else lag_ms(track, left)
    return PartitionOverview(
        name,
        track.offset if track.offset >= 0 else None,
        track.offset + left if left else end.latest if end is not None else None,
        left,
        age[0] if age is not None else None,
        age is not None and age[1],
        _last_time(case.commits.get(name, ())),
        holder.member_id if holder is not None else "",
        holder.client_id if holder is not None else "",
        holder.host if holder is not None else "",
        end.latest if end is not None and end.latest >= 0 else None,
        end.stable if end is not None and end.stable >= 0 else None,
        None if left is None else _change(track, left),
    )


def _last_time(commits: Sequence[Commit]) -> Instant | None:
    """Of the newest commit that is no removal. They are by time, those without one first."""
    return next((row.at for row in reversed(commits) if not row.removed), None)


def _between(offset: int | None, end: int | None) -> int | None:
    return None if offset is None or end is None else max(0, end - offset)


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
