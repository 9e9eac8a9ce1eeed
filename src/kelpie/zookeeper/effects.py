"""What follows from an event of a ZooKeeper consumer. The machine decides; the driver carries it out.

Effects come in order. `Ask` goes to ZooKeeper, `StartFetching` and `StopFetching` to whatever reads from
brokers, `Tell` to the application, `EndSession` closes the session.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.zookeeper.nodes import Broker
from kelpie.zookeeper.requests import Request
from kelpie.zookeeper.steps import Cause


@dataclass(frozen=True, slots=True)
class Ask:
    """Requests, carried out in order, in the session of now. All answers come back as one `answered`."""

    token: int
    requests: tuple[Request, ...]


class FetchPosition(NamedTuple):
    offset: int
    """Below 0: none is committed; the reset policy decides."""
    thread: str


@dataclass(frozen=True, slots=True)
class StartFetching:
    """Read these partitions from these offsets on. Nothing is being read now."""

    positions: dict[TopicPartition, FetchPosition]
    brokers: tuple[Broker, ...]
    """Addresses to begin with, of all brokers that ZooKeeper knows."""


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Read nothing any more. Records that were not handed to the application are dropped."""


@dataclass(frozen=True, slots=True)
class EndSession:
    """Close the session: ZooKeeper removes the ephemeral nodes at once. The machine takes no more events."""


@dataclass(frozen=True, slots=True)
class PartitionsOwned:
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsReleased:
    """Given up in order: their offsets are committed, if the consumer commits by itself."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """Another consumer may read them already. Offsets since the last commit are not committed."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class RebalanceFailure:
    """ConsumerRebalanceFailedException, as the application sees it.

    Faithful: only when the consumer starts. The application must then call `close`; if it does not, a later
    change of the group makes the consumer claim partitions that nobody reads (a zombie).
    """

    consumer_id: str
    cause: Cause
    attempts: int
    recovers_in_ms: int | None

    @property
    def message(self) -> str:
        return f"{self.consumer_id} can't rebalance after {self.attempts} retries"


ApplicationEvent = PartitionsOwned | PartitionsReleased | PartitionsLost | RebalanceFailure


@dataclass(frozen=True, slots=True)
class Tell:
    event: ApplicationEvent


Effect = Ask | StartFetching | StopFetching | EndSession | Tell
