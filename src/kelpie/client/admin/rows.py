"""What an admin question returns: rows, and beside them each failure with the item that failed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import CoordinatorAnswer, Unasked

T = TypeVar("T")


@dataclass(slots=True)
class Rows(Generic[T]):
    """The rows of an answer. One broker, group or partition that fails does not fail the others."""

    rows: list[T] = field(default_factory=list)
    refused: list[CoordinatorAnswer] = field(default_factory=list)
    """Errors that a broker answered for a whole group, or for the whole request (`group` is empty then)."""
    unasked: list[Unasked] = field(default_factory=list)
    """What could not be asked, and why: no coordinator, no leader, no answer in time."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> T:
        return self.rows[index]

    @property
    def failures(self) -> dict[str, str]:
        """By item ("group alpha", "partition orders-0"): what failed, in words. Empty: nothing failed."""
        failures = {f"{row.kind} {row.name}": row.reason for row in self.unasked}
        for answer in self.refused:
            failures[f"group {answer.group}" if answer.group else answer.asked] = describe(answer.error)
        for row in self.rows:
            error = getattr(row, "error", 0)
            if error:
                name = getattr(row, "name", None)
                item = f"group {getattr(row, 'group', '')}" if name is None else f"partition {name}"
                failures[item] = describe(error)
        return failures


class PartitionChange(NamedTuple):
    """The result of a change to one partition: of its leader, its replicas, or a group's offset in it."""

    topic: str
    partition: int
    error: int = 0
    message: str = ""
    group: str = ""
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment of replicas that has not ended."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when it has ended."""
        return tuple(node for node in self.replicas if node not in self.removing)
