"""Writes batches of every magic: what a producer sends, what a broker keeps, what an old disk holds."""

import struct
from collections.abc import Sequence
from zlib import crc32

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kelpie.wire.malformed import Unencodable
from kelpie.wire.records.attributes import (
    CONTROL_MASK,
    LENGTH_END,
    LOG_APPEND_MASK,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_MASK,
    Codec,
)
from kelpie.wire.records.compression import compress
from kelpie.wire.records.control import END_TRANSACTION, KEY, ControlType
from kelpie.wire.records.header import CRC_OFFSET, HEADER, HEADER_SIZE, compute_crc
from kelpie.wire.records.message_set import HEADERS, SIZE
from kelpie.wire.records.record import Record

_CRC = struct.Struct(">I")
_LARGEST_INT32 = 2**31 - 1
_LARGEST_INT64 = 2**63 - 1


def write_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Write a batch of magic 2.

    Base and last offset are those of the first and the last record, unless given: compaction keeps the
    range of a batch while it takes records out. Records whose numbers do not fit raise Unencodable.
    """
    if not records and (base_offset is None or last_offset is None):
        raise Unencodable("a batch without records needs its base offset and its last offset")
    base = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    attributes = int(codec)
    if transactional:
        attributes |= TRANSACTIONAL_MASK
    if control:
        attributes |= CONTROL_MASK
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_MASK
        max_timestamp = log_append_time_ms
    payload = compress(codec, _payload(records, base, last, base_timestamp), magic=2) if records else b""
    try:
        head = HEADER.pack(
            base,
            HEADER_SIZE - LENGTH_END + len(payload),
            leader_epoch,
            2,
            0,
            attributes,
            last - base,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
    except struct.error as error:
        raise Unencodable(f"a batch header cannot hold this: {error}") from None
    batch = bytearray(head + payload)
    _CRC.pack_into(batch, CRC_OFFSET, compute_crc(memoryview(batch)))
    return bytes(batch)


def _payload(records: Sequence[Record], base: int, last: int, base_timestamp: int) -> bytes:
    if last - base > _LARGEST_INT32:
        raise Unencodable(f"offsets {base} to {last} do not fit into one batch")
    # aiokafka's builder compresses only where it pays, takes -1 for "no timestamp yet", and always begins
    # at offset 0. So it gets plain differences, and writes nothing but the records; its header is cut off.
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        batch_size=_LARGEST_INT32,
    )
    for offset, timestamp, _, key, value, headers in records:
        if not base <= offset <= last:
            raise Unencodable(f"offset {offset} in a batch from {base} to {last}")
        if abs(timestamp - base_timestamp) > _LARGEST_INT64:
            raise Unencodable(f"timestamps {base_timestamp} and {timestamp} do not fit into one batch")
        if builder.append(offset - base, timestamp - base_timestamp, key, value, list(headers)) is None:
            raise Unencodable("more records than a batch can hold")
    return bytes(memoryview(builder.build())[HEADER_SIZE:])


def write_control_batch(
    control_type: ControlType,
    *,
    offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Write the marker that ends a transaction on a partition: ABORT or COMMIT."""
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise Unencodable(f"{control_type.name} does not end a transaction")
    key = KEY.pack(0, control_type)
    value = END_TRANSACTION.pack(0, coordinator_epoch)
    return write_batch(
        [Record(offset, timestamp, key=key, value=value)],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def write_message_set(
    records: Sequence[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Write messages of magic 0 or 1: side by side, or inside one wrapper when there is a codec."""
    if magic not in (0, 1):
        raise Unencodable(f"a message set has magic 0 or 1, not {magic}")
    if magic == 0 and log_append_time_ms is not None:
        raise Unencodable("magic 0 has no timestamps")
    if codec is Codec.ZSTD:
        raise Unencodable("zstd came with magic 2")
    attributes = 0 if log_append_time_ms is None else LOG_APPEND_MASK
    if codec is Codec.NONE:
        return b"".join(
            _message(record, magic, attributes, record.offset, log_append_time_ms) for record in records
        )
    if not records:
        raise Unencodable("a wrapper cannot be empty")
    # Relative offsets came with magic 1. They leave the messages inside as they are when a broker appends
    # them.
    base = records[0].offset if magic == 1 else 0
    inside = b"".join(_message(record, magic, 0, record.offset - base, None) for record in records)
    wrapper = Record(
        records[-1].offset,
        max(record.timestamp for record in records),
        value=compress(codec, inside, magic=magic),
    )
    return _message(wrapper, magic, attributes | codec, wrapper.offset, log_append_time_ms)


def _message(
    record: Record, magic: int, attributes: int, offset: int, log_append_time_ms: int | None
) -> bytes:
    if record.headers:
        raise Unencodable("headers came with magic 2")
    layout = HEADERS[magic]
    timestamps = (
        () if magic == 0 else (record.timestamp if log_append_time_ms is None else log_append_time_ms,)
    )
    parts = [b""]
    for part in (record.key, record.value):
        parts += (SIZE.pack(-1),) if part is None else (SIZE.pack(len(part)), part)
    body = b"".join(parts)
    length = layout.size - LENGTH_END + len(body)
    try:
        message = bytearray(layout.pack(offset, length, 0, magic, attributes, *timestamps) + body)
    except struct.error as error:
        raise Unencodable(f"a message cannot hold this: {error}") from None
    _CRC.pack_into(message, LENGTH_END, crc32(memoryview(message)[LENGTH_END + 4 :]))
    return bytes(message)
