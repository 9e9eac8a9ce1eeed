"""From decoded rows to Arrow tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelpie.pipeline.decoding.compiled import compiled, copy, differ
from kelpie.pipeline.decoding.records import CONTROL, MALFORMED, OTHER, SENSELESS
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.types import BINARY, BOOLEAN, BYTE, INT, LONG, MOMENT, SHORT, STRING

_NAMES = pa.dictionary(INT, STRING)
_SAME_IN_A_FILE = ("cluster", "source", "replica", "offsets_partition")


def schema_in_file(table: str) -> pa.Schema:
    """The columns of a table that differ between the records of one file."""
    return pa.schema(
        [
            pa.field(column.name, column.type, nullable=not column.required)
            for column in TABLES[table].columns
            if column.name not in _SAME_IN_A_FILE
        ]
    )


COMMITS, MARKERS = (
    pa.schema([field.with_type(_NAMES) if field.type == STRING else field for field in schema_in_file(table)])
    for table in ("offset_commit", "transaction_marker")
)
"""Names are dictionaries: the same few come again and again."""

OTHERS = pa.schema(
    [
        ("log_offset", LONG, False),
        ("written", MOMENT),
        ("key_type", BYTE, False),
        ("key", BINARY),
        ("value", BINARY),
        ("log_epoch", INT),
        ("position", LONG, False),
        ("size", LONG, False),
    ]
)
"""Records of groups and members, as bytes; `position` and `size` are those of the entry in the file.

