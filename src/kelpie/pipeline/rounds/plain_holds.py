"""From when to when committed offsets counted, of new commits that are in order, without Spark.

`transforms.lag.held` says the same for all rows. A round of lag needs few of these rows: those that counted
when somebody looked at the end of a log, and the last one of each position. These are carried, too, and those
that counted at the moment since which rows are made again. If the next round hears of a look between two that
are known, it needs the others since that moment: `until` and commit_timeline have them.
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


def until(carried: pa.Table, since: Any) -> pa.Table:
    """Of carried_hold, commits of before that moment. All later ones are in commit_timeline.

    With these, `held` gives each row that ended after that moment: of such a row, the next commit is later
    than that moment; and the row itself is, or it is carried.
    """
    is_later = pc.fill_null(pc.greater_equal(carried["began"], pa.scalar(since)), False)
    earlier = carried.filter(pc.invert(is_later))
    why = pa.array([LAST] * earlier.num_rows, pa.string())
    return earlier.set_column(earlier.column_names.index(WHY), WHY, why)


def at_looks(rows: pa.Table, looks: Any) -> pa.Table:
    """Those that counted at one of these times (`times_of`), and the last one of each position."""
    return rows.filter(pc.or_(rows["is_last"], _is_seen(rows, looks)))


def times_of(looks: pa.ChunkedArray, since: Any) -> Any:
    """The times since that moment, in order, each once."""
    return np.unique(numbers(looks.filter(pc.greater_equal(looks, pa.scalar(since)))))


def to_carry(rows: pa.Table, since: Any, looks: Any) -> pa.Table:
    """Of rows that counted after `since`, those that counted at it or at looks; and the last ones."""
    is_later = pc.fill_null(pc.greater(rows["began"], pa.scalar(since)), False)
    is_carried = pc.or_(pc.invert(is_later), _is_seen(rows, looks))
    kept = rows.filter(pc.or_(rows["is_last"], pc.and_(counts_after(rows, since), is_carried)))
    why = pc.if_else(kept["is_last"], LAST, BEFORE)
    return kept.drop_columns("is_last").append_column(WHY, why)


def counts_after(rows: pa.Table, since: Any) -> pa.ChunkedArray:
    """For each row, whether looks after `since` may need it."""
    is_open = pc.or_(rows["is_last"], pc.is_null(rows["ended"]))
    return pc.or_(is_open, pc.fill_null(pc.greater(rows["ended"], pa.scalar(since)), False))


def _is_seen(rows: pa.Table, looks: Any) -> pa.Array:
    began, ended = numbers(rows["began"]), numbers(rows["ended"])
    never = np.iinfo(np.int64).max
    next_look = np.append(looks, never)[np.searchsorted(looks, began)]
    has_ended = np.asarray(pc.is_valid(rows["ended"]).combine_chunks())
    is_seen = np.asarray(pc.is_valid(rows["began"]).combine_chunks()) & (next_look != never)
    return pa.array(is_seen & (~has_ended | (next_look <= ended)))


def lowest(rows: pa.Table) -> pa.Table:
    """The lowest offset of each log."""
    of_logs = rows.filter(pc.field("offset").is_valid()).group_by(["topic", "partition"])
    return of_logs.aggregate([("offset", "min")]).rename_columns(["topic", "partition", "offset"])
