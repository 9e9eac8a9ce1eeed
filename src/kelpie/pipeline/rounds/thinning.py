"""Leaves new commits out of a round that change nothing in a table.

The driver reads the new commits and leaves most of them out before Spark plans anything. Each function says
for which table its rows are enough; tests of rounds hold the result to that of all rows.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import ends, keys, numbers

_POSITION = ("group", "topic", "partition")
_IN_LOG = (*_POSITION, "offsets_partition")
_PLACE = ("offsets_partition", "log_offset")


def for_regressions(new: pa.Table, open_ones: pa.Table) -> pa.Table:
    """All rows of positions that go back, or are back behind where they had been; of others, two.

    These two are the first row with the highest offset, and the last row. `new`: of commit_timeline.
    `open_ones`: positions with a regression that has not ended.
    """
    both = pa.concat_tables([new.select(_IN_LOG), open_ones.select(_IN_LOG)])
    key = keys(both, _IN_LOG)
    own, is_open = key[: new.num_rows], np.zeros(int(key.max(initial=0)) + 1, bool)
    is_open[key[new.num_rows :]] = True
    goes_back = np.asarray(pc.fill_null(pc.less(new["advance"], 0), False).combine_chunks())
    is_open[own[goes_back]] = True
    log_offset = numbers(new["log_offset"])
    offset = numbers(new["offset"], np.iinfo(np.int64).min)
    return new.filter(pa.array(is_open[own] | _last(own, [log_offset]) | _last(own, [offset, -log_offset])))


def for_losses(new: pa.Table, without_members: Collection[str]) -> pa.Table:
    """Removals and commits after them, the last row of each position, and jumps of groups without members.

    `new`: of commit_timeline. `without_members`: groups that had no members at some time.
    """
    is_turn = pc.or_(pc.is_null(new["offset"]), pc.is_null(new["previous_offset"]))
    is_jump = pc.and_(
        pc.fill_null(pc.greater(new["advance"], 0), False),
        pc.is_in(new["group"], pa.array(sorted(without_members), pa.string())),
    )
    is_last = _last(keys(new, _POSITION), [numbers(new[name]) for name in _PLACE])
    return new.filter(pc.or_(pc.or_(is_turn, is_jump), pa.array(is_last)))


def _last(key: Any, by: list[Any]) -> Any:
    """For each row, whether it is the last one of its key in this order."""
    order = np.lexsort((*reversed(by), key))
    is_last = np.zeros(len(order), bool)
    is_last[order[ends(key[order])]] = True
    return is_last
