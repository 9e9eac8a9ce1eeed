"""offset_loss in rounds.

- Removals, and commits after them, are few: all of them are carried, and all rows about them are made in
  every round. So settings, and logs that come late, may change them.
- Offsets that point outside of the log are those of now: the last commit of each position and the last
  observation of each log are carried, and these rows, too, are made in every round.
- Skipped records (an administrator moved a group that has no members) are found among new commits. If the
  times in which a group had no members have changed, its commits from then on are read again.

A commit that was inserted before others of its position, or was changed, makes its group again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.ordering import MOST_ROWS, in_parts, is_of
from kelpie.pipeline.rounds.differences import among, conditions, difference_in_memory, literal
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.seen import is_behind, read_on
from kelpie.pipeline.rounds.thinning import for_losses
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.storage.frames import ClusterTables, stored_names
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.lifetimes import is_young
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.tables.table import CLUSTER
from kelpie.pipeline.transforms.lag import ENDS, ends, merged_ends
from kelpie.pipeline.transforms.losses import (
    DELETED,
    REMOVED,
    RETENTION,
    SKIPPED,
    is_deletion,
    lasts,
    losses,
    newest_ends,
    removed,
    skipped,
    stranded,
    turns,
)

TIMELINE, GENERATION, SNAPSHOT, EVENTS = (
    "commit_timeline",
    "group_generation",
    "cluster_snapshot",
    "log_event",
)
LOSS, CARRIED, LOG_ENDS, DELETIONS = "offset_loss", "carried_loss", "newest_end", "copied_deletion"
TURN, LAST = "turn", "last"
_POSITION = ["group", "topic", "partition"]
_PLACE = ["offsets_partition", "log_offset"]
_MOST_GROUPS = 500
"""If more groups are to be made again, all are."""


@dataclass(frozen=True, slots=True)
class Position:
    minutes: int | None = None
    """The retention of offsets, if any survey or file tells it."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """The highest offset that was read of each offsets partition."""


class LossRounds:
    outputs = (LOSS,)
    inputs = (TIMELINE, GENERATION, SNAPSHOT, EVENTS)
    state = (CARRIED, LOG_ENDS, DELETIONS)

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        files = {name: snapshot.files for name, snapshot in inputs.items()}
        if not files[TIMELINE] and not with_state:
            return Round({}, anew=self.outputs)
        timeline, generations, snapshot, events = (tables.frame_of(name, files[name]) for name in self.inputs)
        made: dict[str, Sequence[NewFile]] = {
            LOSS: tables.write(STORED[LOSS], losses(timeline, generations, snapshot, events))
        }
        if not with_state:
            return Round(made, anew=self.outputs)
        made[CARRIED] = tables.write(STORED[CARRIED], _carried(turns(timeline), lasts(timeline)))
        made[LOG_ENDS] = tables.write(STORED[LOG_ENDS], _newest(ends(snapshot)))
        deleted = events.where(is_deletion()).select(CLUSTER, "at", "group")
        made[DELETIONS] = tables.write(STORED[DELETIONS], deleted)
        settings = snapshot.where((F.col("kind") == "setting") & F.col("body").contains(RETENTION))
        position = Position(
            _minutes(None, settings.select("body").distinct().toArrow()),
            read_on({}, tables.columns_of(TIMELINE, files[TIMELINE], _PLACE)),
        )
        return Round(made, written(position), anew=(*self.outputs, *self.state))

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        before = read(Position, position)
        news = _News(tables, inputs)
        if news.lost:
            return None
        if not inputs[TIMELINE].changes and not any(rows.num_rows for rows in news):
            return Round({}, position)
        without = _without_members(tables, inputs)
        tables, new, places = _new(tables, inputs, without)
        commits = _Commits(tables, inputs[TIMELINE], before, new, places)
        if len(commits.again) > _MOST_GROUPS:
            return None
        minutes = _minutes(before.minutes, news.settings)
        deleted = tables.frame_of(DELETIONS, tables.files_now(DELETIONS))
        deletions = tables.write(STORED[DELETIONS], news.deletions)
        if deletions:
            deleted = deleted.unionByName(tables.new_rows(DELETIONS, deletions))
        known = _newest(tables.frame_of(LOG_ENDS, tables.files_now(LOG_ENDS)).unionByName(news.ends(tables)))
        carried = tables.write(STORED[CARRIED], _carried(commits.turns(), commits.lasts()))
        state = tables.new_rows(CARRIED, carried)
        told = pa.table({CLUSTER: [tables.cluster], "minutes": pa.array([minutes], pa.int64())})
        retention = frame_of_arrow(tables.spark, told)
        made = removed(_of(state, TURN), retention, deleted).unionByName(
            stranded(_of(state, LAST), known), allowMissingColumns=True
        )
        files, gone = _standing(tables, made)
        empty = frame_of_arrow(tables.spark, without)
        for rows, where in (commits.skipped(empty, news.emptied), commits.emptied_again(empty, news.emptied)):
            files += rows
            gone += where
        return Round(
            {
                LOSS: files,
                CARRIED: carried,
                LOG_ENDS: tables.write(STORED[LOG_ENDS], known),
                DELETIONS: deletions,
            },
            written(Position(minutes, commits.read_to)),
            anew=(CARRIED, LOG_ENDS),
            gone={LOSS: gone} if gone else {},
        )


def _new(
    tables: ClusterTables, inputs: Mapping[str, Input], without: pa.Table
) -> tuple[ClusterTables, DataFrame, pa.Table]:
    """The new commits, in large rounds all, else without those that change nothing; and the places of all.

    `without`: times in which groups had no members.
    """
    of = inputs[TIMELINE].changes
    if of.went or of.rows > MOST_ROWS:
        return tables, tables.frame_of(TIMELINE, of.came), tables.columns_of(TIMELINE, of.came, _PLACE)
    rows = tables.columns_of(TIMELINE, of.came, stored_names(TIMELINE))
    began = pc.min(rows["committed"])
    meanwhile = without.filter(pc.field("ended").is_null() | (pc.field("ended") > began))
    emptied = meanwhile["group"].unique().to_pylist() if rows.num_rows else []
    thinned = pa.concat_tables(for_losses(part, emptied) for part, _ in in_parts(rows, meanwhile))
    return (*tables.of_rows(TIMELINE, thinned), rows.select(_PLACE))


def _without_members(tables: ClusterTables, inputs: Mapping[str, Input]) -> pa.Table:
    """As `transforms.losses.without_members`, for the driver. Most groups have had members all the time."""
    columns = ["group", "began", "ended", "members", "generation"]
    rows = tables.columns_of(GENERATION, inputs[GENERATION].now.files, columns, _is_empty())
    cluster = pa.array([tables.cluster] * rows.num_rows, pa.string())
    return rows.select(["group", "began", "ended"]).append_column(CLUSTER, cluster)


def _is_empty() -> pc.Expression:
    """As `transforms.losses.without_members`."""
    return (pc.field("members") == 0) & (pc.field("generation") > 0)


class _News:
    """What is new in the other inputs: few rows, in memory."""

    def __init__(self, tables: ClusterTables, inputs: Mapping[str, Input]) -> None:
        self.lost = False
        self._tables, self._inputs = tables, inputs
        kind, body = pc.field("kind"), pc.field("body")
        self._looks = self._new(SNAPSHOT, ["kind", "at", "topic", "partition", "body"], kind == ENDS)
        is_retention = (kind == "setting") & pc.match_substring(body, RETENTION)
        self.settings = self._new(SNAPSHOT, ["kind", "body"], is_retention)
        says_deleted = (kind == REMOVED) & pc.match_substring(pc.field("reason"), DELETED)
        self.deletions = self._new(EVENTS, ["kind", "reason", "at", "group"], says_deleted)
        columns = ["group", "began", "ended", "members", "generation"]
        self.emptied = self._new(GENERATION, columns, _is_empty(), both=True)
        """Times without members that are new or changed."""

    def __iter__(self) -> Any:
        return iter((self._looks, self.settings, self.deletions, self.emptied))

    def ends(self, tables: ClusterTables) -> DataFrame:
        if not self._looks.num_rows:
            return tables.frame_of(LOG_ENDS, ())
        rows = frame_of_arrow(tables.spark, self._looks).withColumn(CLUSTER, F.lit(tables.cluster))
        return ends(rows).withColumn("is_trimmed", F.lit(False))

    def _new(
        self, name: str, columns: Sequence[str], where: pc.Expression, *, both: bool = False
    ) -> pa.Table:
        """`both`: with rows that are gone, which are no loss of evidence then."""
        changes = self._inputs[name].changes
        came = self._tables.columns_of(name, changes.came, columns, where)
        if not changes.went:
            return came
        differ = difference_in_memory(self._tables.columns_of(name, changes.went, columns, where), came)
        if both:
            return pa.concat_tables(differ)
        self.lost |= bool(differ.went.num_rows)
        return differ.came


class _Made(NamedTuple):
    files: list[NewFile]
    gone: list[str]


class _Commits:
    """New rows of commit_timeline, and groups to be made again."""

    def __init__(
        self, tables: ClusterTables, of: Input, before: Position, new: DataFrame, places: pa.Table
    ) -> None:
        self._tables, self._of = tables, of
        self.again: set[str] = set()
        if of.changes.went:
            went = tables.frame_of(TIMELINE, of.changes.went)
            lost = went.exceptAll(new).select("group").distinct().limit(_MOST_GROUPS + 1)
            self.again |= {row["group"] for row in lost.collect()}
            new = new.exceptAll(went)
        carried = tables.frame_of(CARRIED, tables.files_now(CARRIED))
        self.again |= _overtaken(places, before, new, carried)
        self.read_to = read_on(before.ends, places)
        if self.again:
            others = ~F.col("group").isin(*self.again)
            new, carried = new.where(others), carried.where(others)
        self._new, self._carried = new, carried

    def turns(self) -> DataFrame:
        return self._with_again(_of(self._carried, TURN).unionByName(turns(self._new)), turns)

    def lasts(self) -> DataFrame:
        return self._with_again(lasts(_of(self._carried, LAST).unionByName(self._new)), lasts)

    def skipped(self, empty: DataFrame, emptied: pa.Table) -> _Made:
        """Skipped records of two kinds of groups: this round makes the group again as a whole, or the times
        in which the group had no members have not changed.
        """
        groups = set(emptied["group"].to_pylist()) - self.again
        rows = self._with_again(self._new, lambda every: every)
        others = rows.where(~F.col("group").isin(*groups)) if groups else rows
        made = skipped(others, empty).toArrow()
        gone = f"kind = {literal(SKIPPED)} AND {among('group', self.again)}" if self.again else None
        return _Made(_written(self._tables, made), [gone] if gone else [])

    def emptied_again(self, empty: DataFrame, emptied: pa.Table) -> _Made:
        """Skipped records of all other groups, from the first time without members that has changed."""
        emptied = emptied.filter(~is_of(self.again))
        if not emptied.num_rows:
            return _Made([], [])
        since: datetime = pc.min(emptied["began"]).as_py()
        groups = sorted(set(emptied["group"].to_pylist()))
        table = STORED[TIMELINE]
        is_affected = (pc.field("committed") >= pa.scalar(since)) & is_of(groups)
        rows = self._tables.lake.rows(table, self._tables.cluster, is_affected).cast(table.schema)
        commits = frame_of_arrow(self._tables.spark, rows, table.spark_schema)
        made = skipped(commits, empty).toArrow()
        which = f"kind = {literal(SKIPPED)} AND at >= {literal(since)} AND {among('group', groups)}"
        return _Made(_written(self._tables, made), [which])

    def _with_again(self, rows: DataFrame, function: Any) -> DataFrame:
        if not self.again:
            return rows
        every = self._tables.frame_of(TIMELINE, self._of.now.files).where(F.col("group").isin(*self.again))
        return rows.unionByName(function(every))


def _overtaken(places: pa.Table, before: Position, new: DataFrame, carried: DataFrame) -> set[str]:
    """Groups of new rows that come before others of their position."""
    if not is_behind(places, before.ends):
        return set()
    place = F.struct(*_PLACE)
    known = _of(carried, LAST).select(*_POSITION, place.alias("last_place"))
    early = new.join(known, _POSITION).where(place <= F.col("last_place")).select("group").distinct()
    return {row["group"] for row in early.limit(_MOST_GROUPS + 1).collect()}


def _standing(tables: ClusterTables, made: DataFrame) -> tuple[list[NewFile], list[str]]:
    """Rows of all kinds but one are made in every round: what differs is written."""
    table = STORED[LOSS]
    is_made = pc.field("kind") != SKIPPED
    floor = tables.lake.floor(table, tables.cluster)
    if floor is not None:  # What ended before it stays as it is.
        is_made &= is_young(table, floor)
    old = tables.lake.rows(table, tables.cluster, is_made).select(table.schema.names).cast(table.schema)
    rows = made.select(*table.schema.names).toArrow().cast(table.schema).filter(is_made)
    differ = difference_in_memory(old, rows)
    return _written(tables, differ.came), conditions(table, differ.went)


def _written(tables: ClusterTables, rows: pa.Table) -> list[NewFile]:
    table = STORED[LOSS]
    return tables.write(table, rows.select(table.schema.names).cast(table.schema))


def _carried(of_turns: DataFrame, of_lasts: DataFrame) -> DataFrame:
    return of_turns.withColumn(WHY, F.lit(TURN)).unionByName(of_lasts.withColumn(WHY, F.lit(LAST)))


def _of(carried: DataFrame, why: str) -> DataFrame:
    return carried.where(F.col(WHY) == why).drop(WHY)


def _newest(ends: DataFrame) -> DataFrame:
    rows = newest_ends(merged_ends(ends)).withColumn("stable_offset", F.lit(None).cast("bigint"))
    return rows.withColumn("is_trimmed", F.lit(False))


def _minutes(before: int | None, settings: pa.Table) -> int | None:
    """The longest retention that the settings name."""
    found = [] if before is None else [before]
    for text in settings["body"].unique().to_pylist():
        body = json.loads(text)
        if body.get("name") == RETENTION and str(body.get("value")).isdecimal():
            found.append(int(body["value"]))
    return max(found, default=None)
