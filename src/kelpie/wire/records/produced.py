"""The produce path: may this batch be appended, and which offsets does it get?

Only the header and the checksum are touched. The records stay as the producer sent them, compressed or not,
so an append costs one pass of CRC-32C however many records there are, and followers and consumers get the
same bytes. What is checked, in which order, and which code is answered follows Kafka's
ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and LogValidator.validateBatch.

What a real broker also does, by reading every record, is left out: it refuses records without a key on
compacted topics and timestamps out of range, recomputes the largest timestamp, and recompresses where the
topic has a codec of its own.
"""

import struct
from dataclasses import dataclass

from kelpie.errors import ErrorCode
from kelpie.wire.records.attributes import (
    CODEC_MASK,
    LENGTH_END,
    LOG_APPEND_MASK,
    MAGIC_OFFSET,
    Buffer,
    Codec,
    TimestampType,
)
from kelpie.wire.records.header import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER_SIZE,
    SMALLEST_LENGTH,
    BatchHeader,
    compute_crc,
    parse_header,
)
from kelpie.wire.records.message_set import SMALLEST_MESSAGE
from kelpie.wire.records.record_batch import SMALLEST_RECORD

LARGEST_BATCH = 1024 * 1024 + 12
"""Kafka's default of message.max.bytes: a megabyte, and what the length does not count."""

_LENGTH = struct.Struct(">i")
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")

_LEADER_EPOCH_OFFSET = 12
_MAX_TIMESTAMP_OFFSET = 35


@dataclass(frozen=True, slots=True)
class RecordsRefused:
    """Why a produced batch is not appended: the code for the response, and the sentence that goes with it."""

    error_code: ErrorCode
    reason: str
    position: int


@dataclass(frozen=True, slots=True)
class Produced:
    """Batches that may be appended."""

    headers: tuple[BatchHeader, ...]

    @property
    def size(self) -> int:
        """Bytes that count. A batch cut short at the end is dropped, as Kafka does."""
        return sum(header.size for header in self.headers)

    @property
    def record_count(self) -> int:
        return sum(header.record_count for header in self.headers)


def examine_produced(
    records: Buffer,
    *,
    several: bool = False,
    zstd: bool = True,
    timestamp_type: TimestampType = TimestampType.CREATE,
    largest_batch: int = LARGEST_BATCH,
) -> Produced | RecordsRefused:
    """Examine the records of one partition in a Produce request.

    From version 3 on a request holds exactly one batch a partition; `several` lifts that. Before version 7
    zstd is refused: `zstd` says whether it may be used. `timestamp_type` is the topic's.
    """
    view = memoryview(records)
    headers: list[BatchHeader] = []
    position = 0
    while len(view) - position > MAGIC_OFFSET:
        (length,) = _LENGTH.unpack_from(view, position + 8)
        magic = view[position + MAGIC_OFFSET]
        if length < SMALLEST_MESSAGE:
            return RecordsRefused(ErrorCode.CORRUPT_MESSAGE, f"a batch of length {length}", position)
        if magic > 2:
            return RecordsRefused(ErrorCode.CORRUPT_MESSAGE, f"magic {magic} is unknown", position)
        if length > len(view) - position - LENGTH_END:
            break
        if magic != 2:
            return RecordsRefused(
                ErrorCode.INVALID_RECORD, f"a batch of magic {magic}; only 2 is allowed", position
            )
        if headers and not several:
            return RecordsRefused(ErrorCode.INVALID_RECORD, "more than one batch for a partition", position)
        if length < SMALLEST_LENGTH:
            return RecordsRefused(ErrorCode.CORRUPT_MESSAGE, f"a batch of length {length}", position)
        header = parse_header(view, position)
        batch = view[position : position + header.size]
        refused = _refusal(
            header,
            batch,
            position,
            zstd=zstd,
            timestamp_type=timestamp_type,
            largest_batch=largest_batch,
        )
        if refused is not None:
            return refused
        headers.append(header)
        position += header.size
    if not headers:
        return RecordsRefused(ErrorCode.INVALID_RECORD, "no whole batch for a partition", position)
    return Produced(tuple(headers))


def _refusal(
    header: BatchHeader,
    batch: memoryview,
    position: int,
    *,
    zstd: bool,
    timestamp_type: TimestampType,
    largest_batch: int,
) -> RecordsRefused | None:
    def refused(code: ErrorCode, reason: str) -> RecordsRefused:
        return RecordsRefused(code, reason, position)

    codec = header.attributes & CODEC_MASK
    if codec > Codec.ZSTD:
        # A real broker stumbles here, and answers UNKNOWN_SERVER_ERROR; this code says what is wrong.
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {codec} is unknown")
    if codec == Codec.ZSTD and not zstd:
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or newer")
    if header.base_offset != 0:
        return refused(ErrorCode.INVALID_RECORD, f"the base offset must be 0; it is {header.base_offset}")
    if header.size > largest_batch:
        return refused(
            ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {header.size} bytes; the limit is {largest_batch}"
        )
    computed = compute_crc(batch)
    if computed != header.crc:
        return refused(
            ErrorCode.CORRUPT_MESSAGE, f"the checksum is {computed:08x}; the header says {header.crc:08x}"
        )
    # The offsets that will be taken are counted by the last delta, the records by the count. Were they to
    # differ, the log would have a hole, or two records at one offset.
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        return refused(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records and a last offset delta of {header.last_offset_delta}",
        )
    if codec == Codec.NONE and header.record_count * SMALLEST_RECORD > len(batch) - HEADER_SIZE:
        # A real broker notices when it reads the records. This check needs no reading, and keeps a header
        # from taking billions of offsets for nothing.
        return refused(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records in {len(batch) - HEADER_SIZE} bytes",
        )
    if header.is_control:
        return refused(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.has_producer_id and header.base_sequence < 0:
        return refused(
            ErrorCode.INVALID_RECORD,
            f"producer {header.producer_id} sends sequence number {header.base_sequence}",
        )
    if timestamp_type is TimestampType.LOG_APPEND and header.timestamp_type is TimestampType.LOG_APPEND:
        return refused(ErrorCode.INVALID_TIMESTAMP, "producers may not set log-append time themselves")
    return None


def stamp(
    records: Buffer,
    produced: Produced,
    *,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Give examined batches their place in the log: `base_offset` to the first, and on from there.

    Base offset and leader epoch lie outside the checksum. The time of a topic with log-append time, and the
    bit that says so, lie inside: only then is the checksum computed anew. A topic with create time takes
    the bit away again, should a producer have set it.
    """
    stamped = bytearray(memoryview(records)[: produced.size])
    view = memoryview(stamped)
    position = 0
    for header in produced.headers:
        _BASE_OFFSET.pack_into(stamped, position, base_offset)
        _LEADER_EPOCH.pack_into(stamped, position + _LEADER_EPOCH_OFFSET, leader_epoch)
        if log_append_time_ms is not None:
            attributes = header.attributes | LOG_APPEND_MASK
            _MAX_TIMESTAMP.pack_into(stamped, position + _MAX_TIMESTAMP_OFFSET, log_append_time_ms)
        else:
            attributes = header.attributes & ~LOG_APPEND_MASK
        if log_append_time_ms is not None or attributes != header.attributes:
            _ATTRIBUTES.pack_into(stamped, position + ATTRIBUTES_OFFSET, attributes)
            crc = compute_crc(view[position : position + header.size])
            _CRC.pack_into(stamped, position + CRC_OFFSET, crc)
        base_offset += header.last_offset_delta + 1
        position += header.size
    return bytes(stamped)
