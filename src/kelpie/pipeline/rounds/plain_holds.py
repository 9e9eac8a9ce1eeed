"""From when to when committed offsets counted, of new commits that are in order, without Spark.

`transforms.lag.held` says the same for all rows. A round of lag needs few of these rows: those that counted
when somebody looked at the end of a log, and the last one of each position. But the next round may hear of a
look of the last minute, so all rows since then are carried; only the driver sees them.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import ends, keys, numbers
from kelpie.pipeline.tables.state import WHY

LAST, BEFORE, SURVEYED = "last", "before", "surveyed"
"""Why a row is carried: no later commit was read; an earlier one; by a survey."""
_POSITION = ("group", "topic", "partition")
_PLACE = ("offsets_partition", "log_offset")
_NAMES = [*_POSITION, *_PLACE, "began", "ended", "is_last", "offset"]


def held(carried: pa.Table, new: pa.Table) -> pa.Table:
    """`carried`: of carried_hold. `new`: of commit_timeline; each behind all that are carried."""
    lasts = carried.filter(pc.field(WHY) == LAST)
    told = new.select([*_POSITION, *_PLACE, "committed", "offset"])
    told = told.rename_columns([*_POSITION, *_PLACE, "began", "offset"])
    rows = pa.concat_tables([lasts.select(told.column_names), told]).combine_chunks()
    key = keys(rows, _POSITION)
    order = np.lexsort((*(numbers(rows[name]) for name in reversed(_PLACE)), key))
    rows, is_last = rows.take(pa.array(order)), ends(key[order])
    following = pa.array(np.arange(rows.num_rows) + 1, mask=is_last)
    rows = rows.append_column("ended", rows["began"].take(following))
    rows = rows.append_column("is_last", pa.array(is_last))
    earlier = carried.filter(pc.field(WHY) == BEFORE)
    earlier = earlier.append_column("is_last", pa.array(np.zeros(earlier.num_rows, bool)))
    return pa.concat_tables([rows.select(_NAMES), earlier.select(_NAMES)])


def at_looks(rows: pa.Table, looks: pa.ChunkedArray) -> pa.Table:
    """Those that counted at one of these times, and the last one of each position."""
    times = np.unique(numbers(looks.drop_null()))
    began, ended = numbers(rows["began"]), numbers(rows["ended"])
    never = np.iinfo(np.int64).max
    next_look = np.append(times, never)[np.searchsorted(times, began)]
    has_ended = np.asarray(pc.is_valid(rows["ended"]).combine_chunks())
    is_seen = np.asarray(pc.is_valid(rows["began"]).combine_chunks()) & (next_look != never)
    is_seen &= ~has_ended | (next_look <= ended)
    return rows.filter(pc.or_(rows["is_last"], pa.array(is_seen)))


def to_carry(rows: pa.Table, since: Any) -> pa.Table:
    """Those that later looks may need: the last ones, and those that counted after `since`."""
    counts = pc.or_(rows["is_last"], pc.is_null(rows["ended"]))
    counts = pc.or_(counts, pc.fill_null(pc.greater(rows["ended"], pa.scalar(since)), False))
    kept = rows.filter(counts)
    why = pc.if_else(kept["is_last"], LAST, BEFORE)
    return kept.drop_columns("is_last").append_column(WHY, why)


def lowest(rows: pa.Table) -> pa.Table:
    """The lowest offset of each log."""
    of_logs = rows.filter(pc.field("offset").is_valid()).group_by(["topic", "partition"])
    return of_logs.aggregate([("offset", "min")]).rename_columns(["topic", "partition", "offset"])
