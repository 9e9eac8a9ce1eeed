"""Groups of Kafka 0.8's kind: ZooKeeper keeps their members, who owns which partition, and their offsets.

Such a group has no coordinator. Each member registers itself in an ephemeral node, computes alone which
partitions are its own, and claims each with another ephemeral node.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.zookeeper.assignment import consumer_of
from kelpie.zookeeper.config import PatternKind


class TopicStreams(NamedTuple):
    """How many threads of a member read a topic. With a white list, `topic` is a regular expression."""

    topic: str
    streams: int


class Registration(NamedTuple):
    """A node below /consumers/GROUP/ids."""

    member: str
    subscription: tuple[TopicStreams, ...] | None = None
    """None: it was not read, or cannot be read."""
    pattern: str = PatternKind.STATIC.value
    session: int | None = None
    """The session of ZooKeeper whose end deletes the node. None: unknown."""
    created: Instant | None = None


class OwnerNode(NamedTuple):
    """A node below /consumers/GROUP/owners/TOPIC: one thread of one member reads the partition."""

    topic: str
    partition: int
    thread: str
    session: int | None = None
    created: Instant | None = None

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def member(self) -> str:
        return consumer_of(self.thread)


class StoredOffset(NamedTuple):
    """A node below /consumers/GROUP/offsets/TOPIC."""

    topic: str
    partition: int
    offset: int
    modified: Instant | None = None

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class ZooKeeperGroup:
    """What ZooKeeper kept of a group at one time."""

    group: str
    registrations: tuple[Registration, ...] | None = None
    """None: they were not read."""
    owners: tuple[OwnerNode, ...] | None = None
    """None: they were not read."""
    offsets: tuple[StoredOffset, ...] = ()
    at: Instant | None = None
    source: str = ""

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(row.member for row in self.registrations or ())
