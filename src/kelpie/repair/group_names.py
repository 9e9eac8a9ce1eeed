"""New names for a group whose partition of the offsets topic has no living leader, and whether one is free.

A group lives on partition abs(hash of its name) modulo the number of partitions, and nowhere else. So a group
is moved by renaming it: to the first name of a fixed sequence (billing-2, billing-3, …) that falls on a
partition with a living leader, and if possible on one that would survive the loss of a broker.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import product
from string import ascii_lowercase

from kelpie.client.admin.groups import ABSENT
from kelpie.cluster import ClusterView
from kelpie.cluster.health import health_of
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import GroupState
from kelpie.repair.claims import Claim

_NUMBERS = 1_000
_WORDS = ("rehomed", "moved", "anew", "again", "here", "housed")
_LETTERS = 2
_CANDIDATE = re.compile(rf"[0-9]{{1,3}}|({'|'.join(_WORDS)})-[a-z]{{1,2}}")


def candidates(group: str) -> Iterator[str]:
    """The sequence of names; always the same for the same group.

    Numbers reach nearly every partition. Where the number of partitions is a multiple of 31, the last
    character decides almost alone, and ten digits are not enough: hence words and letters.
    """
    for number in range(2, _NUMBERS):
        yield f"{group}-{number}"
    for word in _WORDS:
        for length in range(1, _LETTERS + 1):
            for letters in product(ascii_lowercase, repeat=length):
                yield f"{group}-{word}-{''.join(letters)}"


def is_candidate(name: str, group: str) -> bool:
    """Whether a name is in the sequence."""
    rest = name.removeprefix(f"{group}-")
    return rest != name and _CANDIDATE.fullmatch(rest) is not None


def healthy_names(group: str, cluster: ClusterView) -> Iterator[str]:
    """Names on the healthiest partitions. Empty: no partition has a living leader."""
    healths = [health_of(cluster, partition) for partition in cluster.offsets_topic]
    best = max(healths, default=None)
    if best is None or not best.is_led:
        return
    for name in candidates(group):
        if healths[partition_for(name, len(healths))] is best:
            yield name


class Use(Enum):
    FREE = auto()
    BEGUN = auto()
    """Some of the offsets are there, just as they would be carried over: an earlier run broke."""
    DONE = auto()
    """All of them are there: an earlier run has done it."""
    PERHAPS_DONE = auto()
    """All partitions are there, none behind: an earlier move that has gone on since, or another group."""
    TAKEN = auto()


@dataclass(frozen=True, slots=True)
class Occupant:
    """What has a name now: a group, or nothing."""

    state: GroupState
    listed: bool
    """Whether a broker lists a group of this name."""
    offsets: Mapping[TopicPartition, Claim] = field(default_factory=dict)

    def use(self, wanted: Mapping[TopicPartition, int]) -> Use:
        """How the name is used. `wanted`: the offsets that shall be committed under it."""
        present = {partition: claim.offset for partition, claim in self.offsets.items()}
        if not present and not self.state.members:
            # A share group, for example: its offsets are elsewhere, and nobody can commit for it.
            return Use.TAKEN if self.listed and self.state.state == ABSENT else Use.FREE
        if not self.state.members and present.items() <= wanted.items():
            return Use.DONE if len(present) == len(wanted) else Use.BEGUN
        ahead = all(present.get(partition, -1) >= offset for partition, offset in wanted.items())
        return Use.PERHAPS_DONE if ahead else Use.TAKEN
