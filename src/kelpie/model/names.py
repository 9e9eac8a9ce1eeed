import re
from functools import lru_cache
from typing import NamedTuple

from kelpie.model.numbers import whole_number

_LARGEST_PARTITION = 2**31 - 1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        """Spell it as Kafka does in logs and directory names: "orders-3"."""
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition | None":
        """What `str` spells. None: it is no partition."""
        topic, _, number = text.rpartition("-")
        partition = whole_number(number)
        if not topic or partition is None or partition > _LARGEST_PARTITION:
            return None
        return cls(topic, partition)


class PartitionNames:
    """Names a partition once, however many groups read it; and so partitions that groups read together."""

    def __init__(self) -> None:
        self._one: dict[tuple[str, int], TopicPartition] = {}
        self._several: dict[tuple[tuple[str, int], ...], tuple[TopicPartition, ...]] = {}

    def one(self, place: tuple[str, int]) -> TopicPartition:
        name = self._one.get(place)
        if name is None:
            name = self._one[place] = TopicPartition(*place)
        return name

    def several(self, places: tuple[tuple[str, int], ...]) -> tuple[TopicPartition, ...]:
        """The same object for the same places."""
        names = self._several.get(places)
        if names is None:
            names = self._several[places] = same_object(tuple(map(self.one, places)))
        return names


@lru_cache(maxsize=10_000)
def same_object(names: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """One object for the partitions that many groups read together, in this survey and in earlier ones: so
    that it takes no time to see that they are the same.
    """
    return names


_SCRATCH = re.compile(r"kelpie-probe-[0-9a-f]{8}-\d+")


def scratch_group(token: str, number: int) -> str:
    """The name of a group that `kelpie probe` makes for a moment. `token` has eight hexadecimal digits."""
    return f"kelpie-probe-{token}-{number}"


def is_scratch_group(name: str) -> bool:
    """Whether a probe made it: nobody consumes with it, and the offsets topic remembers it for a while."""
    return _SCRATCH.fullmatch(name) is not None
