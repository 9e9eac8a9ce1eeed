"""What differs between the rows that a table has and the rows that it should have."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.storage.lake import quoted
from kelpie.pipeline.tables import LakeTable

_SIDE = "side"
MOST_CONDITIONS = 200
"""Rows that are deleted one by one."""


class Difference(NamedTuple):
    came: pa.Table
    went: pa.Table


def difference_in_memory(old: pa.Table, fresh: pa.Table) -> Difference:
    """Rows of `fresh` that `old` lacks, and the reverse, of plain values. Rows that are twice count twice."""
    sides = pa.concat_tables(
        [
            rows.append_column(_SIDE, pa.array(np.full(rows.num_rows, side, np.int64)))
            for rows, side in ((fresh, 1), (old, -1))
        ]
    )
    counted = sides.group_by(fresh.column_names).aggregate([(_SIDE, "sum")])
    rows = counted.rename_columns([*fresh.column_names, _SIDE])
    return _split(rows.filter(pc.field(_SIDE) != 0), fresh.schema)


def difference_of_few(old: pa.Table, fresh: pa.Table) -> Difference:
    """The same for few rows in memory, whose columns may be nested."""

    def beyond(rows: pa.Table, others: pa.Table) -> pa.Table:
        left = Counter(map(repr, others.to_pylist()))
        places = []
        for place, row in enumerate(map(repr, rows.to_pylist())):
            if left[row]:
                left[row] -= 1
            else:
                places.append(place)
        return rows.take(pa.array(places, pa.int64()))

    return Difference(beyond(fresh, old), beyond(old, fresh))


def _split(rows: pa.Table, schema: pa.Schema) -> Difference:
    sides = np.asarray(rows[_SIDE].combine_chunks()) if rows.num_rows else np.zeros(0, np.int64)
    plain = rows.select(schema.names).cast(schema)
    came, went = (
        plain.take(pa.array(np.repeat(np.arange(len(sides)), np.maximum(each, 0))))
        for each in (sides, -sides)
    )
    return Difference(came, went)


def conditions(table: LakeTable, rows: pa.Table) -> list[str]:
    """Conditions in SQL that these rows meet, and no others that differ in a column of plain values."""
    plain = [
        column.name
        for column in table.in_files
        if not pa.types.is_nested(column.type) and not pa.types.is_map(column.type)
    ]
    found = dict.fromkeys(_condition(plain, row) for row in rows.select(plain).to_pylist())
    return [" OR ".join(f"({each})" for each in found)] if found else []


def _condition(names: Sequence[str], row: Mapping[str, Any]) -> str:
    return " AND ".join(
        f'"{name}" IS NULL' if row[name] is None else f'"{name}" = {literal(row[name])}' for name in names
    )


def among(name: str, values: Iterable[str]) -> str:
    """A condition in SQL: the column has one of these texts."""
    return f'"{name}" IN ({", ".join(map(quoted, sorted(values)))})'


def literal(value: object) -> str:
    """A value in SQL. A time is a text: deltalake gives it the type of the column that it is compared with.

    A literal of type TIMESTAMP has no zone there, and cannot be compared with the bounds of files.
    """
    if isinstance(value, datetime):
        return f"'{value:%Y-%m-%dT%H:%M:%S.%fZ}'"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else quoted(str(value))
