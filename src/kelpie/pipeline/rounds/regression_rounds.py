"""offset_regression in rounds.

Positions are followed, each by its commits in commit_timeline. A commit that went back is open until the
group is back where it had been. Of each position the highest offset is carried, and the commits that are
open; the rows of all open ones are in files of their own, and each round writes them anew.

A commit that was inserted before others of its position, or was changed, makes its group again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.ordering import MOST_ROWS, in_parts
from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.rounds.seen import is_behind, read_on
from kelpie.pipeline.rounds.thinning import for_regressions
from kelpie.pipeline.storage.frames import ClusterTables, stored_names
from kelpie.pipeline.storage.lake import Snapshot, quoted
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.transforms.positions import BACK, LAST, carried_positions, regressions

TIMELINE, REGRESSION, CARRIED = "commit_timeline", "offset_regression", "carried_position"
_POSITION = ["group", "topic", "partition", "offsets_partition"]
_PLACE = ["offsets_partition", "log_offset"]
_OPEN = "regained IS NULL"


@dataclass(frozen=True, slots=True)
class Position:
    ends: Mapping[int, int] = field(default_factory=dict)
    """The highest offset that was read of each offsets partition."""


class RegressionRounds:
    outputs = (REGRESSION,)
    inputs = (TIMELINE,)
    state = (CARRIED,)

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        files = inputs[TIMELINE].files
        if not files and not with_state:
            return Round({}, anew=self.outputs)
        timeline = tables.frame_of(TIMELINE, files)
        made = regressions(timeline)
        if not with_state:
            return Round({REGRESSION: tables.write(STORED[REGRESSION], made)}, anew=self.outputs)
        rows = made.toArrow()
        return Round(
            {REGRESSION: _written(tables, rows), CARRIED: _state(tables, timeline)},
            written(Position(read_on({}, tables.columns_of(TIMELINE, files, _PLACE)))),
            anew=(*self.outputs, *self.state),
        )

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        of = inputs[TIMELINE]
        if not of.changes:
            return Round({}, position)
        before = read(Position, position)
        tables, new, places = _new(tables, of)
        after = read_on(before.ends, places)
        again: set[str] = set()
        if of.changes.went:
            went = tables.frame_of(TIMELINE, of.changes.went)
            lost = went.exceptAll(new).select("group").distinct()
            again |= {row["group"] for row in lost.collect()}
            new = new.exceptAll(went)
        carried = tables.frame_of(CARRIED, tables.files_now(CARRIED))
        again |= _overtaken(places, before, new, carried)
        fed = carried.where(F.col(WHY) != LAST).drop(WHY).unionByName(new)
        # The last row of a position that has no new one stays the last one.
        lasts = carried.where(F.col(WHY) == LAST).drop(WHY)
        gone = [_OPEN]
        if again:
            of_others = ~F.col("group").isin(*again)
            whole = tables.frame_of(TIMELINE, of.now.files).where(~of_others)
            fed, lasts = fed.where(of_others).unionByName(whole), lasts.where(of_others)
            gone.append(f"group IN ({', '.join(map(quoted, sorted(again)))})")
        rows = regressions(fed).toArrow()
        return Round(
            {REGRESSION: _written(tables, rows), CARRIED: _state(tables, fed, lasts)},
            written(Position(after)),
            anew=self.state,
            gone={REGRESSION: gone},
        )


def _new(tables: ClusterTables, of: Input) -> tuple[ClusterTables, DataFrame, pa.Table]:
    """The new rows, in large rounds all, else without those that change nothing; and the places of all."""
    if of.changes.went or of.changes.rows > MOST_ROWS:
        places = tables.columns_of(TIMELINE, of.changes.came, _PLACE)
        return tables, tables.frame_of(TIMELINE, of.changes.came), places
    open_ones = tables.columns_of(
        CARRIED, tables.files_now(CARRIED), [*_POSITION, WHY], pc.field(WHY) == BACK
    )
    rows = tables.columns_of(TIMELINE, of.changes.came, stored_names(TIMELINE))
    thinned = pa.concat_tables(for_regressions(*part) for part in in_parts(rows, open_ones))
    return (*tables.of_rows(TIMELINE, thinned), rows.select(_PLACE))


def _overtaken(places: pa.Table, before: Position, new: DataFrame, carried: DataFrame) -> set[str]:
    """Groups of new rows that come before others of their position."""
    if not is_behind(places, before.ends):
        return set()
    last = carried.where(F.col(WHY) == LAST).select(*_POSITION, F.col("log_offset").alias("last_offset"))
    early = new.join(last, _POSITION).where(F.col("log_offset") <= F.col("last_offset"))
    return {row["group"] for row in early.select("group").distinct().collect()}


def _written(tables: ClusterTables, rows: Any) -> list[Any]:
    """Open rows in files of their own: they are replaced in every round."""
    table = STORED[REGRESSION]
    is_open = pc.field("regained").is_null()
    return [
        file
        for some in (rows.filter(~is_open), rows.filter(is_open))
        if some.num_rows
        for file in tables.write(table, some.select(table.schema.names).cast(table.schema))
    ]


def _state(tables: ClusterTables, fed: DataFrame, lasts: DataFrame | None = None) -> list[Any]:
    rows = carried_positions(fed, WHY)
    if lasts is not None:
        newest = rows.where(F.col(WHY) == LAST).drop(WHY).unionByName(lasts)
        whole = F.struct(*(name for name in newest.columns if name not in ("cluster", *_POSITION)))
        last = newest.groupBy("cluster", *_POSITION).agg(F.max_by(whole, "log_offset").alias("newest"))
        of_last = last.select("cluster", *_POSITION, "newest.*").withColumn(WHY, F.lit(LAST))
        rows = rows.where(F.col(WHY) != LAST).unionByName(of_last)
    return tables.write(STORED[CARRIED], rows)
