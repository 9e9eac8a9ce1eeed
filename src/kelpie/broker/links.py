"""What a broker can reach beyond itself. The fabric decides what that is at any moment."""

from typing import Protocol

from kelpie.broker.controller import Controller
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class Links(Protocol):
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
