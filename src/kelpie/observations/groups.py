"""Groups: which are listed, how they were described, and what their records in the offsets topic say."""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
OTHER_KINDS = (SHARE, STREAMS)
UNTOLD = "Unknown"
"""The state of a group of which it is known that there is one, and no more; Kafka's own word."""
"""Kinds of groups since Kafka 4.1. Brokers that only list them do not tell their members."""
CONNECT = "connect"
"""The protocol type of the workers of Kafka Connect: their assignments are connectors and tasks."""
STREAMS_ASSIGNOR = "stream"
"""The assignor of Kafka Streams in groups of the classic protocol."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups that one broker listed; with an error, what came instead."""

    told_by: int | None
    groups: tuple[str, ...]
    error: ErrorCode = ErrorCode.NONE
    at: Instant | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """Unknown values are None, or -1 for times: DescribeGroups has no timeouts, records have them."""

    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None
    subscribed: tuple[str, ...] | None = None
    assigned: tuple[TopicPartition, ...] | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    """In Java clients since 0.10.1 this is max.poll.interval.ms."""
    epoch: int = -1
    target: tuple[TopicPartition, ...] | None = None
    """What the coordinator wants it to have, in groups that a coordinator assigns (KIP-848, Streams)."""
    pattern: str = ""
    """The regular expression that it subscribes with, where the coordinator evaluates it (KIP-848)."""


class SharePosition(NamedTuple):
    """Where a share group stands in a partition."""

    topic: str
    partition: int
    start: int
    """All records before it are done. -1: no member has acquired a record yet."""
    lag: int = -1
    """Records that are not done, as the broker counts them (since 4.2); -1: not told."""
    leader_epoch: int = -1
    error: int = 0

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class GroupState(NamedTuple):
    """A group as its coordinator (or a tool) described it at one time."""

    group: str
    state: str
    """In Kafka's words: Stable, PreparingRebalance, Empty, Dead, Reconciling …"""
    kind: str = CLASSIC
    protocol_type: str = ""
    protocol: str = ""
    """The assignor that was chosen."""
    epoch: int = -1
    members: tuple[Member, ...] = ()
    coordinator: int = -1
    error: ErrorCode = ErrorCode.NONE
    at: Instant | None = None
    source: str = ""
    share_positions: tuple[SharePosition, ...] = ()
    """Of a share group: it has no committed offsets."""

    @property
    def is_described(self) -> bool:
        """Whether it says who is in the group. A broker may list a group and not describe it."""
        is_live = self.state not in ("Empty", "Dead", "")
        return not (self.kind in OTHER_KINDS and is_live and not self.members)

    @property
    def is_streams(self) -> bool:
        """Whether it is an application of Kafka Streams, by either protocol."""
        return self.kind == STREAMS or self.protocol == STREAMS_ASSIGNOR

    @property
    def is_connect(self) -> bool:
        return self.protocol_type == CONNECT

    @property
    def is_incremental(self) -> bool:
        """Whether its members keep what does not move in a rebalance, which then takes two rounds."""
        return self.kind != CLASSIC or self.is_streams or self.is_connect or "cooperative" in self.protocol


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a group, from its record in the offsets topic or from logs.

    Not every generation leaves a record, and a group that was removed begins again at 0.
    """

    group: str
    generation: int
    members: tuple[Member, ...] = ()
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    at: Instant | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class GroupRemoved:
    """The tombstone of a group."""

    group: str
    at: Instant | None = None
    source: str = ""


class Illness(NamedTuple):
    """An earlier examination found that a group did not consume. `at`: when it was last found so."""

    group: str
    code: str
    since: Instant
    at: Instant | None
    source: str = ""


class KnownGroup(NamedTuple):
    """A group that only an earlier survey, a log or a file names; `source` says which."""

    group: str
    source: str
