"""Where a group stands in all of its partitions at once, without a track of each.

`Case.track` puts the positions of a group in one partition together, for rules. Lists of groups need less:
offset, lag, its age and its trend. Most groups commit all their partitions together, so the same points in
time hold for each of them. Thousands of groups that do not move stand at the same offsets: what follows from
these and from the ends of the logs is worked out once. So 10,000 groups with ten partitions need no 100,000
tracks.

A `Standing` says what tracks would say. Where rows are not as plain as that, there is none: an offset was
removed or refused, a topic was created again, members commit their partitions one by one, ends are not known.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from kelpie.cluster.view import ClusterView
from kelpie.doctor.case import Case, committed_together
from kelpie.doctor.group_positions import Run, has_errors, runs_of
from kelpie.doctor.partition_order import PartitionOrder
from kelpie.doctor.positions import CLOCKS_APART_MS, Track, lag, lag_ms, readable_end
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Commit, Committed, LogEnds
from kelpie.observations.positions import NO_OFFSET

_MINUTE_MS = 60_000
_LEAST_SPAN_MS = 45_000
_MOST_SPAN_MS = 20 * _MINUTE_MS
"""Between two looks at a lag that show where it goes."""

_Names = tuple[TopicPartition, ...]
_Offsets = tuple[int, ...]
_Point = tuple[Instant, _Offsets]
_time = _name = itemgetter(0)


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


def _between(offset: int | None, end: int | None) -> int | None:
    return None if offset is None or end is None else max(0, end - offset)


def partition_overview(track: Track, left: int | None, change: float | None) -> PartitionOverview:
    """`left`: its lag."""
    end = track.end
    age, may_be_older = (lag_ms(track, left) if left is not None else None) or (None, False)
    return PartitionOverview(
        track.name,
        track.offset if track.offset >= 0 else None,
        _end_of(track.offset, end) if end is not None else None,
        left,
        age,
        may_be_older,
        None,
        high_watermark=end.latest if end is not None and end.latest >= 0 else None,
        stable=end.stable if end is not None and end.stable >= 0 else None,
        lag_change=change,
    )


def _end_of(offset: int, end: LogEnds) -> int:
    """Up to where a group that stands there can read; open transactions may hold it back."""
    upto = readable_end(offset, end) if offset >= 0 else NO_OFFSET
    return upto if upto != NO_OFFSET else end.latest


class GroupLag(NamedTuple):
    """Of a group as a whole, as far as it is known of its partitions."""

    records: int | None
    is_whole: bool
    """Whether it is known of each of them."""
    ms: int | None
    """How old the oldest record is that is left to read."""
    may_be_older: bool
    change: float | None
    """By how many records a minute it grows."""

    @classmethod
    def of(cls, rows: Sequence[PartitionOverview]) -> "GroupLag":
        known = [row.lag for row in rows if row.lag is not None]
        ages = [(row.lag_ms, row.may_be_older) for row in rows if row.lag_ms is not None]
        oldest = max(ages, default=None)
        changes = [row.lag_change for row in rows if row.lag_change is not None]
        return cls(
            sum(known) if known else None,
            len(known) == len(rows),
            oldest[0] if oldest is not None else None,
            oldest is not None and oldest[1],
            sum(changes) if changes else None,
        )


class Standing(NamedTuple):
    """Of a group, by partition in the order of their names."""

    names: _Names
    rows: tuple[PartitionOverview, ...]
    """Without the time of the last commit, and without members."""
    lag: GroupLag


def standing_of(case: Case) -> Standing | None:
    """None: its partitions must be looked at one by one."""
    runs = runs_of(case.committed, case.commits, case.committed_over_time)
    if runs is None:
        return None
    told, commits, looks = runs
    read = case.cluster.once_by_identity(_Read, told.names)
    if not read.is_plain:
        return None
    has_readers = case.members or case.is_share
    if not (case.reads.partitions == read.in_name_order if has_readers else read.is_whole):
        return None
    alike = read.alike(case.rest_began)
    known = alike.get(told.offsets) if alike is not None else None
    if known is not None:
        return known
    if min(told.offsets) < 0:
        return None
    points = _points(case.cluster.now, read, commits, looks)
    made = _standing(case.cluster.now, read, points) if points else None
    if made is not None and alike is not None:
        alike[told.offsets] = made
    return made


def trend_ends(ends: Sequence[LogEnds], now: Instant) -> Iterator[tuple[Instant, LogEnds]]:
    """Ends of a log that show where a lag goes, the newest first, each with its time."""
    for end in reversed(ends):
        if end.at is not None and now - _MOST_SPAN_MS <= end.at <= now - _LEAST_SPAN_MS:
            yield end.at, end


class _Read:
    """Partitions that are committed together, by many groups; in the order in which brokers tell them.

    The cluster keeps it, so it does not keep the cluster.
    """

    def __init__(self, cluster: ClusterView, names: _Names) -> None:
        self.order = PartitionOrder.of(cluster, names)
        self.in_name_order = tuple(sorted(names))
        self.ends = tuple(map(cluster.ends_over_time, names))
        topics = {name.topic for name in names}
        self.is_plain = (
            bool(names)
            and len(set(names)) == len(names)
            and all(self.ends)
            and OFFSETS_TOPIC not in topics
            and not any(topic in cluster.known_topics.recreations for topic in topics)
        )
        self.is_whole = committed_together(cluster, names).partitions == self.in_name_order
        """Whether a group without members that has offsets in these reads all of them."""
        self.trends = tuple(tuple(trend_ends(ends, cluster.now)) for ends in self.ends)
        newest = [trend[0][0] for trend in self.trends if trend]
        self.first_trend = min(newest, default=cluster.now)
        """The oldest of the ends that come first."""
        self.last_trend = max(newest, default=cluster.now)
        """The newest of all ends that show a trend."""
        self.still: dict[_Offsets, Standing] = {}
        """Of groups that were at these offsets at the times of all ends that come first."""
        self.new: dict[_Offsets, Standing] = {}
        """Of groups of which nothing is known of the times of any end: they have no trend yet."""

    def alike(self, rest_began: Instant | None) -> dict[_Offsets, Standing] | None:
        """Standings by offsets, if nothing else matters: the group never moved, and was there at the times of
        all ends that come first, or nothing is known of it at the times of any end.
        """
        if rest_began is None:
            return None
        if rest_began <= self.first_trend:
            return self.still
        return self.new if rest_began > self.last_trend else None


def _points(
    now: Instant, read: _Read, commits: Sequence[Run[Commit]], looks: Sequence[Run[Committed]]
) -> list[_Point]:
    """As `Case.track` chooses them, for all partitions. Empty: they are not the same for all."""
    points: list[_Point] = []
    for run in commits:
        offsets = read.order.committed(run)
        if offsets is None or run.at is None or min(offsets) < 0:
            return []
        points.append((min(run.at, now), offsets))
    first, last = (points[0][0], points[-1][0]) if points else (now + 1, -CLOCKS_APART_MS)
    for look in looks:
        offsets = read.order.values(look.names, look.offsets)
        if offsets is None or look.at is None or min(offsets) < 0 or has_errors(look):
            return []
        if not first <= look.at <= last + CLOCKS_APART_MS:
            points.append((min(look.at, now), offsets))
    points.sort(key=_time)
    return points if looks else []


def _standing(now: Instant, read: _Read, points: Sequence[_Point]) -> Standing | None:
    rows = []
    places = zip(read.order.names, points[-1][1], read.ends, read.trends, strict=True)
    for place, (name, offset, ends, trend) in enumerate(places):
        track = Track(name, offset, (), ends, now)
        left = track.lag
        if left is None:
            return None
        rows.append(partition_overview(track, left, _change(place, left, trend, points, now)))
    rows.sort(key=_name)
    return Standing(read.in_name_order, tuple(rows), GroupLag.of(rows))


def _change(
    place: int, left: int, trend: Sequence[tuple[Instant, LogEnds]], points: Sequence[_Point], now: Instant
) -> float | None:
    """Of the partition at this place, by the newest end at whose time its offset is known."""
    for at, end in trend:
        earlier = bisect_right(points, at, key=_time)
        before = lag(points[earlier - 1][1][place], end) if earlier else None
        if before is not None:
            return change_a_minute(left - before, now - at)
    return None


def change_a_minute(records: int, ms: int) -> float:
    return records * _MINUTE_MS / ms
