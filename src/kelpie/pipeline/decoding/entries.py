"""Entries of a segment: record batches (magic 2), and messages of magic 0 and 1.

The walk goes from entry to entry. Where none begins, or its checksum is wrong, it looks byte by byte for the
next place where all fields of a header and the checksum agree, and reports what lies between as a gap.

Two things bound the work on a file that looks like entries everywhere. A header must be consistent before its
checksum is computed, and failed checksums use up a budget; after that, the rest of the file is one gap.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kelpie.pipeline.decoding.checksums import CRC32, CRC32C, checksum, checksum_of_batch
from kelpie.pipeline.decoding.compiled import byte, compiled, int16, int32, int64

ENTRY = np.dtype(
    [
        ("position", np.int64),
        ("size", np.int64),
        ("magic", np.int64),
        ("attributes", np.int64),
        ("base_offset", np.int64),
        ("last_delta", np.int64),
        ("leader_epoch", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("producer_epoch", np.int64),
        ("count", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
    ]
)
"""`position` is in the file. `begin` and `end` are in the data: of records, or of an old key and value."""

GAP = np.dtype([("position", np.int64), ("size", np.int64), ("reason", np.int64)])
TORN, BAD_CHECKSUM, SENSELESS, HOSTILE, MISPLACED = 1, 2, 3, 4, 5
REASONS = {
    TORN: "the file ends in the middle",
    BAD_CHECKSUM: "the checksum is wrong",
    SENSELESS: "no batch begins here",
    HOSTILE: "too much here looks like a batch and is none",
    MISPLACED: "its offset cannot be in this file",
}

HEADER = 12
"""Base offset and length come before the part that the length counts."""
BATCH_MIN, MESSAGE_MIN = 61, 26
LONGEST = 1 << 27
"""No entry is longer: a segment of the offsets topic has 100 MiB, and an entry never spans two."""
SMALLEST_RECORD = 7
CONTROL_BIT, TRANSACTIONAL_BIT, APPEND_TIME_BIT, CODEC_BITS = 0x20, 0x10, 0x08, 0x07

_SOUND, _MORE = 0, -1
_AT_ONCE = 1 << 16
"""Entries, or gaps, that one step yields at most."""
_HIGHEST = (1 << 31) - 1
_SEARCH = 8
_BUDGET = 1 << 28


@compiled
def _batch_is_consistent(at, length):  # type: ignore[no-untyped-def]
    attributes, last, count = int16(at + 21), int32(at + 23), int32(at + 57)
    if attributes & CODEC_BITS > 4 or last < 0 or count < 0 or count > last + 1 or int64(at + 43) < -1:
        return False
    return attributes & CODEC_BITS != 0 or count * SMALLEST_RECORD <= length - (BATCH_MIN - HEADER)


@compiled
def _message_is_consistent(at, length):  # type: ignore[no-untyped-def]
    if byte(at + 17) > 0x0F:
        return False
    key = at + (26 if byte(at + 16) == 1 else 18)
    left = at + HEADER + length - key - 8
    key_size = int32(key)
    left -= max(key_size, 0)
    if key_size < -1 or left < 0:
        return False
    value_size = int32(key + 4 + max(key_size, 0))
    return value_size >= -1 and left == max(value_size, 0)


@compiled
def _judge(at, loaded, whole):  # type: ignore[no-untyped-def]
    """Whether an entry begins here, by its fields. Bytes end at `there`, the file does at `whole`."""
    if at + HEADER + 5 > whole:
        return TORN
    if at + BATCH_MIN > loaded and loaded < whole:
        return _MORE
    length, magic = int32(at + 8), byte(at + 16)
    if magic > 2 or int64(at) < 0 or length > LONGEST:
        return SENSELESS
    if length < ((BATCH_MIN if magic == 2 else MESSAGE_MIN + (8 if magic == 1 else 0)) - HEADER):
        return SENSELESS
    if at + BATCH_MIN <= loaded and magic == 2 and not _batch_is_consistent(at, length):
        return SENSELESS
    if at + HEADER + length > whole:
        return TORN
    if at + HEADER + length > loaded:
        return _MORE
    if magic < 2 and not _message_is_consistent(at, length):
        return SENSELESS
    return _SOUND


@compiled
def _sums_up(at, crc32, crc32c):  # type: ignore[no-untyped-def]
    stop = at + HEADER + int32(at + 8)
    if byte(at + 16) == 2:
        return int32(at + 17) & 0xFFFFFFFF == checksum_of_batch(at + 21, stop, crc32c)
    return int32(at + 12) & 0xFFFFFFFF == checksum(at + 16, stop, crc32)


@compiled
def _read(at, entry, base, position):  # type: ignore[no-untyped-def]
    length, magic = int32(at + 8), byte(at + 16)
    entry["position"], entry["size"], entry["magic"] = position, HEADER + length, magic
    entry["base_offset"] = int64(at)
    entry["end"] = at + HEADER + length - base
    if magic == 2:
        entry["leader_epoch"], entry["attributes"] = int32(at + 12), int16(at + 21)
        entry["last_delta"] = int32(at + 23)
        entry["base_timestamp"], entry["max_timestamp"] = int64(at + 27), int64(at + 35)
        entry["producer_id"], entry["producer_epoch"] = int64(at + 43), int16(at + 51)
        entry["count"], entry["begin"] = int32(at + 57), at + BATCH_MIN - base
    else:
        entry["leader_epoch"], entry["attributes"], entry["last_delta"] = -1, byte(at + 17), 0
        entry["base_timestamp"] = int64(at + 18) if magic == 1 else -1
        entry["max_timestamp"] = entry["base_timestamp"]
        entry["producer_id"], entry["producer_epoch"] = -1, -1
        entry["count"], entry["begin"] = 1, at + (26 if magic == 1 else 18) - base


@compiled
def _walk(base, size, first, last, whole, lowest, lost, reason, budget, entries, gaps, crc32, crc32c):  # type: ignore[no-untyped-def]
    """Positions in the file, but `base`, the address of the first byte, which is `first` of the file.

    Goes on while entries begin before `last` and are there as a whole (`size` bytes are, the file has
    `whole`).
    """
    shift = base - first
    read = gap_count = 0
    at = first
    while at < last and read < len(entries) and gap_count < len(gaps):
        if budget < 0:
            if lost < 0:
                lost = at
            reason, at = HOSTILE, last
            break
        state = _judge(at + shift, base + size, whole + shift)
        if state == _MORE:
            break
        if state == _SOUND and lowest >= 0 and not 0 <= int64(at + shift) - lowest <= _HIGHEST:
            state = MISPLACED
        if state == _SOUND and not _sums_up(at + shift, crc32, crc32c):
            state = BAD_CHECKSUM
            budget -= HEADER + int32(at + shift + 8)
        if state == _SOUND:
            if lost >= 0:
                gaps[gap_count]["position"], gaps[gap_count]["size"] = lost, at - lost
                gaps[gap_count]["reason"] = reason
                gap_count += 1
                lost = -1
            _read(at + shift, entries[read], base, at)
            at += entries[read]["size"]
            read += 1
            continue
        if lost < 0:
            lost, reason = at, state
        at += 1
    return read, gap_count, at, lost, reason, budget


@dataclass(slots=True)
class Walk:
    """A walk over a range of a file: where it stands, and what it has seen so far."""

    at: int
    """Where the next entry should begin."""
    stop: int
    """Entries that begin here are of the next range."""
    whole: int
    """Size of the file."""
    lowest: int = -1
    """No entry has a smaller offset, or one that is larger by 2^31 or more; −1: not known."""
    torn: int = -1
    """Where an entry began that the end of the file cuts off."""
    tail: int = -1
    """Where the end of the file begins that holds no whole entry, cut off or not."""
    _lost: int = -1
    _reason: int = 0
    _budget: int = 0

    def __post_init__(self) -> None:
        self.stop = min(self.stop, self.whole)
        self._budget = _SEARCH * max(0, self.stop - self.at) + _BUDGET

    def end_at(self, whole: int) -> None:
        """The file is shorter than was said."""
        self.whole = whole
        self.stop = min(self.stop, whole)

    def step(self, data: NDArray[np.uint8], size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Entries and gaps in `data`, whose first `size` bytes are those at `at` of the file.

        When it ends before the range does, and found nothing, it wants more bytes: `wants` says how many.
        """
        entries = np.empty(min(_AT_ONCE, size // MESSAGE_MIN + 1), ENTRY)
        gaps = np.empty(len(entries), GAP)
        read, gap_count, self.at, self._lost, self._reason, self._budget = _walk(
            data.ctypes.data,
            size,
            self.at,
            self.stop,
            self.whole,
            self.lowest,
            self._lost,
            self._reason,
            self._budget,
            entries,
            gaps,
            CRC32.ctypes.data,
            CRC32C.ctypes.data,
        )
        entries, gaps = entries[:read], gaps[:gap_count]
        if self.at >= self.stop and self._lost >= 0:
            last = np.array([(self._lost, self.stop - self._lost, self._reason)], GAP)
            if self.stop == self.whole:
                self.tail = self._lost
                self.torn = self._lost if self._reason == TORN else -1
            gaps, self._lost = np.concatenate([gaps, last]), -1
        return entries, gaps
