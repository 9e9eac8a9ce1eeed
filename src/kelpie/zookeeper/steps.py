"""The steps of a ZooKeeper consumer: what it did and saw, in order, each as a value with a sentence.

Steps are data. `log_lines` writes them as Kafka 0.8 would log them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, listed, ranges
from kelpie.zookeeper.assignment import partitions_of

MOST_KEPT = 5_000


class Cause(StrEnum):
    """What makes a consumer rebalance, and so which of its threads does it."""

    START = "the consumer starts"
    MEMBERS = "members of the group changed"
    BROKERS = "brokers changed"
    PARTITIONS = "the partitions of a topic changed"
    TOPICS = "topics were created or deleted"
    SESSION = "a new session with ZooKeeper began"
    RECOVERY = "the consumer recovers from a failure"
    CONNECTION = "the connection to ZooKeeper came back late"


@dataclass(frozen=True, slots=True)
class Step(ABC):
    @property
    @abstractmethod
    def sentence(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SessionBegan(Step):
    session: int
    is_first: bool

    @property
    def sentence(self) -> str:
        return f"Session {self.session:#x} with ZooKeeper begins."


@dataclass(frozen=True, slots=True)
class Disconnected(Step):
    @property
    def sentence(self) -> str:
        return "The connection to ZooKeeper is lost. The session lives on until its timeout."


@dataclass(frozen=True, slots=True)
class Reconnected(Step):
    session: int

    @property
    def sentence(self) -> str:
        return f"ZooKeeper answers again, in the same session {self.session:#x}."


@dataclass(frozen=True, slots=True)
class SessionExpired(Step):
    @property
    def sentence(self) -> str:
        return "The session has expired: ZooKeeper removes the registration and all owner nodes of it."


@dataclass(frozen=True, slots=True)
class OwnershipDoubted(Step):
    partitions: tuple[TopicPartition, ...]

    @property
    def sentence(self) -> str:
        return (
            "ZooKeeper was away for so long that the session may have expired. "
            f"Reading stops: {partitions_of(self.partitions)}."
        )


@dataclass(frozen=True, slots=True)
class Registering(Step):
    path: str

    @property
    def sentence(self) -> str:
        return f"Registers as {self.path}."


@dataclass(frozen=True, slots=True)
class RegistrationWaits(Step):
    path: str
    stored: str
    wait_ms: int

    @property
    def sentence(self) -> str:
        return (
            f"{self.path} exists already, of an earlier session. "
            f"It is tried again in {duration(self.wait_ms)} at the latest."
        )


@dataclass(frozen=True, slots=True)
class Registered(Step):
    path: str

    @property
    def sentence(self) -> str:
        return "Is registered: the others see this consumer and leave it its share."


@dataclass(frozen=True, slots=True)
class Triggered(Step):
    cause: Cause
    path: str = ""
    value: str = ""
    """Of the node that changed, where its value counts."""

    @property
    def sentence(self) -> str:
        return f"A rebalance is due: {self.cause.value}{f' ({self.path})' if self.path else ''}."


@dataclass(frozen=True, slots=True)
class TopicsChosen(Step):
    """The topics that a pattern names now."""

    topics: tuple[str, ...]
    added: tuple[str, ...]
    deleted: tuple[str, ...]
    is_event: bool
    """False: looked up at the start."""

    @property
    def sentence(self) -> str:
        return f"The pattern names {counted(len(self.topics), 'topic')}: {listed(self.topics) or 'none'}."


@dataclass(frozen=True, slots=True)
class AttemptBegan(Step):
    number: int
    cause: Cause

    @property
    def sentence(self) -> str:
        return f"Rebalances, try #{self.number}: {self.cause.value}."


@dataclass(frozen=True, slots=True)
class NoBrokers(Step):
    @property
    def sentence(self) -> str:
        return "No broker is registered in ZooKeeper. Waits for one; the rebalance ends here."


@dataclass(frozen=True, slots=True)
class NodeIgnored(Step):
    path: str
    reason: str

    @property
    def sentence(self) -> str:
        return f"Another consumer's registration does not count: {self.reason}"


@dataclass(frozen=True, slots=True)
class FetchersStopped(Step):
    partitions: tuple[TopicPartition, ...]

    @property
    def sentence(self) -> str:
        if not self.partitions:
            return "Reads nothing, so there is nothing to stop."
        return f"Stops reading {partitions_of(self.partitions)}."


@dataclass(frozen=True, slots=True)
class OffsetsCommitted(Step):
    offsets: dict[TopicPartition, int]
    at_rebalance: bool

    @property
    def sentence(self) -> str:
        committed = ", ".join(
            f"{partition} at {offset}" for partition, offset in sorted(self.offsets.items())
        )
        return f"Commits {committed}." if committed else "There is no new offset to commit."


@dataclass(frozen=True, slots=True)
class CommitRefused(Step):
    partition: TopicPartition
    offset: int

    @property
    def sentence(self) -> str:
        return (
            f"The offset {self.offset} of {self.partition} is not committed: another consumer has committed "
            "since this one took the partition."
        )


@dataclass(frozen=True, slots=True)
class OwnersReleased(Step):
    partitions: tuple[TopicPartition, ...]

    @property
    def sentence(self) -> str:
        if not self.partitions:
            return "Owns nothing, so there is nothing to release."
        return f"Deletes its owner nodes of {partitions_of(self.partitions)}."


@dataclass(frozen=True, slots=True)
class TopicAssigned(Step):
    topic: str
    partitions: tuple[int, ...]
    threads: tuple[str, ...]
    mine: tuple[tuple[str, tuple[int, ...]], ...]
    """The threads of this consumer, each with its partitions."""

    @property
    def sentence(self) -> str:
        shares = listed([f"{thread}: {ranges(numbers) or 'none'}" for thread, numbers in self.mine])
        return (
            f"{counted(len(self.partitions), 'partition')} of {self.topic} by range over "
            f"{counted(len(self.threads), 'thread')}; its own: {shares}."
        )


@dataclass(frozen=True, slots=True)
class OffsetsRead(Step):
    offsets: dict[TopicPartition, int]

    @property
    def sentence(self) -> str:
        read = ", ".join(
            f"{partition} at {offset}" if offset >= 0 else f"{partition} without one"
            for partition, offset in sorted(self.offsets.items())
        )
        return f"Reads the committed offsets: {read or 'none'}."


@dataclass(frozen=True, slots=True)
class Claimed(Step):
    partition: TopicPartition
    thread: str

    @property
    def sentence(self) -> str:
        return f"{self.thread} creates the owner node of {self.partition}."


@dataclass(frozen=True, slots=True)
class ClaimTrusted(Step):
    path: str
    partition: TopicPartition
    thread: str
    is_own_session: bool

    @property
    def sentence(self) -> str:
        whose = "of this session" if self.is_own_session else "of an earlier session, which will remove it"
        return f"{self.path} holds {self.thread} already, {whose}; it counts as claimed."


@dataclass(frozen=True, slots=True)
class Conflict(Step):
    path: str
    partition: TopicPartition
    thread: str
    stored: str | None
    """The owner that the node names; None: the node is gone by now."""
    session: int = 0
    is_own_stale: bool = False

    @property
    def sentence(self) -> str:
        if self.stored is None:
            return f"{self.partition} was still owned a moment ago; the node is gone now."
        if self.is_own_stale:
            return (
                f"{self.partition} is still owned by {self.stored} of the expired session "
                f"{self.session:#x}. ZooKeeper will remove the node; until then this consumer waits."
            )
        return f"{self.partition} is still owned by {self.stored} (session {self.session:#x})."


@dataclass(frozen=True, slots=True)
class RolledBack(Step):
    partitions: tuple[TopicPartition, ...]

    @property
    def sentence(self) -> str:
        return f"Deletes the owner nodes that it just created: {partitions_of(self.partitions)}."


@dataclass(frozen=True, slots=True)
class AttemptBroken(Step):
    reason: str

    @property
    def sentence(self) -> str:
        return f"ZooKeeper's nodes changed during the try: {self.reason}"


@dataclass(frozen=True, slots=True)
class AttemptEnded(Step):
    number: int
    succeeded: bool
    positions: dict[TopicPartition, int]

    @property
    def sentence(self) -> str:
        if not self.succeeded:
            return f"Try #{self.number} failed."
        return f"Try #{self.number} succeeded. Reads {partitions_of(self.positions)}."


@dataclass(frozen=True, slots=True)
class BackingOff(Step):
    wait_ms: int

    @property
    def sentence(self) -> str:
        return f"Owns nothing and waits {duration(self.wait_ms)} before it goes on."


@dataclass(frozen=True, slots=True)
class RebalanceFailed(Step):
    cause: Cause
    attempts: int
    is_told: bool
    """Whether the application learns of it."""

    @property
    def sentence(self) -> str:
        told = "The application is told." if self.is_told else "Only a line in the log says so."
        return (
            f"The rebalance has failed after {counted(self.attempts, 'try', 'tries')}: the consumer is "
            f"registered and owns nothing. {told}"
        )


@dataclass(frozen=True, slots=True)
class Recovering(Step):
    wait_ms: int

    @property
    def sentence(self) -> str:
        return f"In {duration(self.wait_ms)}: release, register again, rebalance."


@dataclass(frozen=True, slots=True)
class Closing(Step):
    @property
    def sentence(self) -> str:
        return "Closes: stops reading, commits, ends the session."


@dataclass(frozen=True, slots=True)
class Closed(Step):
    elapsed_ms: int

    @property
    def sentence(self) -> str:
        return "Is closed. ZooKeeper removes its nodes with the session."


@dataclass(frozen=True, slots=True)
class RecordedStep:
    at: Instant
    step: Step


class StepHistory:
    """The last steps. `since` gives those that a reader has not had."""

    def __init__(self) -> None:
        self._steps: deque[RecordedStep] = deque(maxlen=MOST_KEPT)
        self.count = 0
        """How many there were in all."""

    def add(self, at: Instant, step: Step) -> None:
        self._steps.append(RecordedStep(at, step))
        self.count += 1

    def since(self, count: int) -> Iterator[RecordedStep]:
        """The steps after the first `count`, as far as they are kept."""
        skipped = max(0, len(self._steps) - (self.count - count))
        return iter(tuple(self._steps)[skipped:])

    @property
    def steps(self) -> tuple[RecordedStep, ...]:
        return tuple(self._steps)
