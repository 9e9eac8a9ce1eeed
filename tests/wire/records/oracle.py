"""kafka-python as the oracle of record batches.

It finds snappy, LZ4 and zstd only in packages of their own. Here they come from cramjam: what it judges is
the framing, the wrappers and the records, not the compression, which Kafka's own bytes judge.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import cramjam
import kafka.codec
import pytest
from kafka.record import default_records, legacy_records
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from kelpie.wire.records import Codec, Record, TimestampType


def _lz4(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


_CODECS = {
    "lz4_encode": _lz4,
    "lz4_decode": lambda data: bytes(cramjam.lz4.decompress(data)),
    "zstd_encode": lambda data: bytes(cramjam.zstd.compress(data)),
    "zstd_decode": lambda data: bytes(cramjam.zstd.decompress(data)),
}


@contextmanager
def with_codecs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        snappy = SimpleNamespace(
            compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
            decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
        )
        patch.setattr(kafka.codec, "snappy", snappy)
        patch.setattr(kafka.codec, "has_lz4", lambda: True)
        patch.setattr(kafka.codec, "has_zstd", lambda: True)
        for module in (default_records, legacy_records):
            for name, function in _CODECS.items():
                if hasattr(module, name):
                    patch.setattr(module, name, function)
        yield


def read(data: bytes) -> list[Record]:
    """All records of all batches, control records among them."""
    found = []
    for batch in MemoryRecords(data):
        assert batch.validate_crc()
        for record in batch:
            timestamp_type = TimestampType.NONE if record.timestamp_type is None else record.timestamp_type
            found.append(
                Record(
                    record.offset,
                    -1 if record.timestamp is None else record.timestamp,
                    TimestampType(timestamp_type),
                    record.key,
                    record.value,
                    tuple(record.headers),
                )
            )
    return found


def write(records: list[Record], magic: int, codec: Codec, **producer: int) -> bytes:
    """Write as a producer does: offsets count from 0."""
    builder = MemoryRecordsBuilder(magic, int(codec), 1 << 30, **producer)
    for record in records:
        assert builder.append(record.timestamp, record.key, record.value, list(record.headers)) is not None
    builder.close()
    return bytes(builder.buffer())
