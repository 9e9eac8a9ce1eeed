"""From decoded rows to Arrow tables. Names are dictionaries: each stands in the table once."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelpie.pipeline.decoding.compiled import byte, compiled
from kelpie.pipeline.decoding.records import CONTROL, MALFORMED, OTHER, SENSELESS, Decoded
from kelpie.pipeline.tables.types import BINARY, BOOLEAN, BYTE, INT, LONG, MOMENT, SHORT, STRING

_NAME = pa.dictionary(pa.int32(), STRING)

COMMITS = pa.schema(
    {
        "log_offset": LONG,
        "written": MOMENT,
        "group": _NAME,
        "topic": _NAME,
        "partition": INT,
        "offset": LONG,
        "leader_epoch": INT,
        "metadata": _NAME,
        "committed": MOMENT,
        "expires": MOMENT,
        "producer_id": LONG,
        "producer_epoch": SHORT,
        "is_transactional": BOOLEAN,
        "value_version": BYTE,
        "log_epoch": INT,
    }
)
"""One row per commit; a null `offset` is a tombstone: the offset was removed."""

OTHERS = pa.schema(
    {
        "log_offset": LONG,
        "written": MOMENT,
        "key_type": BYTE,
        "key": BINARY,
        "value": BINARY,
        "log_epoch": INT,
        "position": LONG,
        "size": LONG,
    }
)
"""Records of groups and members, as bytes; `position` and `size` are those of the entry in the file."""

MARKERS = pa.schema(
    {
        "log_offset": LONG,
        "written": MOMENT,
        "producer_id": LONG,
        "producer_epoch": SHORT,
        "is_commit": BOOLEAN,
        "log_epoch": INT,
    }
)
"""Ends of transactions."""

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

_NEVER = np.zeros(0, np.bool_)

Rows = NDArray[Any]


@compiled
def _gather(addresses, sizes, offsets, out):  # type: ignore[no-untyped-def]
    for code in range(len(addresses)):
        for place in range(sizes[code]):
            out[offsets[code] + place] = byte(addresses[code] + place)


def _dictionary(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _gather(addresses, sizes, offsets, out)
    array = pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(out))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # Not UTF-8: read as Java reads it, and as the codec does.
        raw = out.tobytes()
        return pa.array(
            [raw[first:last].decode("utf-8", "replace") for first, last in pairwise(offsets)], STRING
        )
    return array


def _column(values: NDArray[Any], kind: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Null where `missing`, or where negative."""
    # Not by pa.array(): that one imports pandas, which takes a fifth of a second in every worker.
    missing = values < 0 if missing is None else missing
    nulls = None if not missing.any() else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    if kind == BOOLEAN:
        numbers = np.packbits(values.astype(np.bool_), bitorder="little")
    else:
        numbers = np.ascontiguousarray(values, f"i{kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, len(values), [nulls, pa.py_buffer(numbers)])


def commits(decoded: Decoded) -> pa.Table:
    removed = decoded.commits["value_version"] < 0
    missing = {"offset": removed} | dict.fromkeys(("log_offset", "partition", "is_transactional"), _NEVER)
    arrays = []
    for field in COMMITS:
        values = decoded.commits[field.name]
        if field.name in decoded.names:
            codes = _column(values, INT)
            arrays.append(
                pa.DictionaryArray.from_arrays(codes, _dictionary(*decoded.names[field.name].known()))
            )
        else:
            arrays.append(_column(values, field.type, missing.get(field.name)))
    return pa.Table.from_arrays(arrays, schema=COMMITS)


def others(data: NDArray[np.uint8], entries: Rows, rows: Rows) -> pa.Table:
    other_rows = rows[rows["kind"] == OTHER]
    entry = entries[other_rows["entry"]]
    return pa.Table.from_arrays(
        [
            _column(other_rows["log_offset"], LONG, _NEVER),
            _column(other_rows["written"], MOMENT),
            _column(np.clip(other_rows["version"], -1, _LARGEST_TYPE), BYTE, _NEVER),
            _pieces(data, other_rows["key"], other_rows["key_size"]),
            _pieces(data, other_rows["value"], other_rows["value_size"]),
            _column(entry["leader_epoch"], INT),
            _column(entry["position"], LONG, _NEVER),
            _column(entry["size"], LONG, _NEVER),
        ],
        schema=OTHERS,
    )


def markers(entries: Rows, rows: Rows) -> pa.Table:
    marker_rows = rows[
        (rows["kind"] == CONTROL) & ((rows["version"] == _COMMIT) | (rows["version"] == _ABORT))
    ]
    entry = entries[marker_rows["entry"]]
    return pa.Table.from_arrays(
        [
            _column(marker_rows["log_offset"], LONG, _NEVER),
            _column(marker_rows["written"], MOMENT),
            _column(entry["producer_id"], LONG, _NEVER),
            _column(entry["producer_epoch"], SHORT, _NEVER),
            _column(marker_rows["version"] == _COMMIT, BOOLEAN, _NEVER),
            _column(entry["leader_epoch"], INT),
        ],
        schema=MARKERS,
    )


def pairs(data: NDArray[np.uint8], entries: Rows, rows: Rows) -> pa.Table:
    entry = entries[rows["entry"]]
    return pa.Table.from_arrays(
        [
            _column(rows["log_offset"], LONG, _NEVER),
            _column(rows["written"], MOMENT),
            _pieces(data, rows["key"], rows["key_size"]),
            _pieces(data, rows["value"], rows["value_size"]),
            _column(entry["producer_id"], LONG),
            _column(entry["producer_epoch"], SHORT),
            _column(entry["leader_epoch"], INT),
        ],
        schema=PAIRS,
    )


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


def _pieces(data: NDArray[np.uint8], starts: Rows, sizes: Rows) -> pa.Array:
    """Bytes of the data, one after the other; a negative size is null."""
    missing, sizes = sizes < 0, np.maximum(sizes, 0)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _gather(starts + data.ctypes.data, np.ascontiguousarray(sizes), offsets, out)
    nulls = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(BINARY, len(sizes), [nulls, pa.py_buffer(offsets), pa.py_buffer(out)])
