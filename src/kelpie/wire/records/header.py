"""The header of a batch of magic 2 (Kafka's DefaultRecordBatch): 61 bytes, then the records.

The checksum covers everything from the attributes on. Base offset, length, partition leader epoch and magic
lie before it, so that a broker can assign the first and the third to a batch without touching the checksum.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from aiokafka.record.util import calc_crc32c

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.attributes import (
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LENGTH_END,
    LOG_APPEND_MASK,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
    Buffer,
    Codec,
    TimestampType,
)

# CRC-32C (Castagnoli). aiokafka has a compiled function, or one in Python where its extension was not built.
crc32c: Callable[[memoryview], int] = calc_crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
SMALLEST_LENGTH = HEADER_SIZE - LENGTH_END
CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21

_make = tuple.__new__
# Looking up a member of an enumeration by its name takes longer than all the rest of these properties.
_CODECS = tuple(Codec)
_ZSTD, _CREATE, _LOG_APPEND = Codec.ZSTD, TimestampType.CREATE, TimestampType.LOG_APPEND
_LARGEST_INT32 = 2**31 - 1


class BatchHeader(NamedTuple):
    # A named tuple, as records are: in the offsets topic many batches hold a record or two, and a frozen
    # dataclass of so many fields would cost more to make than those records to read.
    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The whole batch in bytes, this header included."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        """The last offset that the batch takes, even when compaction has removed the record there."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return _LOG_APPEND if self.attributes & LOG_APPEND_MASK else _CREATE

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on the cleaner may drop the batch's tombstones, once it has been cleaned (KIP-534).

        It takes the place of the base timestamp; the records' timestamps are still counted from it.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence numbers are counted modulo 2^31: after the largest comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _LARGEST_INT32


def codec_of(attributes: int, position: int = 0) -> Codec:
    """Raise Malformed for a codec that does not exist, in the batch at `position`."""
    codec = attributes & CODEC_MASK
    if codec > _ZSTD:
        raise Malformed(f"codec {codec} is unknown", offset=position, path="attributes")
    return _CODECS[codec]


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`. The records need not be there yet; the checksum is not verified."""
    if position < 0 or len(buffer) - position < HEADER_SIZE:
        left = max(0, len(buffer) - position)
        raise Malformed(f"a batch header has {HEADER_SIZE} bytes; {left} are left", offset=position)
    fields = HEADER.unpack_from(buffer, position)
    if fields[3] != 2:
        raise Malformed(f"magic {fields[3]} where 2 is expected", offset=position, path="magic")
    if fields[1] < SMALLEST_LENGTH:
        raise Malformed(
            f"a batch of length {fields[1]}; its header alone has {SMALLEST_LENGTH}",
            offset=position,
            path="length",
        )
    return _make(BatchHeader, fields)


def compute_crc(batch: memoryview) -> int:
    """Compute the checksum of one whole batch, from its first byte to its last."""
    return crc32c(batch[ATTRIBUTES_OFFSET:])


def check_crc(header: BatchHeader, batch: memoryview, position: int = 0) -> None:
    """Raise Malformed unless `batch`, exactly the bytes of one batch, has the checksum that it claims.

    `position` is where it begins in a larger buffer, for the message.
    """
    computed = compute_crc(batch)
    if computed != header.crc:
        raise Malformed(
            f"the checksum is {computed:08x}; the header says {header.crc:08x}",
            offset=position,
            path="crc",
        )
