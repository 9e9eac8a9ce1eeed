"""A broker as its parts see it: coordinators, waiting fetches and waiting deletions.

`Broker` makes these parts and fulfils this protocol, so they need not import it.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from kelpie.broker.controller import Controller
from kelpie.broker.image import Image
from kelpie.broker.log import LogConfig
from kelpie.broker.personas import Persona
from kelpie.broker.replica import Replica
from kelpie.broker.settings import BrokerSettings
from kelpie.broker.timers import Timers
from kelpie.broker.traffic import Traffic
from kelpie.coordinator.notes import Note
from kelpie.coordinator.transactions import MarkerRequest
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class Links(Protocol):
    """What a broker can reach beyond itself. The fabric decides what that is at any moment."""

    @property
    def zookeeper_offsets(self) -> dict[tuple[str, TopicPartition], tuple[int, str]]:
        """Offset and metadata of consumers that commit to ZooKeeper: OffsetCommit and OffsetFetch v0."""

    def controller(self) -> Controller | None:
        """The controller, if it can be reached."""

    def publish(self, now: Instant) -> None:
        """Carries the controller's image to the brokers that can be reached."""

    def appended(self, partition: TopicPartition) -> None:
        """There is something new for this partition's followers."""

    def new_id(self) -> str:
        """A random id, for members."""


class Host(Protocol):
    node_id: int
    settings: BrokerSettings
    persona: Persona
    image: Image
    timers: Timers
    replicas: dict[TopicPartition, Replica]
    load_delays: dict[int | None, int]
    traffic: Traffic | None

    @property
    def links(self) -> Links: ...

    def tell(self, partition: TopicPartition, notes: Iterable[Note], now: Instant) -> None: ...

    def led(self, partition: TopicPartition) -> Replica | ErrorCode: ...

    def refuses_write(self, replica: Replica, *, all_acks: bool = True) -> ErrorCode | None: ...

    def appended(self, replica: Replica, now: Instant) -> None: ...

    def log_config(self, partition: TopicPartition) -> LogConfig: ...

    def write_marker(
        self,
        marker: MarkerRequest,
        partition: TopicPartition,
        now: Instant,
        *,
        written: Callable[[Instant], None],
        failed: Callable[[], None],
    ) -> None: ...
