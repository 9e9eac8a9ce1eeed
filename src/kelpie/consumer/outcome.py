"""What follows from one event of a consumer. The machine decides; whoever drives it carries it out.

The driver sends every `Ask` over the connection of its `Place` (opened if need be, and kept), and brings
back what came of it: `answered` or `unanswered`, with the token. `events` are for the application. At
`wake_at` the driver calls `woken`; each outcome replaces the time of the one before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.question import Question
from kelpie.wire.records import Headers, TimestampType


@dataclass(frozen=True, slots=True)
class Place:
    """A connection: to which broker, and what for.

    The coordinator gets a connection of its own, though the same broker may also lead partitions: a heartbeat
    must not wait behind a fetch. Java's client does so too, by the node id 2147483647 − id in its logs.
    """

    node_id: int
    """Below 0: a bootstrap address, of which nobody knows yet which broker it is."""
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
class Ask:
    token: int
    place: Place
    question: Question[Any]
    limit_ms: int


class ProblemKind(StrEnum):
    """What poll or commit raise in Java, by its nature."""

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
    """What the consumer cannot mend by itself; `text` is for a person."""

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
class OffsetToCommit:
    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Records for the poll that is under way; it ends with them."""

    records: tuple[ConsumedRecord, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Given up in order: another member gets them after this."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Taken away: another member may have them already."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """For the poll that is under way; it ends with it."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Committed:
    commit_id: int
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class CommitRefused:
    commit_id: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event: nothing more is asked."""


Event = Delivered | Assigned | Revoked | Lost | Raised | Committed | CommitRefused | Closed


@dataclass(frozen=True, slots=True)
class Outcome:
    asks: tuple[Ask, ...] = ()
    events: tuple[Event, ...] = ()
    wake_at: Instant | None = None
