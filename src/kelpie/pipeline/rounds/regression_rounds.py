"""offset_regression in rounds.

Positions are followed, each by its commits in commit_timeline. A commit that went back is open until the
group is back where it had been. Of each position the highest offset is carried, and the commits that are
open; the rows of all open ones are in files of their own, and each round writes them anew.

A commit that was inserted before others of its position, or was changed, makes its group again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Snapshot, quoted
from kelpie.pipeline.storage.typed_data import read, written
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.transforms.positions import LAST, carried_positions, regressions

TIMELINE, REGRESSION, CARRIED = "commit_timeline", "offset_regression", "carried_position"
_POSITION = ["group", "topic", "partition", "offsets_partition"]
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
            written(Position(_ends({}, tables, files))),
            anew=(*self.outputs, *self.state),
        )

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        of = inputs[TIMELINE]
        if not of.changes:
            return Round({}, position)
        before = read(Position, position)
        new = tables.frame_of(TIMELINE, of.changes.came)
        again: set[str] = set()
        if of.changes.went:
            went = tables.frame_of(TIMELINE, of.changes.went)
            lost = went.exceptAll(new).select("group").distinct()
            again |= {row["group"] for row in lost.collect()}
            new = new.exceptAll(went)
        carried = tables.frame_of(CARRIED, tables.lake.snapshot(STORED[CARRIED], tables.cluster).files)
        after = _ends(before.ends, tables, of.changes.came)
        again |= _overtaken(tables, of, before, new, carried)
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


def _overtaken(
    tables: ClusterTables, of: Input, before: Position, new: DataFrame, carried: DataFrame
) -> set[str]:
    """Groups of new rows that come before others of their position."""
    first = tables.columns_of(TIMELINE, of.changes.came, ["offsets_partition", "log_offset"])
    lowest = first.group_by("offsets_partition").aggregate([("log_offset", "min")]).to_pylist()
    if not any(row["log_offset_min"] <= before.ends.get(row["offsets_partition"], -1) for row in lowest):
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


def _ends(before: Mapping[int, int], tables: ClusterTables, files: Any) -> dict[int, int]:
    places = tables.columns_of(TIMELINE, files, ["offsets_partition", "log_offset"])
    ends = dict(before)
    for row in places.group_by("offsets_partition").aggregate([("log_offset", "max")]).to_pylist():
        partition = row["offsets_partition"]
        ends[partition] = max(ends.get(partition, -1), row["log_offset_max"])
    return ends