False: never null.
"""

PAIRS = pa.schema(
    {
        "log_offset": LONG,
        "written": MOMENT,
        "key": BINARY,
        "value": BINARY,
        "producer_id": LONG,
        "producer_epoch": SHORT,
        "log_epoch": INT,
    }
)
"""Records of any kind, as bytes."""

_ABORT, _COMMIT = 0, 1
_LARGEST_TYPE = 127

Rows = NDArray[Any]


def commits(data: NDArray[np.uint8], values: Mapping[str, Rows]) -> pa.Table:
    """One row per commit; texts are dictionaries. A null `offset` is a tombstone: the offset was removed."""
    removed = values["value_version"] < 0
    arrays = [
        _names(data, values[field.name], values[f"{field.name}_size"])
        if field.type == _NAMES
        else _array(field, data, values, removed if field.name == "offset" else None)
        for field in COMMITS
    ]
    return pa.Table.from_arrays(arrays, schema=COMMITS)


def others(data: NDArray[np.uint8], entries: Rows, rows: Rows) -> pa.Table:
    """Records of groups and members."""
    other_rows = rows[rows["kind"] == OTHER]
    key_types = np.clip(other_rows["version"], -1, _LARGEST_TYPE)
    return _table(OTHERS, data, {**_values(entries, other_rows), "key_type": key_types})


def markers(data: NDArray[np.uint8], entries: Rows, rows: Rows) -> pa.Table:
    """Ends of transactions."""
    ends_transaction = (rows["version"] == _COMMIT) | (rows["version"] == _ABORT)
    marker_rows = rows[(rows["kind"] == CONTROL) & ends_transaction]
    is_commit = marker_rows["version"] == _COMMIT
    return _table(MARKERS, data, {**_values(entries, marker_rows), "is_commit": is_commit})


def pairs(data: NDArray[np.uint8], entries: Rows, rows: Rows) -> pa.Table:
    """Records of any kind."""
    return _table(PAIRS, data, _values(entries, rows))


def malformed(
    data: NDArray[np.uint8], entries: Rows, rows: Rows, quoted: int
) -> Sequence[tuple[int, int, int, bytes]]:
    """Of each record that makes no sense: position and size of its entry, its offset, its first bytes."""
    malformed_rows = rows[(rows["kind"] == MALFORMED) | (rows["kind"] == SENSELESS)]
    return [
        (
            int(entries[row["entry"]]["position"]),
            int(entries[row["entry"]]["size"]),
            int(row["log_offset"]),
            b"".join(
                data[start : start + min(size, quoted)].tobytes()
                for start, size in ((row["key"], row["key_size"]), (row["value"], row["value_size"]))
                if size > 0
            )[:quoted],
        )
        for row in malformed_rows
    ]


def _values(entries: Rows, rows: Rows) -> dict[str, Rows]:
    """Columns of records, and of the entries that they are in."""
    entry = entries[rows["entry"]]
    columns = {name: table[name] for table in (entry, rows) for name in table.dtype.names or ()}
    return {**columns, "log_epoch": entry["leader_epoch"]}


def _table(schema: pa.Schema, data: NDArray[np.uint8], values: Mapping[str, Rows]) -> pa.Table:
    return pa.Table.from_arrays([_array(field, data, values) for field in schema], schema=schema)


def _array(
    field: pa.Field, data: NDArray[np.uint8], values: Mapping[str, Rows], missing: Rows | None = None
) -> pa.Array:
    """Texts and bytes are places in the data. Null: where `missing`; else negative numbers, where allowed."""
    numbers = values[field.name]
    if field.type in (BINARY, STRING):
        return _pieces(data, numbers, values[f"{field.name}_size"], field.type)
    if missing is None and field.nullable:
        missing = numbers < 0
    return _column(numbers, field.type, missing)


def _column(values: Rows, kind: pa.DataType, missing: NDArray[np.bool_] | None) -> pa.Array:
    # Not by pa.array(): that one imports pandas, which takes a fifth of a second in every worker.
    if kind == BOOLEAN:
        numbers = np.packbits(values.astype(np.bool_), bitorder="little")
    else:
        numbers = np.ascontiguousarray(values, f"i{kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, len(values), [_valid(missing), pa.py_buffer(numbers)])


def _names(data: NDArray[np.uint8], starts: Rows, sizes: Rows) -> pa.Array:
    """Texts as a dictionary. A group commits its partitions one after the other: what follows the same text
    is not looked up again.
    """
    runs, firsts = np.empty(len(sizes), np.int32), np.empty(len(sizes), np.int64)
    firsts = firsts[: _runs(starts + data.ctypes.data, sizes, runs, firsts)]
    names = _pieces(data, starts[firsts], sizes[firsts], STRING).dictionary_encode()
    codes = names.indices.take(_column(runs, INT, None))
    return pa.DictionaryArray.from_arrays(codes, names.dictionary)


def _pieces(data: NDArray[np.uint8], starts: Rows, sizes: Rows, kind: pa.DataType) -> pa.Array:
    """Parts of the data, one after the other; a negative size is null."""
    missing, sizes = sizes < 0, np.maximum(sizes, 0)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _gather(starts + data.ctypes.data, sizes, out.ctypes.data)
    buffers = [_valid(missing), pa.py_buffer(offsets), pa.py_buffer(out)]
    array = pa.Array.from_buffers(kind, len(sizes), buffers)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # Not UTF-8: read as Java reads it, and as the codec does.
        names = pa.Array.from_buffers(BINARY, len(sizes), buffers).dictionary_encode()
        texts = [name.decode("utf-8", "replace") for name in names.dictionary.to_pylist()]
        return pa.array(texts, STRING).take(names.indices)
    return array


def _valid(missing: NDArray[np.bool_] | None) -> pa.Buffer | None:
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))


@compiled
def _runs(addresses, sizes, runs, firsts):  # type: ignore[no-untyped-def]
    """Numbers rows that follow each other with the same bytes. Returns how many there are of these runs."""
    count = 0
    for place in range(len(sizes)):
        if (
            place == 0
            or sizes[place] != sizes[place - 1]
            or differ(addresses[place], addresses[place - 1], sizes[place])
        ):
            firsts[count] = place
            count += 1
        runs[place] = count - 1
    return count


@compiled
def _gather(addresses, sizes, at):  # type: ignore[no-untyped-def]
    for place in range(len(addresses)):
        at = copy(at, addresses[place], sizes[place])
