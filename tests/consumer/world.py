"""A cluster without brokers: it answers a consumer's questions as they would be answered in good health.

A test puts what it wants to happen instead into `instead`: answers, or failures, that are used up one by one.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from kelpie.assignors import assignment
from kelpie.consumer.effects import Failure, FailureKind, OutgoingRequest
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat, Beat
from kelpie.questions.fetch import AskRecords, FetchAnswer, FetchedPartition
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin, Joined, JoinedMember
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.metadata import AskMetadata, ClusterFacts, PartitionFacts, TopicFacts
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffset, CommittedOffsets
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds, EpochEnd
from kelpie.questions.sync_group import AskForAssignment, Synced
from kelpie.wire.records import Record, write_batch

GONE = Failure(FailureKind.DISCONNECTED, "The connection was lost.")
LATE = Failure(FailureKind.TIMED_OUT, "No answer came in time.")
TOO_OLD = Failure(FailureKind.UNSUPPORTED, "The broker does not speak that.")
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


@dataclass
class World:
    topics: dict[str, int] = field(default_factory=lambda: {"t": 2})
    brokers: dict[int, tuple[str, int]] = field(default_factory=lambda: {1: ("one", 9092), 2: ("two", 9092)})
    coordinator: int = 2
    epoch: int = 5
    leaders: dict[TopicPartition, int | None] = field(default_factory=dict)
    """Broker 1 leads what is not named."""
    logs: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Start and end; 0 and 10 if not named."""
    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    instead: dict[type[Any], list[Any]] = field(default_factory=lambda: defaultdict(list))
    generation: int = 0
    members: int = 0
    others: tuple[JoinedMember, ...] = ()
    """Further members, of a group that this consumer leads."""
    leads: bool = True
    granted: tuple[TopicPartition, ...] = ()
    """What a follower, or a member of the newer protocol, gets."""
    _handed_in: dict[str, bytes] = field(default_factory=dict)

    def answer(self, request: OutgoingRequest) -> Any:
        """An answer, or a Failure."""
        waiting = self.instead[type(request.question)]
        if waiting:
            return waiting.pop(0)
        return self._healthy(request.question)

    def log(self, partition: TopicPartition) -> tuple[int, int]:
        return self.logs.get(partition, (0, 10))

    def facts(self, topics: tuple[str, ...]) -> ClusterFacts:
        known = {name: self._topic(name) for name in topics}
        return ClusterFacts(self.brokers, known)

    def _topic(self, name: str) -> TopicFacts:
        if name not in self.topics:
            return TopicFacts(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, {})
        partitions = {}
        for number in range(self.topics[name]):
            leader = self.leaders.get(TopicPartition(name, number), 1)
            error = 0 if leader is not None else ErrorCode.LEADER_NOT_AVAILABLE
            partitions[number] = PartitionFacts(error, leader, self.epoch, (1, 2), (1, 2))
        return TopicFacts(0, topic_id(name), partitions)

    @singledispatchmethod
    def _healthy(self, question: Any) -> Any:
        raise NotImplementedError(type(question))

    @_healthy.register
    def _(self, question: AskMetadata) -> ClusterFacts:
        return self.facts(question.topics or ())

    @_healthy.register
    def _(self, question: AskCoordinator) -> FoundCoordinator:
        return FoundCoordinator(0, self.coordinator, *self.brokers[self.coordinator])

    @_healthy.register
    def _(self, question: AskToJoin) -> Joined:
        member_id = question.member_id
        if not member_id:
            self.members += 1
            return Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id=f"m-{self.members}")
        self.generation += 1
        name, blob = question.protocols[0]
        mine = JoinedMember(member_id, question.instance_id, blob)
        if not self.leads:
            return Joined(0, self.generation, "consumer", name, "leader", member_id)
        return Joined(0, self.generation, "consumer", name, member_id, member_id, (mine, *self.others))

    @_healthy.register
    def _(self, question: AskForAssignment) -> Synced:
        self._handed_in = dict(question.assignments)
        if not self.leads:
            return Synced(0, assignment(self.granted), question.protocol)
        return Synced(0, self._handed_in.get(question.member_id, b""), question.protocol)

    @_healthy.register
    def _(self, question: AskHeartbeat) -> int:
        return 0

    @_healthy.register
    def _(self, question: AskToLeave) -> int:
        return 0

    @_healthy.register
    def _(self, question: AskNewerHeartbeat) -> Beat:
        if question.epoch < 0:
            return Beat(0, epoch=question.epoch)
        if question.epoch == 0:
            self.generation += 1
        return Beat(0, None, question.member_id, self.generation, 5_000, ids(self.granted))

    @_healthy.register
    def _(self, question: AskCommitted) -> CommittedOffsets:
        asked = question.partitions if question.partitions is not None else tuple(self.committed)
        rows = {each: self.committed.get(each, CommittedOffset(-1)) for each in asked}
        return CommittedOffsets(0, rows)

    @_healthy.register
    def _(self, question: AskToCommit) -> dict[TopicPartition, int]:
        for partition, (offset, epoch, _) in question.offsets.items():
            self.committed[partition] = CommittedOffset(offset, epoch)
        return dict.fromkeys(question.offsets, 0)

    @_healthy.register
    def _(self, question: AskOffsets) -> dict[TopicPartition, ListedOffset]:
        return {
            partition: ListedOffset(0, self.log(partition)[timestamp != -2])
            for partition, (timestamp, _) in question.wanted.items()
        }

    @_healthy.register
    def _(self, question: AskEpochEnds) -> dict[TopicPartition, EpochEnd]:
        return {
            partition: EpochEnd(0, epoch, self.log(partition)[1])
            for partition, (_, epoch) in question.wanted.items()
        }

    @_healthy.register
    def _(self, question: AskRecords) -> FetchAnswer:
        return FetchAnswer(0, {each: self.records(each, at) for each, (at, _) in question.wanted.items()})

    def records(self, partition: TopicPartition, start: int) -> FetchedPartition:
        """Up to three records from there on."""
        first, end = self.log(partition)
        if not first <= start <= end:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        stop = min(end, start + 3)
        rows = [Record(offset, 1000 + offset, value=b"%d" % offset) for offset in range(start, stop)]
        blob = bytes(write_batch(rows, leader_epoch=self.epoch)) if rows else b""
        return FetchedPartition(0, end, end, first, (), blob)


def ids(partitions: tuple[TopicPartition, ...]) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """Partitions as the newer protocol names them."""
    grouped: dict[bytes, list[int]] = {}
    for topic, number in sorted(partitions):
        grouped.setdefault(topic_id(topic), []).append(number)
    return tuple(sorted((key, tuple(numbers)) for key, numbers in grouped.items()))
