"""Segment files that were read before: which of their old rows are void.

- Quarantined parts at a place that was read again: a torn tail, once the file has grown.
- Records at whose offset the file now holds another record. That happens when a log was truncated and written
  on, or when another cluster's log is in the same place. From the first such offset on, old rows are void.

A compacted file has no other records, only fewer: its old rows stay, for tables keep what the disk dropped.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelpie.pipeline.sources.segments.files import (
    COMMITS,
    GROUPS,
    MARKERS,
    QUARANTINE,
    SegmentFile,
    SegmentProgress,
    SegmentTaskResult,
)
from kelpie.pipeline.storage.lake import Lake, quoted
from kelpie.pipeline.storage.parquet import readable
from kelpie.pipeline.tables import LakeTable
from kelpie.places import Place

_RECORDS = (COMMITS, MARKERS, GROUPS)
_TELLING = ("written", "committed", "offset", "partition", "producer_id", "generation")
"""Columns that two different records do not share: others were written at other times."""
_BEFORE = " before"
_AT_ONCE = 50
"""Conditions in one."""


def void(
    lake: Lake,
    files: Sequence[SegmentFile],
    before: Mapping[str, SegmentProgress],
    results: Sequence[SegmentTaskResult],
) -> dict[str, list[tuple[str, str]]]:
    """Which older rows go, by table: clusters, and conditions in SQL. `files`: those that were just read."""
    gone: dict[tuple[str, str], list[str]] = {}
    for file in files:
        known = before.get(file.key)
        if known is None:
            continue
        if file.start == 0 or known.is_torn:
            unread = gone.setdefault((QUARANTINE.name, file.cluster), [])
            unread.append(f"source = {quoted(file.name)} AND position >= {file.start}")
        result, read = next((result, read) for result in results for read in result.read if read.file == file)
        is_reread = read.offsets is not None and read.offsets[0] < known.known_to
        first = _first_difference(lake, file, result) if is_reread else None
        if first is not None:
            for table in _RECORDS:
                replica = "IS NULL" if file.replica is None else f"= {file.replica}"
                gone.setdefault((table.name, file.cluster), []).append(
                    f"source = {quoted(file.name)} AND offsets_partition = {file.partition} "
                    f"AND replica {replica} AND log_offset >= {first}"
                )
    by_table: dict[str, list[tuple[str, str]]] = {}
    for (table_name, cluster), conditions in gone.items():
        for start in range(0, len(conditions), _AT_ONCE):
            some = " OR ".join(f"({condition})" for condition in conditions[start : start + _AT_ONCE])
            by_table.setdefault(table_name, []).append((cluster, some))
    return by_table


def _first_difference(lake: Lake, file: SegmentFile, result: SegmentTaskResult) -> int | None:
    """The first offset at which the old rows and the new ones differ."""
    offsets = []
    for table in _RECORDS:
        new = [lake.path(table) / written.path for written in result.files[table.name]]
        old = lake.files(table, file.cluster)
        if new and old:
            offsets.append(_differ(_rows(table, file, new), _rows(table, file, old)))
    return min((offset for offset in offsets if offset is not None), default=None)


def _rows(table: LakeTable, file: SegmentFile, paths: Sequence[Place]) -> pa.Table:
    """One segment's, and numbers only: so they fit."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - it loads pandas, and is seldom needed.

    columns = ["log_offset", *(name for name in _TELLING if name in table.schema.names)]
    replica = pc.field("replica")
    wanted = (
        (pc.field("offsets_partition") == file.partition)
        & (pc.field("source") == file.name)
        & (replica.is_null() if file.replica is None else replica == file.replica)
    )
    held = pa.schema(
        [field for field in table.schema if field.name in {column.name for column in table.in_files}]
    )
    if all(isinstance(path, Path) for path in paths):
        names = [str(path) for path in paths]
        return ds.dataset(names, schema=held, format="parquet").to_table(columns, wanted)
    parts = [
        pq.read_table(readable(path), columns=columns, schema=held, filters=wanted, partitioning=None)
        for path in paths
    ]
    return pa.concat_tables(parts)


def _differ(new: pa.Table, old: pa.Table) -> int | None:
    both = new.join(old, "log_offset", join_type="inner", right_suffix=_BEFORE)
    if not both.num_rows:
        return None
    unlike = [_unlike(both[name], both[name + _BEFORE]) for name in new.column_names if name != "log_offset"]
    first = pc.min(both["log_offset"].filter(reduce(pc.or_, unlike))).as_py()
    return None if first is None else int(first)


def _unlike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nulls are like each other."""
    both_null = pc.and_(one.is_null(), other.is_null())
    return pc.invert(pc.or_(pc.fill_null(pc.equal(one, other), False), both_null))
