"""The bits of the attributes field, and the values that mean "none".

Bits 0 to 2 hold the codec, bit 3 the timestamp type (from magic 1 on). Only magic 2 has bit 4
(transactional), bit 5 (control batch) and bit 6 (delete horizon, KIP-534).
"""

from enum import IntEnum
from mmap import mmap
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
"""What batches are read from: a fetch response's records, or a segment file, mapped or whole."""

CODEC_MASK = 0x07
LOG_APPEND_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

MAGIC_OFFSET = 16
"""Every magic keeps its length at byte 8 and its magic at byte 16, so a reader can tell them apart."""

LENGTH_END = 12
"""The length counts the bytes that follow it; offset and length themselves come first."""


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    NONE = -1
    CREATE = 0
    LOG_APPEND = 1
