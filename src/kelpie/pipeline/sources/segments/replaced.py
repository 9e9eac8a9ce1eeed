"""Segment files that were read before: which of their rows stand no more.

- What could not be read at a place that is read again: a torn tail, once the file has grown.
- Records at whose offset the file now holds something else. A log that was cut and written on, or the log of
  another cluster in the same place, has such: from the first one on, the old rows are void.

A compacted file says nothing else, it only says less: its old rows stay, for the tables are to know what the
disk has forgotten.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.sources.segments.files import (
    COMMITS,
    GROUPS,
    MARKERS,
    QUARANTINE,
    Outcome,
    Progress,
    SegmentFile,
)
from kelpie.pipeline.storage.lake import Lake, quoted
from kelpie.pipeline.tables import Table

_RECORDS = (COMMITS, MARKERS, GROUPS)
_TELLING = ("written", "committed", "offset", "partition", "producer_id", "generation")
"""Columns by which two records are told apart: other records were written at other times."""
_BEFORE = " before"
_AT_ONCE = 50
"""Conditions in one."""


def void(
    lake: Lake,
    read: Sequence[tuple[SegmentFile, int]],
    before: Mapping[str, Progress],
    outcomes: Sequence[Outcome],
) -> dict[str, list[tuple[str, str]]]:
    """By table, which older rows go: clusters, and conditions in SQL. `read`: files, and where they began."""
    gone: dict[tuple[str, str], list[str]] = {}
    for file, start in read:
        known = before.get(file.key)
        if known is None:
            continue
        own = [it for it in outcomes if any(done.part.path == file.path for done in it.done)]
        if start == 0 or known.is_torn:
            unread = gone.setdefault((QUARANTINE.name, file.cluster), [])
            unread.append(f"source = {quoted(_name(file))} AND position >= {start}")
        first = _first_difference(lake, file, own) if _overlaps(file, own, known) else None
        if first is not None:
            for table in _RECORDS:
                replica = "IS NULL" if file.replica is None else f"= {file.replica}"
                gone.setdefault((table.name, file.cluster), []).append(
                    f"source = {quoted(_name(file))} AND offsets_partition = {file.partition} "
                    f"AND replica {replica} AND log_offset >= {first}"
                )
    found: dict[str, list[tuple[str, str]]] = {}
    for (table_name, cluster), conditions in gone.items():
        for start in range(0, len(conditions), _AT_ONCE):
            some = " OR ".join(f"({it})" for it in conditions[start : start + _AT_ONCE])
            found.setdefault(table_name, []).append((cluster, some))
    return found


def _name(file: SegmentFile) -> str:
    """What rows call it."""
    return file.source or file.path


def _overlaps(file: SegmentFile, outcomes: Sequence[Outcome], known: Progress) -> bool:
    """Whether it was read at offsets that were read before."""
    done = (done for it in outcomes for done in it.done if done.part.path == file.path)
    return any(it.offsets is not None and it.offsets[0] < known.known_to for it in done)


def _first_difference(lake: Lake, file: SegmentFile, outcomes: Sequence[Outcome]) -> int | None:
    """The first offset at which the rows of old and what tasks have just read tell different things."""
    found = []
    for table in _RECORDS:
        new = [lake.path(table) / each.path for it in outcomes for each in it.files[table.name]]
        old = lake.files(table, file.cluster)
        if new and old:
            found.append(_differ(_rows(table, file, new), _rows(table, file, old)))
    return min((it for it in found if it is not None), default=None)


def _rows(table: Table, file: SegmentFile, paths: Sequence[Path]) -> pa.Table:
    """One segment's, and numbers only: so they fit."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - it loads pandas, and is seldom needed.

    columns = ["log_offset", *(name for name in _TELLING if name in table.schema.names)]
    replica = pc.field("replica")
    wanted = (
        (pc.field("offsets_partition") == file.partition)
        & (pc.field("source") == _name(file))
        & (replica.is_null() if file.replica is None else replica == file.replica)
    )
    held = pa.schema([it for it in table.schema if it.name in {column.name for column in table.in_files}])
    return ds.dataset([str(path) for path in paths], schema=held, format="parquet").to_table(columns, wanted)


def _differ(new: pa.Table, old: pa.Table) -> int | None:
    both = new.join(old, "log_offset", join_type="inner", right_suffix=_BEFORE)
    if not both.num_rows:
        return None
    each = [_unlike(both[name], both[name + _BEFORE]) for name in new.column_names if name != "log_offset"]
    found = pc.min(both["log_offset"].filter(reduce(pc.or_, each))).as_py()
    return None if found is None else int(found)


def _unlike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nulls are like each other."""
    both_null = pc.and_(one.is_null(), other.is_null())
    return pc.invert(pc.or_(pc.fill_null(pc.equal(one, other), False), both_null))
