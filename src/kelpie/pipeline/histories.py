"""What tables tell of a group over time, without Spark: lag, progress, members, rebalances, traffic.

Of each table only the columns that are needed are read, the rows of one group, and the time that is asked
for: files have bounds of times, so that others are not opened. What comes back is bounded: values are put
together to about two hundred steps.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.doctor.group_history import Departure, GroupHistory, Rebalance, Value
from kelpie.model.time import Instant
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment

_TOGETHER_MS = 10_000
"""Ends of logs that were asked within this time belong to one look."""
_STEPS_MS = (10_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000)
_MOST_STEPS = 240
_HOUR_MS = 3_600_000
_COMMITS_MS = 3 * 24 * _HOUR_MS
"""Of a longer time, single commits are too many: the table of hours tells."""
_MOST_EVENTS = 2_000

Period = tuple[Instant, Instant]
"""From when to when."""


class Traffic(NamedTuple):
    """What a group fetched in a while, as `attributed_traffic` has it."""

    ended: Instant
    how: str
    """counted, exact, apportioned, unknown or derived."""
    topic: str
    messages: int | None
    bytes: int | None


class GroupTables:
    """The tables of one cluster."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._lake = lake
        self._cluster = cluster

    def bounds(self) -> Period | None:
        """From the first to the last that is known of any group. None: of none."""
        found: list[datetime | None] = []
        for name, column in _TIMES:
            found += self._lake.bounds(TABLES[name], self._cluster, column)
        times = [at for each in found if (at := instant(each)) is not None]
        hours = [instant(each) for each in self._lake.bounds(TABLES["traffic"], self._cluster, "hour")]
        # An hour begins before the first commit in it.
        first = min(times, default=None)
        times += [
            at for at in hours if at is not None and (first is None or not first - _HOUR_MS < at < first)
        ]
        return (min(times), max(times)) if times else None

    def readers(self) -> dict[str, list[str]]:
        """By topic, the groups that have committed offsets in it."""
        pairs: set[tuple[str, str]] = set()
        for name in ("traffic", "lag"):
            rows = self._lake.rows(TABLES[name], self._cluster, columns=["topic", "group"])
            known = rows.group_by(["topic", "group"]).aggregate([])
            pairs |= set(zip(known["topic"].to_pylist(), known["group"].to_pylist(), strict=True))
        by_topic: dict[str, list[str]] = {}
        for topic, group in sorted(pairs):
            by_topic.setdefault(topic, []).append(group)
        return by_topic

    def history(self, group: str, period: Period) -> GroupHistory:
        lag, lag_ms = self._lag(group, period)
        records, commits = self._progress(group, period)
        return GroupHistory(
            lag,
            lag_ms,
            records,
            commits,
            self._members(group, period),
            self._rebalances(group, period),
            self._departures(group, period),
        )

    def traffic(self, group: str, period: Period) -> list[Traffic]:
        """By step of time, topic, and how it is known that it was this group's."""
        where = _between("ended", period)
        days = [moment(at).date() for at in period]  # type: ignore[union-attr]
        where = where & (pc.field("day") >= days[0]) & (pc.field("day") <= days[1])
        columns = ["ended", "how", "topic", "messages", "bytes"]
        rows = self._of(group, "attributed_traffic", columns, where)
        step = _step(period)
        kept = rows.set_column(0, "ended", _floored(rows["ended"], step))
        sums = kept.group_by(["ended", "how", "topic"]).aggregate([("messages", "sum"), ("bytes", "sum")])
        return [
            Traffic(row["ended"] + step, row["how"], row["topic"], row["messages_sum"], row["bytes_sum"])
            for row in sums.sort_by(
                [("ended", "ascending"), ("how", "ascending"), ("topic", "ascending")]
            ).to_pylist()
        ]

    def lags_at(self, at: Instant, within_ms: int = _HOUR_MS) -> dict[str, tuple[int, int | None]]:
        """Of each group the lag at a time, and how old it was: as the last look before it saw them."""
        columns = ["group", "topic", "partition", "at", "lag", "lag_ms"]
        where = _between("at", (at - within_ms, at))
        rows = self._lake.rows(TABLES["lag"], self._cluster, where, columns).sort_by("at")
        last: dict[tuple[str, str, int], tuple[int | None, int | None]] = {}
        for row in rows.to_pylist():
            last[row["group"], row["topic"], row["partition"]] = row["lag"], row["lag_ms"]
        lags: Counter[str] = Counter()
        ages: dict[str, int | None] = {}
        for (group, _, _), (left, age) in last.items():
            if left is not None:
                lags[group] += left
                ages[group] = max((each for each in (ages.get(group), age) if each is not None), default=None)
        return {group: (left, ages[group]) for group, left in lags.items()}

    def members_at(self, at: Instant) -> dict[str, int | None]:
        """Of each group, how many members it had at a time."""
        time = moment(at)
        where = (pc.field("began") <= time) & (pc.field("ended").is_null() | (pc.field("ended") > time))
        rows = self._lake.rows(TABLES["group_generation"], self._cluster, where, ["group", "members"])
        return {row["group"]: row["members"] for row in rows.to_pylist()}

    def _of(
        self, group: str, name: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> pa.Table:
        of_group = pc.field("group") == group
        return self._lake.rows(
            TABLES[name], self._cluster, of_group if where is None else of_group & where, columns
        )

    def _lag(self, group: str, period: Period) -> tuple[list[Value], list[Value]]:
        columns = ["at", "topic", "partition", "lag", "lag_ms"]
        # A look at the edge is read as a whole.
        wider = period[0] - _TOGETHER_MS, period[1] + _TOGETHER_MS
        rows = self._of(group, "lag", columns, _between("at", wider))
        looks = rows.set_column(0, "at", _floored(rows["at"], _TOGETHER_MS))
        by_partition = looks.group_by(["at", "topic", "partition"]).aggregate(
            [("lag", "max"), ("lag_ms", "max")]
        )
        together = by_partition.group_by("at").aggregate(
            [("lag_max", "sum"), ("lag_ms_max", "max"), ("lag_max", "count")]
        )
        known = together.sort_by("at").to_pylist()
        whole = [row for row in _whole(known) if period[0] <= row["at"] <= period[1]]
        step = _step(period)
        return (
            _greatest([Value(row["at"], row["lag_max_sum"]) for row in whole], step),
            _greatest(
                [
                    Value(row["at"], row["lag_ms_max_max"])
                    for row in whole
                    if row["lag_ms_max_max"] is not None
                ],
                step,
            ),
        )

    def _progress(self, group: str, period: Period) -> tuple[list[Value], list[Value]]:
        """Records a second, and commits a minute where single commits can be counted."""
        if period[1] - period[0] > _COMMITS_MS:
            rows = self._of(group, "traffic", ["hour", "records"], _between("hour", period))
            step = max(_HOUR_MS, _step(period))
            records = rows.set_column(0, "hour", _floored(rows["hour"], step)).group_by("hour")
            sums = records.aggregate([("records", "sum")]).to_pylist()
            return _rates({row["hour"]: row["records_sum"] for row in sums}, step, period, per_ms=1000), []
        where = _between("committed", period) & ~pc.field("offset").is_null()
        rows = self._of(group, "commit_timeline", ["committed", "advance"], where)
        step = _step(period)
        advance = pc.max_element_wise(pc.fill_null(rows["advance"], 0), 0)
        table = pa.table(
            {"at": _floored(rows["committed"], step), "time": rows["committed"], "advance": advance}
        )
        sums = table.group_by("at").aggregate([("advance", "sum"), ("time", "count_distinct")]).to_pylist()
        return (
            _rates({row["at"]: row["advance_sum"] for row in sums}, step, period, per_ms=1000),
            _rates({row["at"]: row["time_count_distinct"] for row in sums}, step, period, per_ms=60_000),
        )

    def _members(self, group: str, period: Period) -> list[Value]:
        begin, end = map(moment, period)
        where = (pc.field("began") <= end) & (pc.field("ended").is_null() | (pc.field("ended") >= begin))
        rows = self._of(group, "group_generation", ["began", "members"], where).sort_by("began").to_pylist()
        values = [(instant(row["began"]), row["members"]) for row in rows[-_MOST_EVENTS:]]
        return [Value(at, members) for at, members in values if at is not None and members is not None]

    def _rebalances(self, group: str, period: Period) -> list[Rebalance]:
        columns = ["started", "duration_ms", "to_generation", "cause", "reason", "joined", "left"]
        rows = (
            self._of(group, "rebalance", columns, _between("started", period)).sort_by("started").to_pylist()
        )
        return [
            Rebalance(
                at,
                row["to_generation"],
                None,
                tuple(row["joined"] or ()),
                tuple(row["left"] or ()),
                row["cause"] or "",
                row["reason"] or "",
                row["duration_ms"],
            )
            for row in rows[-_MOST_EVENTS:]
            if (at := instant(row["started"])) is not None
        ]

    def _departures(self, group: str, period: Period) -> list[Departure]:
        columns = ["ended", "member_id", "client_id", "instance_id", "left_because"]
        rows = self._of(group, "membership_interval", columns, _between("ended", period))
        return [
            Departure(
                at,
                row["instance_id"] or row["client_id"] or row["member_id"],
                row["left_because"] or "unknown",
                source="membership_interval",
            )
            for row in rows.sort_by("ended").to_pylist()[-_MOST_EVENTS:]
            if (at := instant(row["ended"])) is not None
        ]


_TIMES = (("lag", "at"), ("group_generation", "began"))
"""Tables that are small, or whose files have bounds, and their times."""


def _between(column: str, period: Period) -> pc.Expression:
    begin, end = map(moment, period)
    return (pc.field(column) >= begin) & (pc.field(column) <= end)


def _step(period: Period) -> int:
    span = period[1] - period[0]
    return next((step for step in _STEPS_MS if span / step <= _MOST_STEPS), _STEPS_MS[-1])


def _floored(times: pa.ChunkedArray, step: int) -> pa.ChunkedArray:
    """Milliseconds since 1970, at the beginning of a step."""
    ms = pc.divide(pc.cast(times, pa.int64()), _per_ms(times.type))
    return pc.multiply(pc.divide(ms, step), step)


def _per_ms(type_: pa.DataType) -> int:
    return {"ms": 1, "us": 1_000, "ns": 1_000_000}[type_.unit]


def _whole(looks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Looks that saw as many partitions as any of the same hour: a sum that lacks one would mislead."""
    most: dict[int, int] = {}
    for look in looks:
        hour = look["at"] // _HOUR_MS
        most[hour] = max(most.get(hour, 0), look["lag_max_count"])
    return [look for look in looks if look["lag_max_count"] == most[look["at"] // _HOUR_MS] > 0]


def _greatest(values: Sequence[Value], step: int) -> list[Value]:
    """Of each step the greatest: a peak is not lost."""
    by_step: dict[int, Value] = {}
    for value in values:
        known = by_step.get(value.at // step)
        if known is None or value.value >= known.value:
            by_step[value.at // step] = value
    return list(by_step.values())


def _rates(sums: Mapping[int, float], step: int, period: Period, *, per_ms: int) -> list[Value]:
    """By step; one without any is 0, from the first to the last that has some."""
    if not sums:
        return []
    begins = range(min(sums), max(sums) + 1, step)
    return [Value(min(begin + step, period[1]), sums.get(begin, 0) * per_ms / step) for begin in begins]
