"""Offsets: committed ones, the ends of logs, and transactions that hold readers back."""

from typing import NamedTuple

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

NO_OFFSET = NO_SIZE = -1


class Commit(NamedTuple):
    """One record of the offsets topic: an offset was committed at a time, or removed (`offset` NO_OFFSET)."""

    group: str
    topic: str
    partition: int
    offset: int
    at: Instant | None
    """The commit timestamp of the record; for a tombstone, the time of its batch."""
    leader_epoch: int = -1
    metadata: str = ""
    expires: Instant | None = None
    """Only very old clients ask for that."""
    transactional: bool = False
    source: str = ""
    topic_id: str = ""
    """Of the topic in which it was committed; brokers write it since Kafka 4.1."""

    @property
    def removed(self) -> bool:
        return self.offset == NO_OFFSET

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class PendingCommit(NamedTuple):
    """An offset in a transaction that was neither committed nor aborted when the topic was read."""

    group: str
    topic: str
    partition: int
    offset: int
    producer_id: int
    """Of the producer whose transaction it is."""
    producer_epoch: int = -1
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Committed(NamedTuple):
    """What the coordinator says is committed now. NO_OFFSET: nothing; `error` is Kafka's code."""

    group: str
    topic: str
    partition: int
    offset: int
    error: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


BY_TIMESTAMPS = "by timestamps"
"""How the source of ends ends that were asked for by a time in the past."""


class LogEnds(NamedTuple):
    """Where a partition begins and ends. What is not known is NO_OFFSET; `error` is Kafka's code, or 0."""

    topic: str
    partition: int
    earliest: int = NO_OFFSET
    latest: int = NO_OFFSET
    """The high watermark."""
    stable: int = NO_OFFSET
    """The last stable offset: where readers of committed records stop."""
    error: int = 0
    leader_epoch: int = -1
    last_written: Instant | None = None
    """Timestamp of the newest record."""
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class LogSize(NamedTuple):
    """The size of a partition's log on the broker that leads it (DescribeLogDirs), in bytes.

    It is what lies on the broker's own disk, without indexes. Older segments in tiered storage are not in it.
    """

    topic: str
    partition: int
    size: int = NO_SIZE
    """NO_SIZE: not known; `error` says why."""
    node: int = -1
    """The broker."""
    cleanup_policy: str = ""
    """The setting of the topic: delete, compact, or both; empty: not known."""
    is_tiered: bool = False
    """Whether older segments move to remote storage."""
    error: int = 0
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class OpenTransaction(NamedTuple):
    """A producer's transaction that is open in a partition, and so holds the last stable offset."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    started_at_offset: int
    last_written: Instant | None = None
    transactional_id: str = ""
    coordinator_epoch: int = -1
    state: str = ""
    """As the transaction coordinator says. Empty: no coordinator knows the transaction; all were asked by a
    caller who may see every transaction. "?": that cannot be told.
    """
    timeout_ms: int = -1
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class LeaderEpochEnd(NamedTuple):
    """Where a leader epoch ends in a partition's log, as its leader says (OffsetForLeaderEpoch)."""

    topic: str
    partition: int
    asked: int
    """The leader epoch that was asked for: that of a commit."""
    leader_epoch: int = -1
    """The largest epoch up to the one asked for that the log knows; -1: it knows none."""
    end: int = NO_OFFSET
    """The offset behind its last record."""
    error: int = 0
    at: Instant | None = None
    source: str = ""

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
