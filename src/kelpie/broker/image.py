"""What a broker believes about its cluster: brokers, topics, partitions, leaders, settings.

The controller holds the true image and makes a new one with every change. Brokers take over the images that
reach them, so a broker that is cut off, or whose view is frozen, goes on with an old one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kelpie.model.names import TopicPartition
from kelpie.wire.structs import NodeEndpoint

NO_LEADER = -1
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


@dataclass(frozen=True, slots=True)
class Endpoint:
    node_id: int
    host: str
    port: int
    rack: str | None = None
    listeners: frozenset[str] = frozenset({"PLAINTEXT"})
    """Where clients reach it. A broker may lack the listener that a client came through."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    """Eligible leader replicas: they left an ISR that was too small already, and have every committed
    record (KIP-966).
    """
    last_leader: tuple[int, ...] = ()
    """The leader when the ISR became empty. Kafka reports it as the last known ELR."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def with_partition(self, index: int, partition: PartitionImage) -> "TopicImage":
        changed = list(self.partitions)
        changed[index] = partition
        return replace(self, partitions=tuple(changed))


@dataclass(frozen=True, slots=True)
class Image:
    version: int
    cluster_id: str
    brokers: Mapping[int, Endpoint]
    """All that were ever registered."""
    alive: frozenset[int]
    topics: Mapping[str, TopicImage]
    names: Mapping[bytes, str]
    """Topic ids to names."""
    controller_id: int
    broker_config: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic settings, by node id as text; under "" those of all brokers."""

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def partition(self, partition: TopicPartition) -> PartitionImage | None:
        topic = self.topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        return topic.partitions[partition.partition]

    def leader_of(self, partition: TopicPartition) -> Endpoint | None:
        """The leader, if there is one and it is alive."""
        state = self.partition(partition)
        if state is None or state.leader not in self.alive:
            return None
        return self.brokers[state.leader]

    def endpoints(self, nodes: Iterable[int]) -> list[NodeEndpoint]:
        """Where the living brokers of these are. Answers that name a leader say it too (KIP-951)."""
        return [
            NodeEndpoint(node_id=node, host=endpoint.host, port=endpoint.port, rack=endpoint.rack)
            for node in sorted(self.alive.intersection(nodes))
            for endpoint in [self.brokers[node]]
        ]

    def with_topic(self, topic: TopicImage) -> "Image":
        return replace(
            self,
            version=self.version + 1,
            topics=MappingProxyType({**self.topics, topic.name: topic}),
            names=MappingProxyType({**self.names, topic.topic_id: topic.name}),
        )

    def without_topic(self, name: str) -> "Image":
        gone = self.topics[name]
        return replace(
            self,
            version=self.version + 1,
            topics=MappingProxyType({key: topic for key, topic in self.topics.items() if key != name}),
            names=MappingProxyType({key: value for key, value in self.names.items() if key != gone.topic_id}),
        )

    def with_alive(self, alive: frozenset[int]) -> "Image":
        controller = self.controller_id if self.controller_id in alive else min(alive, default=-1)
        return replace(self, version=self.version + 1, alive=alive, controller_id=controller)
