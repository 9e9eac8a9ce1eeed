"""Sorts and groups rows that the driver holds, without Spark."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
MOST_ROWS = 5_000_000
"""New rows of a round that the driver holds. Spark gets all rows of larger rounds."""
PART_ROWS = 1 << 18
"""Of these, so many are sorted and copied at once: the driver needs little more memory than for the rows."""
_DENSE = 4
"""Numbers up to so many times the count of rows are renumbered without a sort."""


def keys(rows: pa.Table, names: Sequence[str]) -> Any:
    """A number for each row: the same for rows that are alike in these columns."""
    key = np.zeros(rows.num_rows, np.int32)
    for name in names:
        own, count = _codes(rows[name])
        key = _renumbered(key.astype(np.int64) * count + own)
    return key


def _codes(column: pa.ChunkedArray) -> tuple[Any, int]:
    """Numbers for the values of a column, and the first number that is free. Null has one, too."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks = column.dictionary_encode().chunks  # All have one dictionary.
    if not chunks:
        return np.zeros(0, np.int32), 1
    null = len(chunks[0].dictionary)
    return np.concatenate([np.asarray(pc.fill_null(chunk.indices, null)) for chunk in chunks]), null + 1


def _renumbered(key: Any) -> Any:
    """The same order, from 0 on and without gaps."""
    most = int(key.max(initial=0)) + 1
    if most > _DENSE * len(key):
        return np.unique(key, return_inverse=True)[1]
    is_there = np.zeros(most, bool)
    is_there[key] = True
    return (np.cumsum(is_there, dtype=np.int32) - 1)[key]


def in_parts(rows: pa.Table, carried: pa.Table) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Both in parts, of which each has all rows of its groups, and of `rows` about PART_ROWS."""
    if rows.num_rows <= PART_ROWS:
        yield rows, carried
        return
    names = pa.chunked_array([*rows["group"].chunks, *carried["group"].chunks], pa.string())
    group, count = _codes(names)
    own, others = group[: rows.num_rows], group[rows.num_rows :]
    part = _renumbered(np.cumsum(np.bincount(own, minlength=count)) // PART_ROWS)
    own, others = part[own], part[others]
    for number in range(int(part[-1]) + 1):
        yield rows.filter(pa.array(own == number)), carried.filter(pa.array(others == number))


def is_of(groups: Iterable[str]) -> pc.Expression:
    """A condition: the row is of one of these groups."""
    return pc.field("group").isin(pa.array(sorted(groups), pa.string()))


def by_group(rows: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Rows as plain data, those of a group together, in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["group"], []).append(row)
    return found


def rows_by_group(rows: pa.Table) -> dict[str, int]:
    """How many rows each group has."""
    counted = rows["group"].value_counts()
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def begins(sorted_key: Any) -> Any:
    """For rows in order of their keys, whether a row is the first one of its key."""
    if not len(sorted_key):
        return np.zeros(0, bool)
    return np.append(True, sorted_key[1:] != sorted_key[:-1])


def ends(sorted_key: Any) -> Any:
    """For rows in order of their keys, whether a row is the last one of its key."""
    first = begins(sorted_key)
    return np.append(first[1:], True) if len(first) else first


def run_starts(rows: pa.Table, names: Sequence[str]) -> Any:
    """Where rows begin that are alike in these columns. Those that are alike follow each other."""
    count = rows.num_rows
    is_first = np.zeros(count, bool)
    is_first[:1] = True
    for name in names:
        column = rows[name].combine_chunks()
        differs = pc.not_equal(column.slice(1), column.slice(0, max(0, count - 1)))
        is_first[1:] |= np.asarray(differs)
    return np.flatnonzero(is_first)


def numbers(column: pa.ChunkedArray, null: int = -1) -> Any:
    """Whole numbers; of times, those since 1970 in the unit of the column."""
    return np.asarray(pc.fill_null(column.cast(pa.int64()), null).combine_chunks())


def milliseconds(column: pa.ChunkedArray, null: int) -> Any:
    """Of times, those since 1970. `null`: for a row without a time."""
    values = numbers(column, null)
    return np.where(values == null, null, values // _PER_MS[column.type.unit])
