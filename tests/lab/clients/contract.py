"""What every client can do, in one vocabulary: a driver for each client translates, and judges nothing.

Errors of a cluster come as `Refused` with Kafka's code; a producer that another one has replaced hears
`Fenced`, whatever its library calls it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

EARLIEST = "earliest"
LATEST = "latest"
SESSION_MS = 30_000
HEARTBEAT_MS = 200


class Refused(Exception):
    """The cluster said no; `code` is Kafka's number for it."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(f"error {code}: {message}")
        self.code = code


class Fenced(Exception):
    """A newer producer with the same transactional id has taken over."""


@dataclass(frozen=True, slots=True)
class Message:
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class Member:
    client_id: str
    instance: str | None
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Group:
    state: str
    assignor: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    group: str | None = None
    instance: str | None = None
    reset: str = EARLIEST
    committed_only: bool = False
    assignor: str = "range"
    session_ms: int = SESSION_MS
    client_id: str = "herd"


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    acks: int | str = "all"
    compression: str | None = None
    idempotent: bool = False
    transactional_id: str | None = None


class _Closing(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Producer(_Closing):
    """One that is transactional has done its init when it is made."""

    @abstractmethod
    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
    ) -> None: ...

    @abstractmethod
    def flush(self) -> list[tuple[int, int]]:
        """Partition and offset of what was sent since the last flush, once the cluster has it all."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def send_offsets(self, topic: str, offsets: Mapping[int, int], consumer: "Consumer") -> None: ...


class Consumer(_Closing):
    """Subscribed to one topic with `subscribe`, or set on partitions of it with `assign`."""

    changes: list[tuple[str, frozenset[int]]]
    """What its rebalance listener has heard: "assigned" or "revoked", and the partitions."""

    @abstractmethod
    def subscribe(self, topic: str) -> None: ...

    @abstractmethod
    def assign(self, topic: str, positions: Mapping[int, int | str]) -> None:
        """Positions are offsets, EARLIEST or LATEST."""

    @abstractmethod
    def assignment(self) -> frozenset[int]: ...

    @abstractmethod
    def poll(self) -> list[Message]:
        """What has come, at once, or after a short wait."""

    @abstractmethod
    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        """Commit positions, or these offsets, and wait for the answer. Raises Refused."""

    @abstractmethod
    def commit_later(self) -> None:
        """Commit positions without waiting."""

    @abstractmethod
    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int | None]: ...

    @abstractmethod
    def position(self, partition: int) -> int | None: ...

    @abstractmethod
    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None: ...

    @abstractmethod
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset, and the one that the next record will get."""


class Admin(_Closing):
    """Every client's administration can do this much. Methods raise Refused."""

    @abstractmethod
    def create_topic(
        self, topic: str, partitions: int, replication: int, config: Mapping[str, str]
    ) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def replicas(self, topic: str) -> dict[int, list[int]]: ...

    @abstractmethod
    def add_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def config(self, topic: str) -> dict[str, str | None]: ...

    @abstractmethod
    def alter_config(self, topic: str, config: Mapping[str, str]) -> None: ...

    @abstractmethod
    def groups(self) -> set[str]: ...

    @abstractmethod
    def describe_group(self, group: str) -> Group: ...

    @abstractmethod
    def offsets(self, group: str) -> dict[tuple[str, int], int]: ...

    @abstractmethod
    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """The new first offset."""


class GroupAdmin(Admin):
    """What only some clients have."""

    @abstractmethod
    def delete_group(self, group: str) -> None: ...

    @abstractmethod
    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None: ...

    @abstractmethod
    def elect_preferred(self, topic: str, partition: int) -> None: ...


@dataclass(frozen=True)
class Client:
    """A library under test."""

    name: str
    compressions: tuple[str, ...]
    assignors: Mapping[str, Any] = field(default_factory=dict)

    def producer(self, bootstrap: str, options: ProducerOptions) -> Producer:
        raise NotImplementedError

    def consumer(self, bootstrap: str, options: ConsumerOptions) -> Consumer:
        raise NotImplementedError

    def admin(self, bootstrap: str) -> Admin:
        raise NotImplementedError
