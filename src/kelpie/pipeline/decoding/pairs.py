"""Records of the offsets topic that came over the network.

`read_pairs` takes columns of keys and values, and gives the same tables as a segment. It lays each pair out
as an old message and decodes that, so that the formats of records are known in one place.

`read_fetched` takes the bytes of a Fetch response, which are entries as in a segment, and gives such columns,
without control records and without records of aborted transactions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelpie.pipeline.decoding import columns
from kelpie.pipeline.decoding.compiled import PAD, compiled, copy, put32
from kelpie.pipeline.decoding.entries import CODEC_BITS, CONTROL_BIT, ENTRY, REASONS, TRANSACTIONAL_BIT, Walk
from kelpie.pipeline.decoding.records import SENSELESS, list_records
from kelpie.pipeline.decoding.segment import (
    QUOTED_BYTES,
    Read,
    Unread,
    decoded_entries,
    inflated_entries,
    padded,
)
from kelpie.pipeline.tables.types import BINARY, LONG

_SIZES = 8
"""Each message has two of four bytes."""
_US_PER_MS = 1000


# Pairs to tables


def read_pairs(pairs: pa.Table) -> Iterator[Read]:
    """Rows with `log_offset`, `written`, `key`, `value`, `producer_id`, `producer_epoch` and `log_epoch`.

    What is unread has the record's offset for a position.
    """
    if not pairs.num_rows:
        return
    keys, values = _whole(pairs["key"].cast(BINARY)), _whole(pairs["value"].cast(BINARY))
    (key, key_sizes), (value, value_sizes) = _places(keys), _places(values)
    sizes = np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0) + _SIZES
    ends = np.cumsum(sizes)
    entries = np.zeros(pairs.num_rows, ENTRY)
    entries["end"], entries["begin"], entries["count"] = ends, ends - sizes, 1
    entries["base_offset"] = entries["position"] = numbers_of(pairs["log_offset"])
    entries["size"] = sizes - _SIZES
    written = numbers_of(pairs["written"])
    entries["base_timestamp"] = np.where(written < 0, -1, written // _US_PER_MS)
    entries["producer_id"] = numbers_of(pairs["producer_id"])
    entries["producer_epoch"] = numbers_of(pairs["producer_epoch"])
    entries["leader_epoch"] = numbers_of(pairs["log_epoch"])
    data = np.zeros(int(ends[-1]) + PAD, np.uint8)
    key_heads, value_heads = _swapped(key_sizes), _swapped(value_sizes)
    _lay_out(data.ctypes.data, key_heads, key, key_sizes, value_heads, value, value_sizes)
    yield from decoded_entries(data, entries, [])


def _places(array: pa.Array) -> tuple[int, NDArray[np.int64]]:
    """Where the bytes of an array begin, which live as long as the array does; and sizes, −1 for null."""
    valid, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    sizes = np.diff(places)
    if valid is not None:
        sizes[~_bits(valid, array)] = -1
    return (data.address if data is not None else 0) + int(places[0]), sizes


def numbers_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Null is −1."""
    array = _whole(column)
    kind = f"i{array.type.bit_width // 8}"
    valid, data = array.buffers()
    numbers = np.frombuffer(data, kind)[array.offset : array.offset + len(array)].astype(np.int64)
    if valid is not None:
        numbers[~_bits(valid, array)] = -1
    return numbers


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _bits(valid: pa.Buffer, array: pa.Array) -> NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(np.bool_)


def _swapped(sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """As they stand in a message: the first byte is the highest."""
    return sizes.astype(">i4").view(np.int32)


@compiled
def _lay_out(at, key_heads, key, key_sizes, value_heads, value, value_sizes):  # type: ignore[no-untyped-def]
    for row in range(len(key_sizes)):
        put32(at, np.int64(key_heads[row]))
        size = max(key_sizes[row], 0)
        at = copy(at + 4, key, size)
        key += size
        put32(at, np.int64(value_heads[row]))
        size = max(value_sizes[row], 0)
        at = copy(at + 4, value, size)
        value += size


# Answers to Fetch to pairs


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an answer holds of the offsets that were asked for."""

    pairs: pa.Table
    unread: tuple[Unread, ...]
    following: int | None
    """The offset behind its last entry; None if none is whole."""


def read_fetched(raw: bytes, aborted: Sequence[tuple[int, int]], start: int, stop: int) -> Fetched:
    """Records from `start` to before `stop`. `aborted`: producer and first offset, as the broker gives them.

    The last entry may be cut off, as Kafka does up to 0.10; that is not reported.
    """
    data = padded([raw])
    walk = Walk(0, len(raw), len(raw))
    tables, unread = [columns.PAIRS.empty_table()], list[Unread]()
    following: int | None = None
    committed = _Committed(aborted)
    while walk.at < walk.stop:
        piece = data[walk.at :]
        entries, gaps = walk.step(piece, len(raw) - walk.at)
        unread += [
            Unread(position, size, REASONS[reason], raw[position : position + min(size, QUOTED_BYTES)])
            for position, size, reason in gaps.tolist()
            if position != walk.torn
        ]
        if len(entries):
            following = int(entries["base_offset"][-1] + entries["last_delta"][-1]) + 1
        tables += _pairs(piece, entries[committed.among(entries)], unread)
    return Fetched(_between(pa.concat_tables(tables), start, stop), tuple(unread), following)


def _pairs(piece: NDArray[np.uint8], entries: NDArray[Any], unread: list[Unread]) -> Iterator[pa.Table]:
    packed = (entries["attributes"] & CODEC_BITS) != 0
    for data, data_entries in ((piece, entries[~packed]), *inflated_entries(piece, entries[packed], unread)):
        rows = list_records(data, data_entries)
        senseless = rows["kind"] == SENSELESS
        for row in rows[senseless]:
            begin, size = int(row["key"]), int(row["key_size"])
            head = data[begin : begin + min(size, QUOTED_BYTES)].tobytes()
            reason = f"the record at offset {row['log_offset']} makes no sense"
            unread.append(Unread(int(row["log_offset"]), size, reason, head))
        yield columns.pairs(data, data_entries, rows[~senseless])


class _Committed:
    """Which entries count, decided as a consumer with isolation level read_committed does.

    Records of a producer do not count from the start of an aborted transaction to its next marker.
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._aborted = sorted((first, producer) for producer, first in aborted)
        self._out: set[int] = set()

    def among(self, entries: NDArray[Any]) -> NDArray[np.bool_]:
        control = (entries["attributes"] & CONTROL_BIT != 0) & (entries["magic"] == 2)
        mask: NDArray[np.bool_] = ~control
        if not self._aborted and not self._out:
            return mask
        transactional = (entries["attributes"] & TRANSACTIONAL_BIT != 0) & (entries["magic"] == 2)
        for place in np.flatnonzero(transactional):
            entry = entries[place]
            last = entry["base_offset"] + entry["last_delta"]
            while self._aborted and self._aborted[0][0] <= last:
                self._out.add(self._aborted.pop(0)[1])
            if control[place]:
                self._out.discard(int(entry["producer_id"]))
            elif int(entry["producer_id"]) in self._out:
                mask[place] = False
        return mask


def _between(pairs: pa.Table, start: int, stop: int) -> pa.Table:
    if not pairs.num_rows:
        return pairs
    offsets = numbers_of(pairs["log_offset"])
    wanted = (offsets >= start) & (offsets < stop)
    if wanted.all():
        return pairs
    return pairs.take(
        pa.Array.from_buffers(LONG, int(wanted.sum()), [None, pa.py_buffer(np.flatnonzero(wanted))])
    )
