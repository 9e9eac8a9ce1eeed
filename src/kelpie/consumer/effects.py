"""What follows from one event of a consumer. The machine decides; the driver carries it out.

The driver sends every request over the connection of its node (opened if need be, and kept), and gives the
result back to the machine: `answered` or `unanswered`, with the token. `events` are for the application. At
`wake_at` the driver calls `woken`; the time of a later event replaces it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.offset_commit import OffsetToCommit
from kelpie.questions.question import Question
from kelpie.wire.records import Headers, TimestampType


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker, and which of its two connections.

    The coordinator gets a connection of its own, though the same broker may also lead partitions: a heartbeat
    must not wait behind a fetch. Java's client does so too: in its logs that is the node 2147483647 − id.
    """

    node_id: int
    """Below 0: a bootstrap address. It is not known yet which broker that is."""
    host: str
    port: int
    for_group: bool = False

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return self.address if self.node_id < 0 else f"broker {self.node_id} ({self.address})"


class FailureKind(StrEnum):
    UNREACHABLE = "no connection"
    DISCONNECTED = "connection lost"
    TIMED_OUT = "no answer"
    UNSUPPORTED = "not supported"
    REFUSED = "not let in"
    UNREADABLE = "unreadable answer"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer; `text` is a sentence."""

    kind: FailureKind
    text: str

    @property
    def breaks_connection(self) -> bool:
        return self.kind is not FailureKind.UNSUPPORTED


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    token: int
    node: BrokerNode
    question: Question[Any]
    timeout_ms: int


class ProblemKind(StrEnum):
    """The kinds of exceptions that poll and commit raise in Java."""

    NOT_AUTHORISED = "not-authorised"
    NO_OFFSET = "no-offset"
    OUT_OF_RANGE = "offset-out-of-range"
    TRUNCATED = "log-truncated"
    FENCED = "fenced"
    REFUSED = "refused"
    COMMIT_FAILED = "commit-failed"
    REBALANCING = "rebalance-in-progress"
    CORRUPT = "corrupt-records"
    TOO_LARGE = "record-too-large"
    UNSUPPORTED = "unsupported"
    UNEXPECTED = "unexpected"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that the consumer cannot mend by itself; `text` is for a person."""

    kind: ProblemKind
    text: str
    error: int | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class RecordsDelivered:
    """Records for the current poll, which ends with them."""

    records: tuple[ConsumedRecord, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked:
    """The member gave these up. Another member gets them after this."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """The member lost these. Another member may have them already."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProblemRaised:
    """Ends the current poll."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    commit_id: int
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class CommitFailed:
    commit_id: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class ConsumerClosed:
    """The last event: no request follows."""


Event = (
    RecordsDelivered
    | PartitionsAssigned
    | PartitionsRevoked
    | PartitionsLost
    | ProblemRaised
    | OffsetsCommitted
    | CommitFailed
    | ConsumerClosed
)


class Effects:
    """Collects what one event at the time `now` leads to."""

    def __init__(self, now: Instant) -> None:
        self.now = now
        self.requests: list[OutgoingRequest] = []
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self.wake_at: Instant | None = None

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def fail(self, problem: Problem) -> None:
        """What no part of the consumer can mend: the next poll raises it."""
        self.problems.append(problem)

    @property
    def size(self) -> int:
        return len(self.requests) + len(self.events) + len(self.problems)
