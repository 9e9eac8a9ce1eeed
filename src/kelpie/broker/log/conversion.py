"""From one message format to another, for older clients and brokers.

Up: a producer that speaks Produce 0 to 2 sends messages of magic 0 or 1; the log keeps one batch of magic 2
(LogValidator). Down: a consumer that speaks Fetch 0 to 3 cannot read magic 2 (RecordsUtil). And a broker that
passes for Kafka 0.9 keeps magic 0, as its ByteBufferMessageSet did: messages of their own get their offsets
in place, compressed ones are taken apart, numbered and wrapped anew, because the offsets inside are absolute.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.broker.log.batch import AppendRefusal, StoredBatch, parse_batches, stored_entry
from kelpie.broker.log.config import LogConfig
from kelpie.errors import ErrorCode
from kelpie.wire.malformed import Malformed, Unencodable
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    MessageHeader,
    Record,
    RecordBatch,
    TimestampType,
    parse_message_header,
    read_batches,
    write_batch,
    write_message_set,
)

_OFFSET = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class MessageSet:
    """Messages as an old producer sent them."""

    entries: list[RecordBatch]
    records: list[Record]
    codec: Codec


def read_message_set(data: bytes | memoryview, config: LogConfig) -> MessageSet | AppendRefusal:
    """Examine messages of magic 0 and 1. What is cut short at the end is dropped."""
    entries: list[RecordBatch] = []
    records: list[Record] = []
    codec = Codec.NONE
    try:
        for batch in read_batches(data):
            entries.append(batch)
            if batch.size > config.max_message_bytes:
                reason = f"a message of {batch.size} bytes; the limit is {config.max_message_bytes}"
                return AppendRefusal(ErrorCode.MESSAGE_TOO_LARGE, reason)
            if batch.header.codec is not Codec.NONE:
                codec = batch.header.codec
            records.extend(batch.records())
    except Malformed as malformed:
        return AppendRefusal(ErrorCode.CORRUPT_MESSAGE, str(malformed))
    if config.message_format == 2:
        if codec is not Codec.NONE and len(entries) > 1:
            return AppendRefusal(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
        if len({batch.header.magic for batch in entries}) > 1:
            return AppendRefusal(ErrorCode.INVALID_RECORD, "messages of different magic in one request")
        if any(batch.header.timestamp_type is TimestampType.LOG_APPEND for batch in entries):
            return AppendRefusal(
                ErrorCode.INVALID_TIMESTAMP, "producers may not set log-append time themselves"
            )
    return MessageSet(entries, records, codec)


def up_convert(messages: MessageSet) -> bytes:
    """One batch of magic 2, with offsets from 0 on."""
    numbered = [record._replace(offset=offset) for offset, record in enumerate(messages.records)]
    return write_batch(numbered, codec=messages.codec)


def as_magic_0(
    messages: MessageSet, base_offset: int, config: LogConfig
) -> list[StoredBatch] | AppendRefusal:
    """The messages as Kafka 0.9 appends them at `base_offset`."""
    if config.compacts and any(record.key is None for record in messages.records):
        return AppendRefusal(ErrorCode.CORRUPT_MESSAGE, "Compacted topic cannot accept message without key.")
    codec = messages.codec if config.compression_codec is None else config.compression_codec
    if codec is Codec.ZSTD:
        return AppendRefusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd came with magic 2")
    if codec is Codec.NONE and messages.codec is Codec.NONE:
        return [_placed(batch, base_offset + index) for index, batch in enumerate(messages.entries)]
    return magic_0_batches(messages.records, base_offset, codec)


def magic_0_batches(
    records: Sequence[Record], base_offset: int, codec: Codec = Codec.NONE
) -> list[StoredBatch]:
    numbered = [
        record._replace(offset=base_offset + index, headers=()) for index, record in enumerate(records)
    ]
    if not numbered:
        return []
    return parse_batches(write_message_set(numbered, magic=0, codec=codec), crc=False)


def _placed(batch: RecordBatch, offset: int) -> StoredBatch:
    if batch.header.magic != 0:
        return magic_0_batches(list(batch.records()), offset)[0]
    data = _OFFSET.pack(offset) + batch.data[_OFFSET.size :]
    return stored_entry(data, parse_message_header(data), offset)


def down_convert(data: bytes, magic: int, first_offset: int = 0) -> bytes | AppendRefusal:
    """Convert what `read` found for a consumer that knows `magic` 0 or 1 only.

    Control batches are left out: an old consumer would take them for records. So are single records below
    `first_offset`; compressed ones stay together.
    """
    converted: list[bytes] = []
    try:
        for batch in read_batches(data, crc=False):
            if batch.header.is_control:
                continue
            if batch.header.magic <= magic:
                converted.append(bytes(batch.data))
                continue
            if batch.header.codec is Codec.ZSTD:
                if converted:
                    break  # What comes before can be had. The next fetch begins here.
                return AppendRefusal(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    "Down-conversion of zstandard-compressed batches is not supported",
                )
            converted.append(_converted(batch, magic, first_offset))
    except (Malformed, Unencodable) as error:
        return AppendRefusal(ErrorCode.CORRUPT_MESSAGE, str(error))
    return b"".join(converted)


def _converted(batch: RecordBatch, magic: int, first_offset: int) -> bytes:
    header: BatchHeader | MessageHeader = batch.header
    codec = header.codec
    records = [
        record._replace(headers=())
        for record in batch.records()
        if codec is not Codec.NONE or record.offset >= first_offset
    ]
    if not records:
        return b""
    append_time = None
    if magic == 1 and header.timestamp_type is TimestampType.LOG_APPEND:
        append_time = header.max_timestamp
    return write_message_set(records, magic=magic, codec=codec, log_append_time_ms=append_time)
