"""lag in rounds.

A row of lag is of the time at which somebody looked at the end of a log. It depends on the offset that
counted then, and on earlier looks: they tell since when the group is behind. Evidence comes almost in order
of time: a survey may be taken in some seconds after commits that are younger. So a round makes the rows again
that are younger than a moment (`since`), a minute before the end of what was read, and writes those that
differ.

- Carried: of each position the last commit, and earlier ones that counted at that moment, or when somebody
  looked after it; what surveys saw after it; ends of logs after it, and before it those that tell how far
  groups are behind. A group that is behind by a week needs a week of looks at its log.
- A look that is younger than that moment, and older than commits that were read, makes the round read the
  commits since that moment again.
- A commit or an end of a log from before that moment, or a commit between two that were read, makes the
  partition that it is of again, from all rows. So does a group that goes back behind what is carried.
- A log that becomes shorter was created again: what was looked at before says nothing of rows after it.

A position of which commits are read for the first time loses the rows that surveys gave it. Clusters with
groups that ZooKeeper keeps are made as a whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from operator import and_, or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.group_history import has_zookeeper_groups
from kelpie.pipeline.ordering import MOST_ROWS, in_parts
from kelpie.pipeline.rounds.differences import difference_in_memory, literal
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.plain_holds import (
    BEFORE,
    LAST,
    SURVEYED,
    at_looks,
    counts_after,
    lowest,
    times_of,
    to_carry,
    until,
)
from kelpie.pipeline.rounds.plain_holds import held as held_here
from kelpie.pipeline.rounds.seen import is_behind, read_on
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.transforms.lag import (
    ENDS,
    carried_ends,
    ends,
    held,
    lags,
    merged_ends,
    surveyed_positions,
)
from kelpie.pipeline.transforms.zookeeper.events import OF_ZOOKEEPER
from kelpie.pipeline.transforms.zookeeper.offsets import kept_offsets
from kelpie.places import Place

TIMELINE, SNAPSHOT, LAG = "commit_timeline", "cluster_snapshot", "lag"
HOLDS, LOG_ENDS = "carried_hold", "carried_end"
_KINDS = (ENDS, "committed")
_LOG = ["topic", "partition"]
_POSITION = ["group", *_LOG]
_PLACE = ["offsets_partition", "log_offset"]
_COMMIT = [*_POSITION, *_PLACE, "committed", "offset"]
_SLACK = timedelta(minutes=1)
"""Evidence of the same time comes in as far apart. What is later makes partitions again."""
_MOST_SLACK = timedelta(minutes=10)
"""The same if no more surveys come, or no more commits."""
_MOST_AGAIN = 50
"""If more partitions are to be made again, all are."""
_NO_TIME, _LAST_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
Log = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Position:
    has_ends: bool = False
    """Whether the end of any log is known. Without one, there is no lag."""
    in_zookeeper: bool = False
    since: str = ""
    """The moment since which rows are made again."""
    newest_commit: str = ""
    newest_end: str = ""
    read_to: Mapping[int, int] = field(default_factory=dict)
    """The highest offset that was read of each offsets partition."""

    def after(self, newest_commit: datetime, newest_end: datetime, read_to: Mapping[int, int]) -> "Position":
        commit = max(_time(self.newest_commit), newest_commit)
        end = max(_time(self.newest_end), newest_end)
        known = [each for each in (commit, end) if each > _NO_TIME]
        since = max(min(known) - _SLACK, max(known) - _MOST_SLACK, _time(self.since))
        return Position(
            has_ends=True,
            since=since.isoformat(),
            newest_commit=commit.isoformat(),
            newest_end=end.isoformat(),
            read_to=read_to,
        )


@dataclass(slots=True)
class _Known:
    """What rows of lag are made of."""

    held: DataFrame
    ends: DataFrame
    surveyed: DataFrame

    def give_up(self) -> None:
        for rows in (self.held, self.ends, self.surveyed):
            rows.unpersist()


class LagRounds:
    outputs = (LAG,)
    inputs = (TIMELINE, SNAPSHOT)
    state = (HOLDS, LOG_ENDS)

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        files = {name: snapshot.files for name, snapshot in inputs.items()}
        in_zookeeper = has_zookeeper_groups(tables, SNAPSHOT)
        has_ends = tables.lake.has_rows(STORED[SNAPSHOT], tables.cluster, pc.field("kind") == ENDS)
        nothing = Round({}, written(Position(in_zookeeper=in_zookeeper)), anew=(*self.outputs, *self.state))
        if not has_ends:
            return nothing
        known = _settled(tables, _all(tables, files))
        kept = kept_offsets(tables.frame_of(SNAPSHOT, files[SNAPSHOT])) if in_zookeeper else None
        made = lags(known.held, known.ends, surveyed=known.surveyed, kept=kept)
        rows = tables.write(STORED[LAG], made)
        if not with_state or in_zookeeper:
            known.give_up()
            nothing.files[LAG] = rows
            return nothing
        looks = known.ends.agg(F.max("at").alias("at")).toArrow()["at"][0].as_py()
        _, newest = tables.lake.bounds(STORED[TIMELINE], tables.cluster, "committed")
        after = Position().after(
            _aware(newest),
            _aware(looks),
            read_on({}, tables.columns_of(TIMELINE, files[TIMELINE], _PLACE)),
        )
        state = _state(tables, known, after)
        known.give_up()
        return Round({LAG: rows, **state}, written(after), anew=(*self.outputs, *self.state))

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        before = read(Position, position)
        kinds = pc.field("kind")
        matter = kinds.isin(list(_KINDS)) | (kinds >= OF_ZOOKEEPER)
        looks = _Changed(tables, SNAPSHOT, inputs[SNAPSHOT], matter)
        if not before.has_ends and not before.in_zookeeper:
            return None if looks.came else Round({}, position)
        if not looks.came and not looks.lost and not inputs[TIMELINE].changes:
            return Round({}, position)
        if before.in_zookeeper or looks.lost or looks.has_zookeeper:
            return None
        of = inputs[TIMELINE]
        if of.changes.went:
            commits = _changed_commits(tables, of)
        else:
            places = tables.columns_of(TIMELINE, of.changes.came, _COMMIT)
            after = _after(before, places, looks)
            plain = _plain(tables, places, before, looks, _time(after.since))
            if plain is not None:
                tables = tables.for_rows(plain.seen.num_rows)
            commits = _Commits(partial(_commit_rows, tables, of.changes.came), places, set(), plain)
        return _Step(tables, inputs, before, looks, commits).make()


class _Changed:
    """New rows of surveys."""

    def __init__(self, tables: ClusterTables, name: str, of: Input, matter: pc.Expression) -> None:
        columns = ["kind", "snapshot", "at", "topic", "partition", "group", "body"]
        rows = tables.columns_of(name, of.changes.came, columns, matter)
        self.lost = False
        if of.changes.went:
            both = difference_in_memory(tables.columns_of(name, of.changes.went, columns, matter), rows)
            rows, self.lost = both.came, bool(both.went.num_rows)
        self.came = bool(rows.num_rows)
        self.has_zookeeper = bool(rows.filter(pc.field("kind") >= OF_ZOOKEEPER).num_rows)
        self._rows = rows
        self.times = rows.filter(pc.field("kind") == ENDS)["at"]
        self.newest = _aware(pc.max(self.times).as_py())
        oldest = pc.min(self.times).as_py()
        self.oldest = _LAST_TIME if oldest is None else _aware(oldest)

    def frame(self, tables: ClusterTables) -> DataFrame:
        if not self.came:
            return tables.frame_of(SNAPSHOT, ())
        return frame_of_arrow(tables.spark, self._rows).withColumn("cluster", F.lit(tables.cluster))

    def logs_before(self, moment: datetime) -> set[Log]:
        late = self._rows.filter((pc.field("kind") == ENDS) & (pc.field("at") < pa.scalar(moment)))
        return {(row["topic"], row["partition"]) for row in late.select(_LOG).to_pylist()}


class _Plain(NamedTuple):
    """Committed offsets and from when to when they counted, if all new commits are in order."""

    seen: pa.Table
    """Those that matter for the rows of this round."""
    carry: pa.Table
    """Those that the next round needs."""
    least: pa.Table
    """The lowest offset of each log that counts for the rows of the next round."""


def _plain(
    tables: ClusterTables, new: pa.Table, before: Position, looks: _Changed, after: datetime
) -> _Plain | None:
    """None: something is out of order, and Spark has to find what it changes; or there are too many rows.

    `after`: since when the next round makes rows again.
    """
    since = _time(before.since)
    is_late = looks.logs_before(since) or new.filter(_is_before(since)).num_rows
    if is_late or is_behind(new, before.read_to):
        return None
    carried = tables.rows_now(HOLDS).filter(pc.field(WHY) != SURVEYED)
    if looks.oldest <= _time(before.newest_commit):
        table, is_recent = STORED[TIMELINE], pc.field("committed") >= pa.scalar(since)
        if tables.lake.count(table, tables.cluster, is_recent) > MOST_ROWS:
            return None
        new = tables.lake.rows(table, tables.cluster, is_recent, _COMMIT).cast(new.schema)
        carried = until(carried, since)
    if new.num_rows > MOST_ROWS:
        return None
    known = tables.columns_of(LOG_ENDS, tables.files_now(LOG_ENDS), ["at"])["at"]
    looked = pa.chunked_array([*known.chunks, *looks.times.chunks], known.type)
    times, later = times_of(looked, since), times_of(looked, after)
    parts = []
    for rows_of_groups, carried_of_groups in in_parts(new, carried):
        rows = held_here(carried_of_groups, rows_of_groups)
        least = lowest(rows.filter(counts_after(rows, after)))
        parts.append(_Plain(at_looks(rows, times), to_carry(rows, after, later), least))
    return _Plain(*map(pa.concat_tables, zip(*parts, strict=True)))


class _Commits(NamedTuple):
    """New rows of commit_timeline."""

    rows: Callable[[], DataFrame]
    places: pa.Table
    """Where and when they were committed, in memory."""
    of_lost: set[Log]
    """Logs of commits that are void, or have changed."""
    plain: _Plain | None = None


def _after(before: Position, places: pa.Table, looks: _Changed) -> Position:
    newest = _aware(pc.max(places["committed"]).as_py())
    return before.after(newest, looks.newest, read_on(before.read_to, places))


def _commit_rows(tables: ClusterTables, files: Sequence[Place]) -> DataFrame:
    return tables.frame_of(TIMELINE, files).select("cluster", *_COMMIT)


def _changed_commits(tables: ClusterTables, of: Input) -> _Commits:
    """If some are void, or have changed."""
    rows, went = _commit_rows(tables, of.changes.came), _commit_rows(tables, of.changes.went)
    gone = went.exceptAll(rows).select(*_LOG).distinct().limit(_MOST_AGAIN + 1)
    lost = {(row["topic"], row["partition"]) for row in gone.collect()}
    rows = rows.exceptAll(went)
    return _Commits(lambda: rows, rows.select(*_COMMIT).toArrow(), lost)


def _is_before(moment: datetime) -> pc.Expression:
    """Of a commit; one without a time may be."""
    return pc.field("committed").is_null() | (pc.field("committed") < pa.scalar(moment))


class _Step:
    def __init__(
        self,
        tables: ClusterTables,
        inputs: Mapping[str, Input],
        before: Position,
        looks: _Changed,
        commits: _Commits,
    ) -> None:
        self._tables, self._inputs, self._before = tables, inputs, before
        self._looks, self._commits, self._plain = looks, commits, commits.plain
        self._since = _time(before.since)
        files = {name: tables.files_now(name) for name in (HOLDS, LOG_ENDS)}
        self._holds = tables.frame_of(HOLDS, files[HOLDS])
        self._ends = tables.frame_of(LOG_ENDS, files[LOG_ENDS])
        trimmed = tables.columns_of(LOG_ENDS, files[LOG_ENDS], [*_LOG, "is_trimmed"], pc.field("is_trimmed"))
        self._trimmed = set(_logs(trimmed))

    def make(self) -> Round | None:
        again: set[Log] = set()
        if self._plain is None:
            again = self._commits.of_lost | self._looks.logs_before(self._since) | self._overtaken()
        made = self._make(again)
        if made is None:
            return None
        rows, known = made
        unsure = set(_logs(rows.filter(pc.field("lag_ms").is_null()))) & self._trimmed
        if unsure - again:
            again |= unsure
            known.give_up()
            made = self._make(again)
            if made is None:
                return None
            rows, known = made
        return self._written(rows, known, again)

    def _overtaken(self) -> set[Log]:
        """Logs of commits that belong before others of their position that were read."""
        places, read_to = self._commits.places, self._before.read_to
        late = set(_logs(places.filter(_is_before(self._since))))
        if not is_behind(places, read_to):
            return late
        place = F.struct(*_PLACE)
        lasts = self._holds.where(F.col(WHY) == LAST).select(*_POSITION, place.alias("last_place"))
        early = self._commits.rows().join(lasts, _POSITION).where(place <= F.col("last_place"))
        logs = early.select(*_LOG).distinct().limit(_MOST_AGAIN + 1).collect()
        return late | {(row["topic"], row["partition"]) for row in logs}

    def _make(self, again: set[Log]) -> tuple[pa.Table, _Known] | None:
        """The rows since that moment, but for logs that are made again; and what they are made of, of all."""
        if len(again) > _MOST_AGAIN:
            return None
        tables = self._tables
        if again:
            self._plain = None
        snapshot = self._looks.frame(tables)
        of_surveys = self._holds.where(F.col(WHY) == SURVEYED).withColumn("at", F.col("began"))
        positions = surveyed_positions(snapshot)
        new_ends = ends(snapshot).withColumn("is_trimmed", F.lit(False))
        known = _Known(
            self._held(),
            merged_ends(self._ends.unionByName(new_ends)),
            of_surveys.select(*positions.columns).unionByName(positions),
        )
        if again:
            others = ~_among(again)
            files = {name: of.now.files for name, of in self._inputs.items()}
            every = _all(tables, files, _among(again))
            known = _Known(
                known.held.where(others).unionByName(every.held),
                known.ends.where(others).unionByName(every.ends.withColumn("is_trimmed", F.lit(False))),
                known.surveyed.where(others).unionByName(every.surveyed),
            )
        known = _settled(tables, known)
        since = F.lit(self._since)
        current, looks = known.held, known.ends
        if again:
            current, looks = current.where(~_among(again)), looks.where(~_among(again))
        is_recent = F.col("ended").isNull() | (F.col("ended") > since)
        began = F.when(F.col("began").isNotNull(), F.greatest("began", since))
        rows = lags(
            current.where(is_recent).withColumn("began", began),
            looks,
            surveyed=known.surveyed.where(F.col("at") >= since),
        )
        if again:
            rows = rows.where(~_among(again))
        return rows.where(F.col("at") >= since).toArrow().cast(STORED[LAG].schema), known

    def _held(self) -> DataFrame:
        if self._plain is not None:
            rows = frame_of_arrow(self._tables.spark, self._plain.seen)
            return rows.withColumn("cluster", F.lit(self._tables.cluster))
        is_recent = F.col("committed") >= F.lit(self._since)
        recent = _commit_rows(self._tables, self._inputs[TIMELINE].now.files).where(is_recent)
        earlier = self._holds.where(F.col(WHY) != SURVEYED).withColumn("committed", F.col("began"))
        earlier = earlier.where(~F.coalesce(is_recent, F.lit(False)))
        return held(earlier.select("cluster", *_COMMIT).unionByName(recent))

    def _written(self, rows: pa.Table, known: _Known, again: set[Log]) -> Round:
        tables, table = self._tables, STORED[LAG]
        files: list[NewFile] = []
        gone = [" OR ".join(f"({_condition(log)})" for log in sorted(again))] if again else []
        if again:
            of_again = known.held.where(_among(again))
            surveyed = known.surveyed.where(_among(again))
            made = lags(of_again, known.ends.where(_among(again)), surveyed=surveyed)
            files += tables.write(table, made)
        old = tables.lake.rows(table, tables.cluster, pc.field("at") >= pa.scalar(self._since)).cast(
            table.schema
        )
        old = _without(old.select(table.schema.names), again)
        differ = difference_in_memory(old, rows)
        if differ.went.num_rows:
            first = pc.min(differ.went["at"]).as_py()
            gone.append(f"at >= {literal(first)}")
            is_replaced = pc.field("at") >= pa.scalar(first)
            rows = pa.concat_tables([rows.filter(is_replaced), differ.came.filter(~is_replaced)])
        else:
            rows = differ.came
        files += tables.write(table, rows)
        gone += self._first_told()
        after = _after(self._before, self._commits.places, self._looks)
        state = _state(tables, known, after, self._plain)
        known.give_up()
        return Round(
            {LAG: files, **state}, written(after), anew=(HOLDS, LOG_ENDS), gone={LAG: gone} if gone else {}
        )

    def _first_told(self) -> list[str]:
        """Conditions for rows by surveys of positions whose commits are read for the first time."""
        files = self._tables.files_now(HOLDS)
        by_surveys = self._tables.columns_of(
            HOLDS, files, [*_POSITION, WHY], (pc.field(WHY) == SURVEYED)
        ).select(_POSITION)
        if not by_surveys.num_rows:
            return []
        told = self._commits.places.select(_POSITION)
        first = by_surveys.join(told, _POSITION, join_type="left semi").group_by(_POSITION).aggregate([])
        return [
            f"at < {literal(self._since)} AND {_condition((row['topic'], row['partition']))}"
            f' AND "group" = {literal(row["group"])}'
            for row in first.to_pylist()
        ]


def _all(tables: ClusterTables, files: Mapping[str, Sequence[Place]], where: Column | None = None) -> _Known:
    """Of all rows, or of those of some logs."""
    timeline, snapshot = (
        tables.frame_of(TIMELINE, files[TIMELINE]),
        tables.frame_of(SNAPSHOT, files[SNAPSHOT]),
    )
    if where is not None:
        timeline, snapshot = timeline.where(where), snapshot.where(where)
    return _Known(held(timeline), ends(snapshot), surveyed_positions(snapshot))


def _settled(tables: ClusterTables, known: _Known) -> _Known:
    return _Known(*(tables.settled(rows) for rows in (known.held, known.ends, known.surveyed)))


def _state(
    tables: ClusterTables, known: _Known, after: Position, plain: _Plain | None = None
) -> dict[str, list[NewFile]]:
    """`plain`: if the driver knows the committed offsets that are carried."""
    since = F.lit(_time(after.since))
    told = known.held.select("cluster", *_POSITION).distinct()
    by_surveys = known.surveyed.join(told, ["cluster", *_POSITION], "left_anti")
    newest = by_surveys.groupBy("cluster", *_POSITION).agg(F.max("at").alias("newest"))
    surveyed = (
        by_surveys.join(newest, ["cluster", *_POSITION])
        .where((F.col("at") >= since) | (F.col("at") == F.col("newest")))
        .select("cluster", *_POSITION, F.col("at").alias("began"), "offset", "end_offset", "stable_offset")
        .withColumn(WHY, F.lit(SURVEYED))
    )
    if plain is None:
        counts = F.col("is_last") | F.col("ended").isNull() | (F.col("ended") > since)
        commits = known.held.where(counts).withColumn(
            WHY, F.when(F.col("is_last"), F.lit(LAST)).otherwise(F.lit(BEFORE))
        )
        holds = tables.write(STORED[HOLDS], commits.unionByName(surveyed, allowMissingColumns=True))
        offsets = tables.new_rows(HOLDS, holds).where(F.col("offset").isNotNull())
    else:
        of_surveys = tables.write(STORED[HOLDS], _completed(surveyed))
        seen = lowest(tables.new_rows(HOLDS, of_surveys).select(*_LOG, "offset").toArrow())
        least = pa.concat_tables([seen, plain.least])
        holds = [*tables.write(STORED[HOLDS], plain.carry), *of_surveys]
        offsets = frame_of_arrow(tables.spark, least).withColumn("cluster", F.lit(tables.cluster))
    looked = known.ends
    if "is_trimmed" not in looked.columns:
        looked = looked.withColumn("is_trimmed", F.lit(False))
    kept = carried_ends(looked, offsets.select("cluster", *_LOG, "offset"), since)
    return {HOLDS: holds, LOG_ENDS: tables.write(STORED[LOG_ENDS], kept)}


def _completed(surveyed: DataFrame) -> DataFrame:
    """With all columns of carried_hold."""
    lacking = [field for field in STORED[HOLDS].spark_schema if field.name not in surveyed.columns]
    return surveyed.select("*", *(F.lit(None).cast(each.dataType).alias(each.name) for each in lacking))


def _among(logs: Iterable[Log]) -> Column:
    each = ((F.col("topic") == topic) & (F.col("partition") == number) for topic, number in sorted(logs))
    return F.coalesce(reduce(or_, each), F.lit(False))


def _without(rows: pa.Table, logs: Iterable[Log]) -> pa.Table:
    others = [~((pc.field("topic") == topic) & (pc.field("partition") == number)) for topic, number in logs]
    return rows.filter(reduce(and_, others)) if others else rows


def _condition(log: Log) -> str:
    return f"topic = {literal(log[0])} AND partition = {log[1]}"


def _logs(rows: pa.Table) -> list[Log]:
    return [
        (row["topic"], row["partition"]) for row in rows.select(_LOG).group_by(_LOG).aggregate([]).to_pylist()
    ]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text) if text else _NO_TIME


def _aware(moment: datetime | None) -> datetime:
    if moment is None:
        return _NO_TIME
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
