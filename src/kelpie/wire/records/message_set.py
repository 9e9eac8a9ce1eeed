"""Messages of magic 0 (up to Kafka 0.9) and 1 (0.10): Kafka's LegacyRecord and AbstractLegacyRecordBatch.

A message set is a row of entries: offset, length, message. Compressed messages are wrapped: the value of one
message is a message set, compressed. The wrapper has the offset of the last message inside. Those inside have
their own offsets in magic 0; in magic 1 theirs are relative, so that a broker can place a wrapper without
compressing it anew: absolute = wrapper's - last inside + inside. There is one level of wrapping only.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.attributes import (
    CODEC_MASK,
    LENGTH_END,
    LOG_APPEND_MASK,
    MAGIC_OFFSET,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    Buffer,
    Codec,
    TimestampType,
)
from kelpie.wire.records.compression import INFLATED_LIMIT, inflate
from kelpie.wire.records.header import codec_of
from kelpie.wire.records.record import Record

HEADERS = (struct.Struct(">qiIbb"), struct.Struct(">qiIbbq"))
SIZE = struct.Struct(">i")
SMALLEST_MESSAGE = 14
"""The length of a message of magic 0 with neither key nor value."""

_LARGEST_OFFSET = 2**63 - 1
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_SMALLEST_LENGTHS = (SMALLEST_MESSAGE, SMALLEST_MESSAGE + 8)
_make = tuple.__new__
_NO_TYPE, _CREATE, _LOG_APPEND = TimestampType.NONE, TimestampType.CREATE, TimestampType.LOG_APPEND
_PLAIN = Codec.NONE


class MessageHeader(NamedTuple):
    """The header of one entry, with the properties that it shares with a batch of magic 2."""

    offset: int
    length: int
    crc: int
    magic: int
    attributes: int
    timestamp: int = NO_TIMESTAMP

    @property
    def size(self) -> int:
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        return self.offset

    @property
    def next_offset(self) -> int:
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        return self.timestamp

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return _NO_TYPE
        return _LOG_APPEND if self.attributes & LOG_APPEND_MASK else _CREATE

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    @property
    def producer_id(self) -> int:
        return NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> int:
        return NO_PRODUCER_EPOCH

    @property
    def partition_leader_epoch(self) -> int:
        return NO_LEADER_EPOCH


def parse_message_header(buffer: Buffer, position: int = 0) -> MessageHeader:
    """Read the header of the entry at `position`. The checksum is not verified."""
    left = len(buffer) - position
    if position < 0 or left <= MAGIC_OFFSET:
        raise Malformed(f"{max(0, left)} bytes are left; they cannot hold a message", offset=position)
    magic = buffer[position + MAGIC_OFFSET]
    if magic > 1:
        raise Malformed(f"magic {magic} where 0 or 1 is expected", offset=position, path="magic")
    layout = HEADERS[magic]
    if left < layout.size:
        raise Malformed(f"a message header has {layout.size} bytes; {left} are left", offset=position)
    fields = layout.unpack_from(buffer, position)
    if fields[1] < _SMALLEST_LENGTHS[magic]:
        raise Malformed(
            f"a message of length {fields[1]}; without key and value it has {_SMALLEST_LENGTHS[magic]}",
            offset=position,
            path="length",
        )
    return MessageHeader(*fields)


def check_message_crc(header: MessageHeader, entry: memoryview, position: int = 0) -> None:
    """Raise Malformed unless `entry`, exactly the bytes of one entry, has the checksum that it claims."""
    computed = crc32(entry[MAGIC_OFFSET:])
    if computed != header.crc:
        raise Malformed(
            f"the checksum is {computed:08x}; the message says {header.crc:08x}", offset=position, path="crc"
        )


def read_messages(
    header: MessageHeader, entry: memoryview, *, position: int = 0, inflated_limit: int = INFLATED_LIMIT
) -> Iterator[Record]:
    """Yield the records of one entry: the message itself, or those inside a wrapper.

    `position` is where the entry begins in a larger buffer, for messages.
    """
    codec = codec_of(header.attributes, position)
    key, value = _key_and_value(entry, header.magic, position)
    if codec is _PLAIN:
        yield _make(Record, (header.offset, header.timestamp, header.timestamp_type, key, value, ()))
        return
    if value is None:
        raise Malformed("a compressed message without a value", offset=position, path="value")
    inside = inflate(codec, memoryview(value), magic=header.magic, limit=inflated_limit, where=position)
    yield from _read_wrapped(header, memoryview(inside), position)


def _read_wrapped(wrapper: MessageHeader, inside: memoryview, where: int) -> Iterator[Record]:
    added = 0
    last = _last_offset(inside, where)
    if wrapper.magic == 1 and wrapper.offset != 0:
        # Some versions of librdkafka leave the wrapper's offset at 0; Kafka then adds nothing either.
        added = wrapper.offset - last
        if added < 0:
            raise Malformed(
                f"a wrapper at offset {wrapper.offset} with a message at {last} inside",
                offset=where,
                path="offset",
            )
    position = 0
    while position < len(inside):
        try:
            header = parse_message_header(inside, position)
            entry = inside[position : position + header.size]
            if header.attributes & CODEC_MASK:
                raise Malformed("a compressed message inside a compressed message", offset=position)
            if header.offset + added > _LARGEST_OFFSET:
                raise Malformed(f"offset {header.offset + added} does not exist", offset=position)
            check_message_crc(header, entry)
            key, value = _key_and_value(entry, header.magic, position)
        except Malformed as malformed:
            raise Malformed(malformed.reason, offset=where, path=f"inflated, byte {position}") from None
        timestamp, timestamp_type = header.timestamp, _NO_TYPE
        if header.magic == 1:
            timestamp_type = wrapper.timestamp_type
            if timestamp_type is _LOG_APPEND:
                timestamp = wrapper.timestamp
        yield _make(Record, (header.offset + added, timestamp, timestamp_type, key, value, ()))
        position += header.size


def _last_offset(inside: memoryview, where: int) -> int:
    """Walk the entries once, and keep none: as objects they would be many times the bytes."""
    position = 0
    last = None
    while position < len(inside):
        offset = length = 0
        if len(inside) - position >= LENGTH_END:
            offset, length = _OFFSET_AND_LENGTH.unpack_from(inside, position)
        if not SMALLEST_MESSAGE <= length <= len(inside) - position - LENGTH_END:
            path = f"inflated, byte {position}"
            raise Malformed("a message inside is cut short, or its length is wrong", offset=where, path=path)
        last = offset
        position += LENGTH_END + length
    if last is None:
        raise Malformed("a compressed message with nothing inside", offset=where, path="value")
    return last


def _key_and_value(entry: memoryview, magic: int, where: int) -> tuple[bytes | None, bytes | None]:
    data = bytes(entry)  # Slices of bytes are made much faster than slices of views.
    key, position = _sized(data, HEADERS[magic].size, where, "key")
    value, position = _sized(data, position, where, "value")
    if position != len(data):
        raise Malformed(f"{len(data) - position} bytes after the value", offset=where)
    return key, value


def _sized(data: bytes, position: int, where: int, path: str) -> tuple[bytes | None, int]:
    start = position + 4
    if start > len(data):
        raise Malformed("a message that ends inside a length", offset=where, path=path)
    (size,) = SIZE.unpack_from(data, position)
    if size == -1:
        return None, start
    end = start + size
    if not start <= end <= len(data):
        raise Malformed(f"a {path} of {size} bytes where {len(data) - start} follow", offset=where, path=path)
    return data[start:end], end
