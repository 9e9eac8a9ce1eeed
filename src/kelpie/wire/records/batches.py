"""Goes through a buffer batch by batch: the records of a fetch response, or the content of a segment file.

A buffer may legally end in the middle of a batch: a fetch is cut at its size, and the last write of a
broker that died may be torn. That ends the iteration, and `torn` says so. Anything else that is not a batch
raises Malformed; or, with `skip_corrupt`, is noted in `corrupt`, and the iteration goes on at the next
whole batch.
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
from kelpie.wire.records.header import SMALLEST_LENGTH, BatchHeader
from kelpie.wire.records.message_set import SMALLEST_MESSAGE, MessageHeader, read_messages
from kelpie.wire.records.record import Record
from kelpie.wire.records.record_batch import read_records
from kelpie.wire.records.search import BatchSearch, whole_batch_at

_LENGTH = struct.Struct(">i")
_SMALLEST_LENGTHS = (SMALLEST_MESSAGE, SMALLEST_MESSAGE + 8, SMALLEST_LENGTH)
_PIECE = 1 << 20
_make = tuple.__new__


class Batch(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A stretch of a buffer that was skipped."""

    position: int
    size: int
    reason: str


class Batches(Iterator[Batch]):
    """The batches of a buffer, in order.

    `position` is where the next batch would begin. Only when the iteration has ended, `torn` and `corrupt`
    are complete.
    """

    def __init__(self, buffer: Buffer, *, skip_corrupt: bool = False, crc: bool = True) -> None:
        self._view = memoryview(buffer)
        self._search = BatchSearch(self._view) if skip_corrupt else None
        self._crc = crc
        self._last_offset: int | None = None
        self.position = 0
        self.torn: TornBatch | None = None
        self.corrupt: list[Corrupt] = []

    def __next__(self) -> Batch:
        view = self._view
        while self.position < len(view) and self.torn is None:
            position = self.position
            try:
                header, data = whole_batch_at(view, position, crc=self._crc)
            except Malformed as malformed:
                self._stumble(malformed)
                continue
            self.position = position + len(data)
            self._last_offset = header.last_offset
            return _make(Batch, (position, header, data))
        raise StopIteration

    def _stumble(self, malformed: Malformed) -> None:
        """No whole batch is here: end with a torn one, raise, or skip."""
        torn = None
        try:
            torn = self._torn()
        except Malformed as better:
            malformed = better
        if self._search is not None:
            if malformed.path == "crc":
                self._search.charge(_LENGTH.unpack_from(self._view, self.position + 8)[0])
            self._skip(self._search, malformed.reason if torn is None else torn.reason, torn)
        elif torn is not None:
            self.torn = torn
        else:
            raise malformed

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

    def _skip(self, search: BatchSearch, reason: str, torn: TornBatch | None) -> None:
        """Go to the next whole batch; without one, to the end.

        The length of a broken batch may be wrong too, so it does not say where the next batch begins.
        """
        start = self.position
        position = search.next_whole(start + 1, self._last_offset)
        if position is None and torn is not None:
            self.torn = torn
            return
        self.position = len(self._view) if position is None else position
        self.corrupt.append(Corrupt(start, self.position - start, reason))


def read_batches(buffer: Buffer, *, skip_corrupt: bool = False, crc: bool = True) -> Batches:
    """Go through the batches of `buffer`. Checksums are verified unless `crc` is False."""
    return Batches(buffer, skip_corrupt=skip_corrupt, crc=crc)


def read_all_records(buffer: Buffer, *, inflated_limit: int = INFLATED_LIMIT) -> Iterator[Record]:
    """Iterate over the records that clients wrote, in all batches of `buffer`. A torn end is ignored."""
    batches = Batches(buffer)
    return chain.from_iterable(batch.records(inflated_limit=inflated_limit) for batch in batches)
