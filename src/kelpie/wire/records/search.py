"""Finds the next whole batch behind damage.

A bit that flipped in a length, or a page that was never written, hides where the next batch begins. Its
checksum proves a batch: a position is one when its header makes sense and its checksum is right.
"""

import re

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.attributes import LENGTH_END, MAGIC_OFFSET
from kelpie.wire.records.header import BatchHeader, check_crc, parse_header
from kelpie.wire.records.message_set import (
    HEADERS,
    SIZE,
    MessageHeader,
    check_message_crc,
    parse_message_header,
)

# An offset that is not negative, a length of 14 or more, a magic, and no attribute that does not exist. It
# looks ahead only, so that candidates may overlap. Zeros, of which a file that was never written consists,
# do not match.
_CANDIDATE = re.compile(
    rb"(?=[\x00-\x7f].{7}(?!\x00{3}[\x00-\x0d])[\x00-\x7f].{7}(?:[\x00\x01][\x00-\x0f]|\x02.{4}\x00[\x00-\x7f]))",
    re.DOTALL,
)

_CHECKSUMMED_PER_BYTE = 8
_CHECKSUMMED_AT_LEAST = 1 << 20
_COST_OF_A_LOOK = 256  # To look at a candidate takes as long as a checksum over so many bytes, and longer.


def whole_batch_at(
    view: memoryview, position: int, *, crc: bool = True
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


class BatchSearch:
    """Looks for whole batches in one buffer, and gives up in time.

    Hostile bytes can claim a batch as long as the rest at every position. Checksums over all of them would
    cost the square of the buffer's size, so there is a budget for the buffer as a whole. Honest damage does
    not come near it: bytes that merely look like a batch fail the checks of its fields, before a checksum.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._budget = _CHECKSUMMED_PER_BYTE * len(view) + _CHECKSUMMED_AT_LEAST

    def charge(self, size: int) -> bool:
        """Count `size` bytes under a checksum. False, once there have been too many."""
        self._budget -= size
        return self._budget >= 0

    def next_whole(self, start: int, after: int | None) -> int | None:
        """Where the first whole batch from `start` on begins. `after`: the last offset before, if known."""
        for match in _CANDIDATE.finditer(self._view, start):
            if not self.charge(_COST_OF_A_LOOK):
                break
            if self.is_whole(match.start(), after):
                return match.start()
        return None

    def is_whole(self, position: int, after: int | None) -> bool:
        try:
            header, batch = whole_batch_at(self._view, position, crc=False)
            # Offsets grow along a segment, and by less than 2^31 over all of it. With others, this is a batch
            # inside a record's value, or no batch at all.
            if after is not None and not after < header.last_offset <= after + 2**31:
                return False
            if not _makes_sense(header, batch) or not self.charge(header.size):
                return False
            whole_batch_at(self._view, position)
        except Malformed:
            return False
        return True


def _makes_sense(header: BatchHeader | MessageHeader, batch: memoryview) -> bool:
    if isinstance(header, BatchHeader):
        return (
            0 <= header.record_count <= header.last_offset_delta + 1
            and min(header.partition_leader_epoch, header.producer_id, header.producer_epoch) >= -1
        )
    key_at = HEADERS[header.magic].size
    key_size: int = SIZE.unpack_from(batch, key_at)[0]
    value_at = key_at + SIZE.size + max(0, key_size)
    if value_at + SIZE.size > len(batch):
        return False
    value_size: int = SIZE.unpack_from(batch, value_at)[0]
    return value_at + SIZE.size + max(0, value_size) == len(batch)
