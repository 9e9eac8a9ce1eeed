"""A segment file of the offsets topic to tables.

A file is read piece by piece, and a piece is decoded some rows at a time: memory is bounded, whatever the
file holds or claims. It is read and not mapped, for a living broker may truncate it meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelpie.pipeline.decoding import columns
from kelpie.pipeline.decoding.columns import COMMITS, MARKERS, OTHERS
from kelpie.pipeline.decoding.compiled import PAD
from kelpie.pipeline.decoding.entries import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    ENTRY,
    HEADER,
    REASONS,
    Walk,
)
from kelpie.pipeline.decoding.records import decode
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import INFLATED_LIMIT, Codec
from kelpie.wire.records.compression import inflate

PIECE_BYTES = 16 * 1024 * 1024
PIECE_ROWS = 1 << 19
QUOTED_BYTES = 4096
"""Bytes that are kept of what cannot be read."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a file that could not be read: where, how much, why, and its first bytes."""

    position: int
    size: int
    reason: str
    head: bytes


@dataclass(frozen=True, slots=True)
class Read:
    """What a piece holds."""

    commits: pa.Table
    others: pa.Table
    markers: pa.Table
    unread: tuple[Unread, ...]


@dataclass
class Reader:
    """A file from `start` on, where an entry begins. Iterate over it; then `end` says how far it was read."""

    file: BufferedReader | BytesIO
    start: int = 0
    stop: int | None = None
    lowest: int | None = None
    """The first offset of the file, by its name."""
    offsets: tuple[int, int] | None = field(init=False, default=None)
    """Of the first record, and behind the last one."""
    newest: int = field(init=False, default=-1)
    """When the newest record was written, in milliseconds; −1 if no record has a time."""
    _walk: Walk = field(init=False)
    _data: NDArray[np.uint8] = field(init=False, default_factory=lambda: np.empty(0, np.uint8))

    def __post_init__(self) -> None:
        size = self.file.seek(0, 2)
        stop = size if self.stop is None else self.stop
        self._walk = Walk(self.start, stop, size, lowest=-1 if self.lowest is None else self.lowest)

    @property
    def end(self) -> int:
        """Behind the last entry."""
        return self._walk.at

    @property
    def tail(self) -> int:
        """Where the end of the file begins that holds no whole entry; that of the range if all is whole."""
        return self._walk.tail if self._walk.tail >= 0 else max(self._walk.stop, self._walk.at)

    def __iter__(self) -> Iterator[Read]:
        walk = self._walk
        wanted = PIECE_BYTES
        while walk.at < walk.stop:
            begin = walk.at
            size = self._load(begin, min(wanted, walk.whole - begin))
            entries, gaps = walk.step(self._data, size)
            self._note(entries)
            wanted = PIECE_BYTES
            if walk.at == begin < walk.stop:  # One entry is longer than the piece.
                wanted = HEADER + int.from_bytes(self._data[8:HEADER].tobytes(), "big")
            yield from _tables(self._data, entries, [self._gap(*gap) for gap in gaps.tolist()])

    def _note(self, entries: NDArray[Any]) -> None:
        if len(entries):
            first, last = entries["base_offset"].min(), (entries["base_offset"] + entries["last_delta"]).max()
            known = self.offsets or (int(first), -1)
            self.offsets = min(known[0], int(first)), max(known[1], int(last) + 1)
            self.newest = max(self.newest, int(entries["max_timestamp"].max()))

    def _load(self, start: int, size: int) -> int:
        """The next bytes into `_data`: how many there are."""
        if len(self._data) < size + PAD:
            self._data = np.empty(size + PAD, np.uint8)
        self.file.seek(start)
        got = self.file.readinto(self._data[:size].data)
        self._data[got : got + PAD] = 0
        if got < size:  # It was truncated meanwhile.
            self._walk.end_at(start + got)
        return got

    def _gap(self, position: int, size: int, reason: int) -> Unread:
        self.file.seek(position)
        return Unread(position, size, REASONS[reason], self.file.read(min(size, QUOTED_BYTES)))


def lowest_offset(path: Path) -> int | None:
    """The first offset of a segment, which is its name."""
    return int(path.stem) if path.stem.isdecimal() else None


