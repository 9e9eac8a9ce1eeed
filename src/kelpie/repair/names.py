"""New names for a group whose partition of the offsets topic is sick.

A group lives on partition abs(hash of its name) modulo the number of partitions, and nowhere else. So a group
is moved by renaming it: to the first name of a fixed row (billing-2, billing-3, …) that falls on a partition
with a living leader, if it can be on one that would survive the loss of a broker.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from itertools import product
from string import ascii_lowercase

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, PartitionView

_NUMBERS = 1_000
_WORDS = ("rehomed", "moved", "anew", "again", "here", "housed")
_LETTERS = 2
_ROW = re.compile(rf"[0-9]{{1,3}}|({'|'.join(_WORDS)})-[a-z]{{1,2}}")


class Health(IntEnum):
    """How well a partition of the offsets topic is. The more, the better."""

    SICK = 0
    """Without a living leader, or nobody can say."""
    LED = 1
    """A living broker leads it; no other living one is in sync."""
    SAFE = 2
    """It would keep a leader if any one broker died."""


def health(cluster: ClusterView, partition: int) -> Health:
    name = TopicPartition(OFFSETS_TOPIC, partition)
    if not cluster.has_leader(name):
        return Health.SICK
    view = cluster.view(name)
    assert view is not None
    return Health.SAFE if len(living_in_sync(cluster, view)) > 1 else Health.LED


def living_in_sync(cluster: ClusterView, view: PartitionView) -> list[int]:
    return [node for node in view.in_sync if cluster.is_alive(node)]


def candidates(group: str) -> Iterator[str]:
    """The row of names; always the same for the same group.

    Numbers reach nearly every partition. Where the number of partitions is a multiple of 31, little but the
    last sign decides, and ten digits are not enough: hence words and letters.
    """
    for number in range(2, _NUMBERS):
        yield f"{group}-{number}"
    for word in _WORDS:
        for length in range(1, _LETTERS + 1):
            for letters in product(ascii_lowercase, repeat=length):
                yield f"{group}-{word}-{''.join(letters)}"


def is_candidate(name: str, group: str) -> bool:
    """Whether a name is one of the row."""
    rest = name.removeprefix(f"{group}-")
    return rest != name and _ROW.fullmatch(rest) is not None


def healthy_names(group: str, cluster: ClusterView) -> Iterator[tuple[str, int]]:
    """Names on the best kind of partition that there is, each with its partition. Empty: there is none."""
    count = cluster.offsets_partitions or 0
    healths = [health(cluster, partition) for partition in range(count)]
    best = max(healths, default=Health.SICK)
    if best is Health.SICK:
        return
    for name in candidates(group):
        partition = partition_for(name, count)
        if healths[partition] is best:
            yield name, partition
