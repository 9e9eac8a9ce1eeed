"""The newest rows of groups: what the rules are asked about. Each function leaves out what is older.

The live doctor, too, reads the end of the offsets topic only. So no group is too large for a task, and what
a round costs does not grow with history. `recent_commits` and `recent_events` can be applied to their own
result and more rows, so rounds carry what they leave:

    recent(recent(rows) + more) == recent(rows + more)

- Commits: of each position the newest MOST_COMMITS. Rules are asked about those of the last COMMITS_MS, and
  the newest FEW_COMMITS in any case (`judged_commits`). Patience follows from the rhythm of commits, and a
  fault of an hour ago must be seen beside the time before it.
- Generations: of each group the newest MOST_GENERATIONS that are at most WEEK_MS older than its newest, and
  the newest FEW_GENERATIONS in any case (`generations`).
- Lines of logs: of each group the newest MOST_EVENTS that are at most WEEK_MS older than its newest, as
  earlier surveys count for a week. Lines without a time, and lines about no group, are all kept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import begins, keys, milliseconds, numbers, run_starts

FEW_COMMITS, MOST_COMMITS = 20, 200
"""Of one position."""
COMMITS_MS = 6 * 3_600_000
FEW_GENERATIONS, MOST_GENERATIONS = 10, 200
"""Of one group."""
MOST_EVENTS = 2_000
"""Of one group."""
WEEK_MS = 7 * 24 * 3_600_000
_NO_TIME = -(1 << 62)
_POSITION = ("group", "topic", "partition")
_PLACE = ("offsets_partition", "log_offset")


def recent_commits(rows: pa.Table) -> pa.Table:
    """By position, and under each by its place in the log. `rows`: of commit_timeline, or with these columns.

    What rounds carry is in this order already, so that to sort it with a few more rows costs little.
    """
    if not rows.num_rows:
        return rows
    order, rank = _ranked(keys(rows, _POSITION), [numbers(rows[name]) for name in _PLACE])
    return rows.take(pa.array(order[rank < MOST_COMMITS][::-1]))


def positions(rows: pa.Table) -> Any:
    """Where each position begins. `rows`: as `recent_commits` leaves them."""
    return run_starts(rows, _POSITION)


def judged_commits(rows: pa.Table) -> pa.Table:
    """Those that rules are asked about. `rows`: as `recent_commits` leaves them."""
    if not rows.num_rows:
        return rows
    starts = positions(rows)
    counts = np.diff(np.append(starts, rows.num_rows))
    at = milliseconds(rows["committed"], _NO_TIME)
    newest = np.repeat(np.maximum.reduceat(at, starts), counts)
    rank = np.repeat(starts + counts, counts) - np.arange(rows.num_rows)
    return rows.filter(pa.array((at >= newest - COMMITS_MS) | (rank <= FEW_COMMITS)))


def recent_events(rows: pa.Table) -> pa.Table:
    """`rows`: of log_event."""
    of_group = np.asarray(pc.is_valid(rows["group"]).combine_chunks())
    if not of_group.any():
        return rows
    timed = of_group & np.asarray(pc.is_valid(rows["at"]).combine_chunks())
    key = keys(rows, ["group"])
    at = milliseconds(rows["at"], _NO_TIME)
    order, rank = _ranked(key[timed], [at[timed]])
    # All lines of the time of the last one that counts are kept: which of them comes first does not matter.
    since = np.full(int(key.max()) + 1, _NO_TIME)
    is_last = rank == MOST_EVENTS - 1
    since[key[timed][order][is_last]] = at[timed][order][is_last]
    newest = np.full(len(since), _NO_TIME)
    np.maximum.at(newest, key[timed], at[timed])
    is_young = (at >= since[key]) & (at >= newest[key] - WEEK_MS)
    return rows.filter(pa.array(~timed | is_young))


def _ranked(key: Any, by: Sequence[Any]) -> tuple[Any, Any]:
    """An order in which rows of a key are together; and the place of each row in it, from the newest on."""
    order = np.lexsort((*reversed(by), key))[::-1]
    sorted_key = key[order]
    first = np.maximum.accumulate(np.where(begins(sorted_key), np.arange(len(order)), 0))
    return order, np.arange(len(order)) - first
