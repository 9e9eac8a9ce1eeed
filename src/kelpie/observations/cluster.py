"""Brokers, partitions as each broker sees them, answers about coordinators, and what could not be asked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

OFFSETS_TOPIC = "__consumer_offsets"
NO_LEADER = -1


class Trouble(StrEnum):
    """What kept a question from being answered. `reason` has the words, this has the kind."""

    REFUSED = "refused"
    """Nothing listens at the port."""
    NO_ANSWER = "no-answer"
    """No connection in time: the host is down, or a firewall drops packets."""
    UNKNOWN_NAME = "unknown-name"
    SLOW = "slow"
    """It takes connections, and does not answer in time."""
    CERTIFICATE_EXPIRED = "certificate-expired"
    """Or not valid yet."""
    CERTIFICATE_NAME = "certificate-name"
    CERTIFICATE_UNTRUSTED = "certificate-untrusted"
    TLS = "tls"
    """Other failures of encryption: a listener without TLS, a client certificate that it does not accept."""
    LOGIN = "login"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker, and whether it is alive; `alive` is None if that is unknown."""

    node_id: int
    host: str = ""
    port: int = -1
    rack: str | None = None
    alive: bool | None = None
    reason: str = ""
    """Why it is considered dead, or why that is unknown."""
    release: str = ""
    """Concluded from its API versions: "0.9", "2.8", "4.x"."""
    at: Instant | None = None
    source: str = ""
    trouble: str = ""
    """Of a broker that could not be asked: one of `Trouble`. Empty: unknown, or none."""
    cluster_id: str = ""
    """Of the cluster that it belongs to, as it says. Kafka before 0.10.1 has none."""
    controller: int = -1
    """The controller, as it says. In a cluster without ZooKeeper it names any broker."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}" if self.host else ""

    def __str__(self) -> str:
        """As people write it: "broker 2 (10.0.0.2:9092)"."""
        return f"broker {self.node_id}" + (f" ({self.address})" if self.host else "")


class PartitionView(NamedTuple):
    """One partition, as one broker (or one tool) described it at one time."""

    topic: str
    partition: int
    leader: int
    """NO_LEADER when there is none."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error: int = 0
    leader_epoch: int = -1
    offline: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    """Kafka 4: replicas out of sync that may still lead without loss (Elr)."""
    told_by: int | None = None
    """Node id of the broker that was asked, or None: a tool's output."""
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class TopicView(NamedTuple):
    """One topic, as one broker answered when it was asked for it."""

    topic: str
    topic_id: str = ""
    """As Kafka writes it. Empty: the release has no ids (before 2.8), or the topic is not there."""
    error: int = 0
    """Kafka's code. 0: it is there; 3: there is no such topic; 29: the caller may not describe it."""
    by_name: bool = True
    """Whether the topic was asked for by name. A listing of all topics leaves out those that the caller may
    not describe without a word, so there error 3 may also mean that."""
    told_by: int | None = None
    at: Instant | None = None
    source: str = ""


class ClockReading(NamedTuple):
    """The time that a node's clock showed between two moments of the clock here.

    Only the leader of the controllers' quorum tells its time (DescribeQuorum).
    """

    node_id: int
    told: Instant
    sent: Instant
    """When the question was sent."""
    at: Instant | None = None
    """When the answer was there."""
    source: str = ""


BROKER, AUTHORITY, CLIENT = "broker", "authority", "client"
"""Whose a certificate is."""


class Certificate(NamedTuple):
    """From when until when a certificate is valid, as a TLS handshake or the caller's own key store shows."""

    holder: str
    """BROKER; AUTHORITY: it signed a broker's, and the caller trusts it; CLIENT: the caller's own."""
    subject: str
    not_before: Instant
    not_after: Instant
    node: int = -1
    """The broker that showed it; −1: none did."""
    at: Instant | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class CoordinatorAnswer:
    """Who a broker says coordinates a group; or what the coordinator said when it was asked for the group.

    `asked` is the API: FindCoordinator, DescribeGroups, OffsetFetch … `node_id` is −1 when nobody was named.
    """

    group: str
    asked: str
    error: ErrorCode
    told_by: int | None = None
    node_id: int = -1
    address: str = ""
    message: str = ""
    at: Instant | None = None
    source: str = ""


class Setting(NamedTuple):
    """One configuration value. `of` is "broker" (any of them), "broker 2", "topic NAME", or "group NAME"."""

    of: str
    name: str
    value: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Unasked:
    """A question that no broker or file could answer, and why.

    `kind` is broker, group, partition, topic, history, settings, sizes, file or
    zookeeper; `name` says which one.
    """

    kind: str
    name: str
    reason: str
    at: Instant | None = None
    source: str = ""
