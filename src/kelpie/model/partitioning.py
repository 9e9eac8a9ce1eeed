"""Which partition of the offsets topic, and so which coordinator, a group belongs to.

Follows partitionFor of Kafka's group coordinator: Utils.abs(groupId.hashCode()) modulo the number of
partitions. Computing it here means that a survey need not ask a broker, which may be the one that is down.
"""

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from string import ascii_lowercase

PROBE_PREFIX = "probe-"


def java_hash(text: str) -> int:
    """Return String.hashCode() of Java: signed, 32 bits, over UTF-16 code units.

    Code points would be wrong above U+FFFF, where Java counts two surrogates. A lone surrogate is a legal
    Java char, so it is hashed like any other.
    """
    # Nearly all group ids are ASCII; skipping UTF-16 for them is 1.4 (24 letters) to 1.9 times (8) as fast.
    units: Iterable[int]
    if text.isascii():
        units = text.encode("ascii")
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    hashed = 0
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFF_FFFF
    return hashed - 0x1_0000_0000 if hashed & 0x8000_0000 else hashed


@lru_cache(maxsize=1 << 17)
def partition_for(group_id: str, partitions: int) -> int:
    """Return the partition of the offsets topic, which has `partitions` of them, that holds this group.

    The hash is made positive by Math.abs, with MIN_VALUE (which has no positive counterpart) becoming 0, and
    not by the mask `& 0x7fffffff`. The mask was Utils.abs until KAFKA-1469 (2014, before any release with an
    offsets topic); today it is Utils.toPositive, by which producers choose the partition of a key. The two
    differ for nearly every negative hash: of 50 partitions "my-group" is in 12, and the mask would say 36.
    """
    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    hashed = java_hash(group_id)
    return (0 if hashed == -0x8000_0000 else abs(hashed)) % partitions


def names_on(partition: int, partitions: int, prefix: str = PROBE_PREFIX) -> Iterator[str]:
    """Names of groups that live on a partition, without end; the same in every call.

    Numbers follow the prefix; letters too, where numbers alone never get there.
    The hash is a number to the base 31 whose last digit is the last letter. If the number of partitions is a
    multiple of 31, that letter and the sign of the hash decide alone, and ten digits do not reach all.
    """

    def on_partition(names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if partition_for(name, partitions) == partition)

    if any(on_partition(f"{prefix}{number}" for number in range(100 * partitions))):
        yield from on_partition(f"{prefix}{number}" for number in count())
    yield from on_partition(f"{prefix}{number}{letter}" for number in count() for letter in ascii_lowercase)