def _tables(data: NDArray[np.uint8], entries: NDArray[Any], unread: list[Unread]) -> Iterator[Read]:
    packed = (entries["attributes"] & CODEC_BITS) != 0
    yield from decoded_entries(data, entries[~packed] if packed.any() else entries, unread)
    for inflated, inner in inflated_entries(data, entries[packed], unread):
        yield from decoded_entries(inflated, inner, unread)
    if unread:
        yield replace(_nothing(), unread=tuple(unread))


def decoded_entries(data: NDArray[np.uint8], entries: NDArray[Any], unread: list[Unread]) -> Iterator[Read]:
    """What is `unread` so far goes with the first piece."""
    for commits, others in decode(data, entries, PIECE_ROWS):
        for position, size, log_offset, head in columns.malformed(data, entries, others, QUOTED_BYTES):
            unread.append(Unread(position, size, f"the record at offset {log_offset} makes no sense", head))
        yield Read(
            columns.commits(data, commits),
            columns.others(data, entries, others),
            columns.markers(data, entries, others),
            tuple(unread),
        )
        unread.clear()


def inflated_entries(
    data: NDArray[np.uint8], entries: NDArray[Any], unread: list[Unread]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[Any]]]:
    """The insides of compressed entries, some at a time, and entries that point into them."""
    pieces: list[bytes | memoryview] = []
    inner_entries: list[NDArray[Any]] = []
    size = 0
    for entry in entries:
        try:
            piece, inner = _inside(data, entry)
        except Malformed as error:
            position, length = int(entry["position"]), int(entry["size"])
            begin = int(entry["end"]) - length
            head = data[begin : begin + min(length, QUOTED_BYTES)].tobytes()
            unread.append(Unread(position, length, error.reason, head))
            continue
        inner["begin"] += size
        inner["end"] += size
        inner["position"], inner["size"] = entry["position"], entry["size"]
        pieces.append(piece)
        inner_entries.append(inner)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield padded(pieces), np.concatenate(inner_entries)
            pieces, inner_entries, size = [], [], 0
    if inner_entries:
        yield padded(pieces), np.concatenate(inner_entries)


def _inside(data: NDArray[np.uint8], entry: Any) -> tuple[bytes | memoryview, NDArray[Any]]:
    magic, where = int(entry["magic"]), int(entry["position"])
    begin, end = int(entry["begin"]), int(entry["end"])
    codec = Codec(int(entry["attributes"]) & CODEC_BITS)  # Which exists: the walk has looked.
    if magic < 2:
        begin += 8 + max(0, int.from_bytes(data[begin : begin + 4].tobytes(), "big", signed=True))
    piece = inflate(codec, data[begin:end].data, magic=magic, limit=INFLATED_LIMIT, where=where)
    if magic == 2:
        inner = np.array([entry])
        inner["begin"], inner["end"] = 0, len(piece)
        return piece, inner
    inner = _messages(piece, where)
    if magic == 1 and len(inner):  # Offsets inside are relative; the outer one is that of the last message.
        inner["base_offset"] += entry["base_offset"] - inner["base_offset"][-1]
        if int(entry["attributes"]) & APPEND_TIME_BIT:
            inner["base_timestamp"] = entry["base_timestamp"]
    return piece, inner


def _messages(piece: bytes | memoryview, where: int) -> NDArray[Any]:
    """The messages inside a compressed one."""
    walk = Walk(0, len(piece), len(piece))
    data = padded([piece])
    messages = []
    while walk.at < walk.stop:
        entries, gaps = walk.step(data[walk.at :], len(piece) - walk.at)
        if len(gaps) or (entries["magic"] > 1).any() or (entries["attributes"] & CODEC_BITS).any():
            raise Malformed("what is inside a compressed message are no messages", offset=where)
        messages.append(entries)
    return np.concatenate(messages) if messages else np.empty(0, ENTRY)


def padded(pieces: Sequence[bytes | memoryview]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join([*pieces, bytes(PAD)]), np.uint8)


@cache
def _nothing() -> Read:
    return Read(COMMITS.empty_table(), OTHERS.empty_table(), MARKERS.empty_table(), ())
