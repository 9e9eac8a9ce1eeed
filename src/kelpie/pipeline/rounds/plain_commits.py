"""commit_timeline of commits that come in order and outside of transactions, without Spark.

Almost all commits of a round are like that. Theory: `transforms.commits` says which commits count. In a
partition of the offsets topic in which nothing waits for the end of a transaction, no new record is
transactional, and all of them are behind what was read and before the beginning of any newer leader epoch,
each new record counts, and is compared with the one before it of its position. That is one sort, and the
driver does it: Spark takes longer to plan its query. The rows are the same; tests of rounds hold both ways
to one batch.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import begins, ends, keys, numbers
from kelpie.pipeline.rounds.seen import Seen
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.transforms.commits import SETTLED

_IN_LOG = ("group", "topic", "partition", "offsets_partition")
_COMPARED = ("offset", "committed", "leader_epoch", "expires")
"""What the next commit is compared with."""


_TOLD = [*_IN_LOG, "log_offset", "written", "is_transactional", *_COMPARED]


class Plain(NamedTuple):
    timeline: pa.Table
    """New rows of commit_timeline."""
    carried: pa.Table
    """The last commit of each position."""


def special(
    new: pa.Table, carried: pa.Table, markers: Collection[pa.Table], *, before: Seen, after: Seen
) -> set[int]:
    """Offsets partitions in which a record is late, transactional, or of a leader that was deposed.

    `markers`: new ones and carried ones. `before`, `after`: what was read without and with the new rows.
    """
    partition = "offsets_partition"
    found = set(new.filter(pc.field("is_transactional"))[partition].to_pylist())
    found |= set(carried.filter(pc.field(WHY) != SETTLED)[partition].to_pylist())
    for rows in markers:
        found |= set(rows[partition].unique().to_pylist())
    bounds = new.group_by([partition, "log_epoch"]).aggregate([("log_offset", "min"), ("log_offset", "max")])
    for row in bounds.to_pylist():
        number, epoch = row[partition], row["log_epoch"]
        ended = after.ended(number, epoch) if epoch is not None else None
        is_late = row["log_offset_min"] <= before.ends.get(number, -1)
        if is_late or (ended is not None and row["log_offset_max"] >= ended):
            found.add(number)
    return found


def made(new: pa.Table, carried: pa.Table) -> Plain:
    """`new`: rows of offset_commit; `carried`: of carried_commit. Both of partitions that are not special."""
    rows = pa.concat_tables([carried.select(new.column_names), new]).combine_chunks()
    is_new = np.arange(rows.num_rows) >= carried.num_rows
    key, offset = keys(rows, _IN_LOG), numbers(rows["log_offset"])
    order = np.lexsort((offset, key))
    first = begins(key[order])
    is_copy = ~first & np.append(False, offset[order][1:] == offset[order][:-1])
    order = order[~is_copy]
    key, is_new = key[order], is_new[order]
    return Plain(
        _timeline(rows.select(_TOLD).take(pa.array(order)), begins(key)).filter(pa.array(is_new)),
        _settled(rows.take(pa.array(order[ends(key)]))),
    )


def _timeline(rows: pa.Table, first: Any) -> pa.Table:
    place = np.arange(rows.num_rows) - 1
    before = rows.select(_COMPARED).take(pa.array(place, mask=first))
    return pa.table(
        {
            **{
                name: rows[name]
                for name in ("group", "topic", "partition", "offsets_partition", "log_offset")
            },
            "committed": pc.coalesce(rows["committed"], rows["written"]),
            "offset": rows["offset"],
            "previous_offset": before["offset"],
            "previous_committed": before["committed"],
            "advance": pc.subtract(rows["offset"], before["offset"]),
            "leader_epoch": rows["leader_epoch"],
            "is_transactional": rows["is_transactional"],
            "previous_leader_epoch": before["leader_epoch"],
            "previous_expires": before["expires"],
        }
    )


def _settled(rows: pa.Table) -> pa.Table:
    """A removal is like nothing for the next commit."""
    tells = pc.or_(pc.is_valid(rows[_COMPARED[0]]), pc.is_valid(rows[_COMPARED[1]]))
    for name in _COMPARED[2:]:
        tells = pc.or_(tells, pc.is_valid(rows[name]))
    rows = rows.filter(tells)
    return rows.append_column(WHY, pa.array([SETTLED] * rows.num_rows, pa.string()))
