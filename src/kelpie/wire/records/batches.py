"""Goes through a buffer batch by batch: the records of a fetch response, or the content of a segment file.

A buffer may legally end in the middle of a batch: a fetch is cut at its size, and the last write of a
broker that died may be torn. That ends the iteration, and `torn` says so. Anything else that is not a batch
raises Malformed.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.attributes import LENGTH_END, MAGIC_OFFSET, Buffer
from kelpie.wire.records.compression import INFLATED_LIMIT
from kelpie.wire.records.control import ControlRecord, parse_control_record
from kelpie.wire.records.header import SMALLEST_LENGTH, BatchHeader, check_crc, parse_header
from kelpie.wire.records.message_set import (
    SMALLEST_MESSAGE,
    MessageHeader,
    check_message_crc,
    parse_message_header,
    read_messages,
)
from kelpie.wire.records.record import Record
from kelpie.wire.records.record_batch import read_records

_LENGTH = struct.Struct(">i")
_SMALLEST_LENGTHS = (SMALLEST_MESSAGE, SMALLEST_MESSAGE + 8, SMALLEST_LENGTH)
_PIECE = 1 << 20
_make = tuple.__new__


class RecordBatch(NamedTuple):
    """One batch of magic 2, or one entry of a message set: a message, or a wrapper around several."""

    position: int
    """Where it begins in the buffer."""
    header: BatchHeader | MessageHeader
    data: memoryview
    """Exactly the bytes of the batch; they keep the buffer alive."""

    @property
    def size(self) -> int:
        return len(self.data)

    def records(self, *, inflated_limit: int = INFLATED_LIMIT) -> Iterator[Record]:
        """Iterate over the records that clients wrote; a control batch has none. May raise Malformed."""
        if self.header.is_control:
            return iter(())
        return self._all(inflated_limit)

    def control_records(self, *, inflated_limit: int = INFLATED_LIMIT) -> Iterator[ControlRecord]:
        """Iterate over the records that the broker wrote; only a control batch has them."""
        if self.header.is_control:
            for record in self._all(inflated_limit):
                yield parse_control_record(record, where=self.position)

    def _all(self, inflated_limit: int) -> Iterator[Record]:
        position, header, data = self
        if isinstance(header, BatchHeader):
            return read_records(header, data, position=position, inflated_limit=inflated_limit)
        return read_messages(header, data, position=position, inflated_limit=inflated_limit)


@dataclass(frozen=True, slots=True)
class TornBatch:
    """The end of a buffer that holds no whole batch."""

    position: int
    size: int
    needed: int | None
    """How long the batch claims to be, where it can be seen."""
    reason: str


class RecordBatches(Iterator[RecordBatch]):
    """The batches of a buffer, in order.

    `position` is where the next batch would begin. `torn` is known once the iteration has ended.
    """

    def __init__(self, buffer: Buffer, *, crc: bool = True) -> None:
        self._view = memoryview(buffer)
        self._crc = crc
        self.position = 0
        self.torn: TornBatch | None = None

    def __next__(self) -> RecordBatch:
        position = self.position
        if position >= len(self._view) or self.torn is not None:
            raise StopIteration
        try:
            header, data = _whole_batch_at(self._view, position, crc=self._crc)
        except Malformed:
            self.torn = self._torn()
            if self.torn is None:
                raise
            raise StopIteration from None
        self.position = position + len(data)
        return _make(RecordBatch, (position, header, data))

    def _torn(self) -> TornBatch | None:
        """Whether the buffer ends in what begins here. Raise Malformed if no batch begins so."""
        view, position = self._view, self.position
        left = len(view) - position
        if left <= MAGIC_OFFSET:
            return TornBatch(position, left, None, f"{left} bytes are too few for a batch")
        (length,) = _LENGTH.unpack_from(view, position + 8)
        magic = view[position + MAGIC_OFFSET]
        if length < SMALLEST_MESSAGE:
            if length == 0 and self._zeros_from(position):
                return TornBatch(position, left, None, f"{left} zeros: space that was never written")
            raise Malformed(f"a batch of length {length}", offset=position, path="length")
        if magic > 2:
            raise Malformed(f"magic {magic} is unknown", offset=position, path="magic")
        if length < _SMALLEST_LENGTHS[magic]:
            raise Malformed(f"a batch of length {length} and magic {magic}", offset=position, path="length")
        needed = LENGTH_END + length
        if needed > left:
            return TornBatch(position, left, needed, f"{left} of {needed} bytes are there")
        return None

    def _zeros_from(self, position: int) -> bool:
        if any(self._view[position : position + 64]):
            return False  # The common case, which copies little.
        for start in range(position, len(self._view), _PIECE):
            piece = bytes(self._view[start : start + _PIECE])
            if piece.count(0) != len(piece):
                return False
        return True


def _whole_batch_at(
    view: memoryview, position: int, *, crc: bool
) -> tuple[BatchHeader | MessageHeader, memoryview]:
    """Read the batch of any magic that lies whole at `position`; Malformed says why there is none."""
    header: BatchHeader | MessageHeader
    if len(view) - position > MAGIC_OFFSET and view[position + MAGIC_OFFSET] <= 1:
        header = parse_message_header(view, position)
    else:
        header = parse_header(view, position)
    size = LENGTH_END + header.length
    batch = view[position : position + size]
    if len(batch) < size:
        raise Malformed(f"{len(batch)} of {size} bytes are there", offset=position, path="length")
    if crc:
        if isinstance(header, BatchHeader):
            check_crc(header, batch, position)
        else:
            check_message_crc(header, batch, position)
    return header, batch


def read_batches(buffer: Buffer, *, crc: bool = True) -> RecordBatches:
    """Go through the batches of `buffer`. Checksums are verified unless `crc` is False."""
    return RecordBatches(buffer, crc=crc)


def read_all_records(buffer: Buffer, *, inflated_limit: int = INFLATED_LIMIT) -> Iterator[Record]:
    """Iterate over the records that clients wrote, in all batches of `buffer`. A torn end is ignored."""
    batches = RecordBatches(buffer)
    return chain.from_iterable(batch.records(inflated_limit=inflated_limit) for batch in batches)
