"""Records of the offsets topic that count, without Spark: for rows that the driver holds.

`transforms.commits` has the theory, and says the same to Spark; a test holds both to each other.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.ordering import keys, numbers

_NEVER = np.iinfo(np.int64).max
_NO_EPOCH = -1
_POSITION = ["group", "topic", "partition"]
_PENDING = [*_POSITION, "offsets_partition", "log_offset", "producer_id"]


def standing(records: pa.Table) -> pa.Table:
    """Without records of an older leader at offsets where a newer leader has written."""
    if not records.num_rows:
        return records
    offset, key = numbers(records["log_offset"]), keys(records, ["offsets_partition", "log_epoch"])
    first = np.unique(key, return_index=True)[1]
    partition = numbers(records["offsets_partition"])[first]
    epoch = numbers(records["log_epoch"], _NO_EPOCH)[first]
    began, ended = np.full(len(first), _NEVER), np.full(len(first), _NEVER)
    np.minimum.at(began, key, offset)
    newer: dict[int, int] = {}
    """Where the first newer epoch of a partition begins."""
    for number in np.argsort(-epoch):
        if epoch[number] != _NO_EPOCH:
            of = int(partition[number])
            ended[number] = newer.get(of, _NEVER)
            newer[of] = min(newer.get(of, _NEVER), int(began[number]))
    stands = offset < ended[key]
    return records if stands.all() else records.filter(pa.array(stands))


def once(records: pa.Table) -> pa.Table:
    """Those that stand, without copies."""
    return _without_copies(standing(records))


def _without_copies(rows: pa.Table) -> pa.Table:
    if not rows.num_rows:
        return rows
    first = np.unique(keys(rows, ["offsets_partition", "log_offset"]), return_index=True)[1]
    return rows if len(first) == rows.num_rows else rows.take(pa.array(np.sort(first)))


def counted(commits: pa.Table, markers: pa.Table) -> pa.Table:
    """The commits that count; those outside of transactions as often as there are copies."""
    rows = standing(commits)
    is_transactional = pc.field("is_transactional")
    if not pc.any(rows["is_transactional"]).as_py():
        return rows
    judged = _without_copies(rows.filter(is_transactional | pc.field("offset").is_null()))
    pending, tombstones = judged.filter(is_transactional), judged.filter(~is_transactional)
    endings = _endings(once(markers))
    removals: dict[tuple[Any, ...], list[int]] = {}
    for row in tombstones.select([*_POSITION, "log_offset"]).to_pylist():
        removals.setdefault(tuple(row[name] for name in _POSITION), []).append(row["log_offset"])
    kept = []
    for place, row in enumerate(pending.select(_PENDING).to_pylist()):
        ended_at = _committed_at(
            endings.get((row["offsets_partition"], row["producer_id"]), ()), row["log_offset"]
        )
        removed = removals.get(tuple(row[name] for name in _POSITION), ())
        if ended_at is not None and not any(row["log_offset"] < each < ended_at for each in removed):
            kept.append(place)
    return pa.concat_tables([rows.filter(~is_transactional), pending.take(pa.array(kept, pa.int64()))])


def _endings(markers: pa.Table) -> dict[tuple[int, int], list[tuple[int, bool]]]:
    """By partition and producer, where its transactions ended, and whether they were committed."""
    found: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    names = ["offsets_partition", "producer_id", "log_offset", "is_commit"]
    for partition, producer, offset, is_commit in zip(
        *(markers[name].to_pylist() for name in names), strict=True
    ):
        found.setdefault((partition, producer), []).append((offset, is_commit))
    return {key: sorted(endings) for key, endings in found.items()}


def _committed_at(endings: Sequence[tuple[int, bool]], offset: int) -> int | None:
    """Where the transaction ends that is open at this offset; None: it goes on, or was aborted."""
    place = bisect_right(endings, (offset, True))
    return endings[place][0] if place < len(endings) and endings[place][1] else None
