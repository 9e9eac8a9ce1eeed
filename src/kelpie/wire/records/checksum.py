"""The two checksums: CRC-32 for magic 0 and 1, CRC-32C (Castagnoli) for magic 2."""

from collections.abc import Callable
from zlib import crc32

from aiokafka.record.util import calc_crc32c

# aiokafka hands out its compiled function here, or one in Python where its extension could not be built.
crc32c: Callable[[memoryview], int] = calc_crc32c

__all__ = ["crc32", "crc32c"]
