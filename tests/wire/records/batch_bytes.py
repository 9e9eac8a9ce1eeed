"""Batches to take apart: one of each kind, and ways to break them."""

import struct
from pathlib import Path
from zlib import crc32

from kelpie.wire.records import Record, write_batch, write_message_set
from kelpie.wire.records.header import compute_crc
from tests.wire.records.strategies import MAGICS_AND_CODECS, T


def kafkas_own() -> dict[str, bytes]:
    """What Kafka 3.9.2 itself wrote; WriteBatches.java says how."""
    lines = Path(__file__).with_name("kafka-3.9.2.txt").read_text().splitlines()
    return {name: bytes.fromhex(data) for name, data in (line.split() for line in lines)}


def plain(count: int, first: int = 0) -> list[Record]:
    return [Record(first + i, T + i, key=b"key-%d" % i, value=b"value " * i) for i in range(count)]


def one_of_each() -> dict[str, bytes]:
    made = {}
    for magic, codec in MAGICS_AND_CODECS:
        name = f"magic-{magic}-{codec.name.lower()}"
        if magic == 2:
            made[name] = write_batch(plain(5), codec=codec)
        else:
            made[name] = write_message_set(plain(5), magic=magic, codec=codec)
    return made


def with_right_crc(batch: bytes | bytearray) -> bytes:
    """Put the checksum right, so that what is broken lies behind it."""
    fixed = bytearray(batch)
    if len(fixed) >= 61 and fixed[16] == 2:
        struct.pack_into(">I", fixed, 17, compute_crc(memoryview(fixed)))
    elif len(fixed) > 17:
        struct.pack_into(">I", fixed, 12, crc32(memoryview(fixed)[16:]))
    return bytes(fixed)


def patched(batch: bytes, position: int, layout: str, value: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    return with_right_crc(changed)
