"""Groups: which are listed, how they were described, and what their records in the offsets topic say."""

from dataclasses import dataclass
from typing import NamedTuple

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

CLASSIC = "classic"
CONSUMER = "consumer"
OTHER_KINDS = ("share", "streams")
"""Kinds that brokers list and that no rule judges."""


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


@dataclass(frozen=True, slots=True)
class GroupState:
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
