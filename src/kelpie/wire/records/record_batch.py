"""The records of a batch of magic 2: Kafka's DefaultRecord.

There are two readers. aiokafka's compiled reader is nine times as fast, and reads nearly everything. Where it
fails, the reader in Python below says what is wrong, and where. It also reads header keys that are not UTF-8:
Kafka accepts them, and the compiled reader does not.

The compiled reader checks lengths, but can read a number or two past the end of its buffer, which crashes at
the end of a mapped file. So it always gets a copy with some zeros behind it.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka.util import NO_EXTENSIONS

from kelpie.wire.malformed import Malformed
from kelpie.wire.records.attributes import CODEC_MASK, NO_TIMESTAMP, Codec, TimestampType
from kelpie.wire.records.compression import INFLATED_LIMIT, inflate
from kelpie.wire.records.header import ATTRIBUTES_OFFSET, HEADER_SIZE, BatchHeader, codec_of
from kelpie.wire.records.record import Headers, Record

_Compiled: Any
try:
    from aiokafka.record import _crecords

    _Compiled = None if NO_EXTENSIONS else _crecords.DefaultRecordBatch
except ImportError:  # No wheel for this platform and no compiler: the reader in Python does it all.
    _Compiled = None

SMALLEST_RECORD = 7
"""Length, attributes, timestamp, offset, no key, no value, no headers: a byte each."""

# The compiled reader looks for one byte before each number of up to ten, and for none before the two of a
# header: less than 30 bytes too far.
_PADDING = bytes(64)

_make = tuple.__new__  # Record(...) would go through a function in Python: two thirds of the speed.
_PLAIN = Codec.NONE


def read_records(
    header: BatchHeader, batch: memoryview, *, position: int = 0, inflated_limit: int = INFLATED_LIMIT
) -> Iterator[Record]:
    """Yield the records of `batch`, exactly the bytes of one batch. Control records are records too.

    `position` is where the batch begins in a larger buffer, for messages.

    They come one by one: as objects, all records of a large batch would need many times its bytes. So a batch
    that is broken half way yields what comes before, and then raises Malformed.
    """
    count = header.record_count
    if count == 0:
        return  # Compaction leaves empty batches, to remember sequence numbers by, codec and all.
    codec = codec_of(header.attributes, position)
    inflated = None
    size = len(batch) - HEADER_SIZE
    if codec is not _PLAIN:
        inflated = memoryview(
            inflate(codec, batch[HEADER_SIZE:], magic=2, limit=inflated_limit, where=position + HEADER_SIZE)
        )
        size = len(inflated)
    if not 0 < count <= size // SMALLEST_RECORD:
        raise Malformed(f"{count} records in {size} bytes", offset=position, path="count")
    done = 0
    if _Compiled is not None:
        timestamp_type = header.timestamp_type
        try:
            for read in _Compiled(_padded(header, batch, inflated)):
                timestamp = read.timestamp
                headers = read.headers
                yield _make(
                    Record,
                    (
                        read.offset,
                        NO_TIMESTAMP if timestamp is None else timestamp,
                        timestamp_type,
                        read.key,
                        read.value,
                        tuple(headers) if headers else (),
                    ),
                )
                done += 1
            return
        except Exception:  # noqa: S110 - read again below
            # CorruptRecordException, UnicodeDecodeError, MemoryError, OverflowError, and never a position.
            # The reader in Python reads the same bytes, and says where they break.
            pass
    yield from _read_in_python(header, batch, inflated, skip=done, position=position)


def _padded(header: BatchHeader, batch: memoryview, inflated: memoryview | None) -> memoryview:
    if inflated is None:
        return memoryview(b"".join((batch, _PADDING)))[: len(batch)]
    # The codec's bits are cleared, so that it does not inflate what is inflated already.
    attributes = (header.attributes & ~CODEC_MASK).to_bytes(2, "big", signed=True)
    head = (batch[:ATTRIBUTES_OFFSET], attributes, batch[ATTRIBUTES_OFFSET + 2 : HEADER_SIZE])
    return memoryview(b"".join((*head, inflated, _PADDING)))[: HEADER_SIZE + len(inflated)]


def _read_in_python(
    header: BatchHeader, batch: memoryview, inflated: memoryview | None, *, skip: int, position: int
) -> Iterator[Record]:
    payload = batch[HEADER_SIZE:] if inflated is None else inflated
    reader = _RecordReader(header, payload, inflated is not None, position + HEADER_SIZE)
    for index in range(header.record_count):
        try:
            record = reader.read(index)
        except IndexError:
            raise reader.malformed("a record that is cut short", index, len(payload)) from None
        if index >= skip:
            yield record
    if reader.position != len(payload):
        left = len(payload) - reader.position
        raise reader.malformed(f"{left} bytes after the last record", header.record_count, reader.position)


class _RecordReader:
    def __init__(self, header: BatchHeader, payload: memoryview, inflated: bool, where: int) -> None:
        self._header = header
        self._payload = payload
        self._inflated = inflated
        self._where = where
        self._append_time = header.timestamp_type is TimestampType.LOG_APPEND
        self.position = 0

    def malformed(self, reason: str, index: int, position: int) -> Malformed:
        path = f"records[{index}]"
        if self._inflated:
            return Malformed(reason, offset=self._where, path=f"{path}, inflated byte {position}")
        return Malformed(reason, offset=self._where + position, path=path)

    def read(self, index: int) -> Record:
        header, payload = self._header, self._payload
        length, start = self._varint(self.position, index)
        end = start + length
        if length < 0 or end > len(payload):
            raise self.malformed(f"a record of length {length}", index, self.position)
        # The attributes, one byte, are not used yet.
        timestamp_delta, position = self._varint(start + 1, index, bits=64)
        offset_delta, position = self._varint(position, index)
        key, position = self._sized(position, end, index)
        value, position = self._sized(position, end, index)
        header_count, position = self._varint(position, index)
        headers: Headers = ()
        if header_count:
            headers, position = self._headers(header_count, position, end, index)
        if position != end:
            raise self.malformed(
                f"a record of length {length} with {position - start} bytes in it", index, self.position
            )
        self.position = end
        return Record(
            _int64(header.base_offset + offset_delta),
            header.max_timestamp if self._append_time else _int64(header.base_timestamp + timestamp_delta),
            header.timestamp_type,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            headers,
        )

    def _headers(self, count: int, position: int, end: int, index: int) -> tuple[Headers, int]:
        # Each has two lengths at least, so the count cannot make this loop longer than the bytes are.
        if not 0 < count <= (end - position) // 2:
            raise self.malformed(f"{count} headers in {end - position} bytes", index, position)
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            key, position = self._sized(position, end, index)
            if key is None:
                raise self.malformed("a header without a key", index, position)
            value, position = self._sized(position, end, index)
            # Java puts a replacement character where a key is not UTF-8; so do we.
            headers.append((str(key, "utf-8", "replace"), None if value is None else bytes(value)))
        return tuple(headers), position

    def _sized(self, position: int, end: int, index: int) -> tuple[memoryview | None, int]:
        size, start = self._varint(position, index)
        if size < 0:
            return None, start
        if size > end - start:
            raise self.malformed(f"{size} bytes where {max(0, end - start)} are left", index, position)
        return self._payload[start : start + size], start + size

    def _varint(self, position: int, index: int, bits: int = 32) -> tuple[int, int]:
        """Read a zig-zag number. Past the end of the payload it raises IndexError."""
        payload = self._payload
        value = shift = 0
        start = position
        while True:
            byte = payload[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= bits:
                raise self.malformed(f"a number of more than {bits} bits", index, start)
        value &= (1 << bits) - 1
        return value >> 1 ^ -(value & 1), position


def _int64(value: int) -> int:
    """Wrap around as Java does: hostile deltas must not make numbers that fit nowhere."""
    return (value + 2**63) % 2**64 - 2**63
