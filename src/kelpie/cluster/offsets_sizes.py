"""How large the partitions of the offsets topic are, and how large they would be if they were compacted.

Compaction keeps one record of each key: of each group, topic and partition that is committed, and of each
group. The segment that is written to is never compacted, nor is another one or two that wait for the cleaner.
"""

from collections import Counter
from collections.abc import Mapping, Set

from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, LogSize, Observations
from kelpie.observations.ordering import by_time

LARGE = 1 << 30
"""In bytes. A partition that is smaller is loaded within seconds, compacted or not."""
SEGMENT_BYTES = 100 << 20
"""The default of offsets.topic.segment.bytes."""
_SEGMENTS = 3
_BYTES_PER_OFFSET = 300
"""A record of a commit in a batch of its own, with names of ordinary length, has about half of that."""
_BYTES_PER_GROUP = 100_000
"""Its members with their subscriptions and assignments: more than most have."""


def sizes_of(rows: list[LogSize]) -> dict[TopicPartition, LogSize]:
    """The newest size of each partition of the offsets topic, as far as it is known."""
    own = [row for row in rows if row.topic == OFFSETS_TOPIC and row.size >= 0 and not row.error]
    return {row.name: row for row in by_time(own)}


def compacted_bytes(
    observations: Observations, count: int | None, sizes: Mapping[TopicPartition, LogSize]
) -> dict[TopicPartition, int]:
    """How large each large partition would be if it were compacted, at most. Nothing for the others."""
    large = {name.partition for name, row in sizes.items() if row.size >= LARGE}
    if not large or not count:
        return {}
    single = (observations.committed, observations.commits)
    together = (observations.group_offsets, observations.group_commits)
    groups = {row.group for rows in (*single, *together) for row in rows}
    groups |= {group for listing in observations.listings for group in listing.groups}
    homes = {group: partition_for(group, count) for group in groups}
    keys = _keys(observations, {group for group, home in homes.items() if home in large})
    largest: Counter[int] = Counter()
    for group, home in homes.items():
        if home in large:
            largest[home] += _BYTES_PER_GROUP + _BYTES_PER_OFFSET * keys[group]
    return {
        TopicPartition(OFFSETS_TOPIC, number): _SEGMENTS * SEGMENT_BYTES + 2 * largest[number]
        for number in sorted(large)
    }


def _keys(observations: Observations, groups: Set[str]) -> Counter[str]:
    """How many partitions each of these groups has committed."""
    positions = {
        (row.group, row.topic, row.partition)
        for rows in (observations.committed, observations.commits)
        for row in rows
        if row.group in groups
    }
    together = {
        (row.group, row.names)
        for rows in (observations.group_offsets, observations.group_commits)
        for row in rows
        if row.group in groups
    }
    positions |= {(group, *name) for group, names in together for name in names}
    return Counter(group for group, _, _ in positions)
