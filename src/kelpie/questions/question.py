"""A question to a broker, independent of versions.

A version of an API can be chosen only once there is a connection. So a question knows how to write a request
of any version that it can use, and how to read the response of that version. Questions and answers are plain
data; each describes itself in one line.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from kelpie.model.names import TopicPartition

A = TypeVar("A")

CONSUMER, ANY_REPLICA = -1, -2
"""Replica ids. Only the leader answers a consumer; every replica answers a tool that asks as −2."""


class Question(ABC, Generic[A]):
    api: ClassVar[type[Any]]
    """The class of its requests."""
    newest: ClassVar[int | None] = None
    """The newest version that it can use; None: whatever Kelpie speaks."""

    __slots__ = ()

    @property
    def oldest(self) -> int:
        """The oldest version that can carry it."""
        return 0

    @abstractmethod
    def request(self, version: int) -> Any: ...

    @abstractmethod
    def answer(self, response: Any, version: int) -> A: ...

    @abstractmethod
    def tell(self, answer: A) -> str:
        """The answer, in a line."""


def shortened(parts: Sequence[str], most: int = 8) -> str:
    """The first parts, and how many more there are."""
    more = [f"{len(parts) - most} more"] if len(parts) > most else []
    return ", ".join([*parts[:most], *more])


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def listed(partitions: Iterable[TopicPartition], most: int = 8) -> str:
    """Partitions for a reader: "orders-0, orders-1 and 3 more"."""
    names = [str(partition) for partition in sorted(partitions)]
    if not names:
        return "no partition"
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
