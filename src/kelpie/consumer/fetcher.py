"""Fetching: one request to each leader at a time, for partitions that are FETCHING and have nothing left.

| error of a partition                            | what follows                                         |
|-------------------------------------------------|------------------------------------------------------|
| none                                            | the records are kept until a poll takes them         |
| 3, 6, 9, 56, 74, 78, 100, 103                   | ask for metadata; fetch again after the back-off     |
| 75 UNKNOWN_LEADER_EPOCH, −1                     | fetch again after the back-off                       |
| 1 OFFSET_OUT_OF_RANGE                           | the reset policy decides; without one, poll raises   |
| 29 TOPIC_AUTHORIZATION_FAILED                   | poll raises it                                       |
| 2 CORRUPT_MESSAGE, and any other                | poll raises it                                       |

An answer counts only if the partition is still assigned, still FETCHING, and still at the offset of the
request. Records of a partition that is paused or about to be revoked are not delivered. A position moves when
records are delivered, not when they arrive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelpie.consumer.completed_fetch import CompletedFetch
from kelpie.consumer.effects import (
    BrokerNode,
    ConsumedRecord,
    Effects,
    Failure,
    FailureKind,
    Problem,
    ProblemKind,
)
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.fetch_positions import FetchPositions
from kelpie.consumer.positions.partition_state import FetchPosition, FetchState
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.fetch import AskRecords, FetchAnswer, FetchedPartition
from kelpie.questions.question import listed
from kelpie.wire.malformed import Malformed

_ANOTHER_LEADER = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_LATER = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


@dataclass(eq=False, slots=True)
class Fetcher:
    _requests: PendingRequests
    _metadata: ConsumerMetadata
    _assignment: SubscriptionState
    _positions: FetchPositions
    _under_way: dict[BrokerNode, int] = field(default_factory=dict)
    _kept: dict[TopicPartition, CompletedFetch] = field(default_factory=dict)
    _not_before: dict[TopicPartition, Instant] = field(default_factory=dict)

    # Delivery.

    def take(self, effects: Effects, most: int) -> list[ConsumedRecord]:
        """Records for the application. Their delivery moves the positions."""
        taken: list[ConsumedRecord] = []
        for partition, kept in tuple(self._kept.items()):
            state = self._assignment.get(partition)
            if state is None or state.position is None or state.fetch_state is not FetchState.FETCHING:
                del self._kept[partition]  # Revoked, or at another position, since the fetch.
                continue
            if state.position.offset != kept.next_offset:
                del self._kept[partition]
                continue
            if not state.is_fetchable or len(taken) >= most:
                continue
            try:
                taken += kept.take(most - len(taken))
            except Malformed as malformed:
                del self._kept[partition]
                self._broken(effects, partition, kept.next_offset, malformed)
            before = state.position
            epoch = kept.epoch if kept.next_offset > before.offset else before.epoch
            state.consumed(FetchPosition(kept.next_offset, epoch, before.leader))
            if kept.is_done:
                self._kept.pop(partition, None)
                if kept.is_cut_off:
                    self._too_large(effects, partition, kept.next_offset)
        return taken

    # Requests.

    def advance(self, effects: Effects) -> None:
        wanted: dict[BrokerNode, dict[TopicPartition, tuple[int, int | None]]] = {}
        self._not_before = {
            partition: at for partition, at in self._not_before.items() if partition in self._assignment
        }
        for partition, state in self._assignment:
            if not state.is_fetchable or partition in self._kept:
                continue
            if effects.now < self._not_before.get(partition, 0):
                continue
            assert state.position is not None
            leader = self._metadata.leader(partition)
            node = self._requests.nodes.broker(leader.node_id)
            if node is None or self._requests.nodes.is_unavailable(node, effects.now):
                self._metadata.outdated()
                self._later(effects, [partition])
            elif not self._requests.is_pending(self._under_way.get(node)):
                wanted.setdefault(node, {})[partition] = (state.position.offset, leader.epoch)
        for node, partitions in wanted.items():
            self._send(effects, node, partitions)

    def deadline(self, now: Instant) -> Instant | None:
        waiting = [at for at in self._not_before.values() if at > now]
        return min(waiting, default=None)

    def _send(
        self, effects: Effects, node: BrokerNode, wanted: Mapping[TopicPartition, tuple[int, int | None]]
    ) -> None:
        config = self._requests.config
        question = AskRecords(
            wanted,
            int(config.isolation_level),
            config.fetch_max_wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            config.max_partition_fetch_bytes,
        )
        self._under_way[node] = self._requests.send(
            effects,
            StepKind.FETCH,
            node,
            question,
            on_answer=lambda effects, fetched: self._on_answer(effects, wanted, fetched),
            on_failure=lambda effects, failure: self._on_failure(effects, wanted, failure),
            timeout_ms=config.request_timeout_ms + config.fetch_max_wait_ms,
        )

    def _on_answer(
        self, effects: Effects, wanted: Mapping[TopicPartition, tuple[int, int | None]], fetched: FetchAnswer
    ) -> str | Failed:
        if fetched.error:
            self._later(effects, wanted)
            return Failed(f"{info(fetched.error).meaning} It is fetched again.")
        sentences: list[str] = []
        failed = False
        size = 0
        for partition, (offset, _) in wanted.items():
            row = fetched.partitions.get(partition)
            state = self._assignment.get(partition)
            if row is None:
                self._later(effects, [partition])
                continue
            if state is None or state.fetch_state is not FetchState.FETCHING or state.position is None:
                continue
            if state.position.offset != offset:
                continue
            if row.error:
                sentences.append(f"{partition}: {self._refused(effects, partition, offset, row)}")
                failed = True
                continue
            self._not_before.pop(partition, None)
            state.high_watermark = row.high_watermark
            if row.records:
                size += len(row.records)
                self._keep(partition, offset, row)
        if not failed:
            sentences.append("The records wait for a poll." if size else "Nothing new; it is fetched again.")
        text = " ".join(sentences)
        return Failed(text) if failed else text

    def _keep(self, partition: TopicPartition, offset: int, row: FetchedPartition) -> None:
        config = self._requests.config
        self._kept[partition] = CompletedFetch(
            partition, row, offset, only_committed=bool(config.isolation_level), check_crcs=config.check_crcs
        )

    def _refused(
        self, effects: Effects, partition: TopicPartition, offset: int, row: FetchedPartition
    ) -> str:
        error = row.error
        meaning = info(error).meaning
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._positions.reset(partition):
                return (
                    f"there is no offset {offset}; it is reset to {self._requests.config.auto_offset_reset}."
                )
            text = (
                f"{partition} has no offset {offset}: it was deleted or never written, and auto.offset.reset "
                "is none, so nobody says where to go on."
            )
            effects.fail(Problem(ProblemKind.OUT_OF_RANGE, text, error, (partition,)))
            self._later(effects, [partition])
            return f"there is no offset {offset}, and no policy that says where to go on."
        self._later(effects, [partition])
        if error in _ANOTHER_LEADER:
            self._metadata.outdated()
            return f"{meaning} It is fetched again, with new metadata."
        if error in _LATER:
            return f"{meaning} It is fetched again."
        kind = ProblemKind.UNEXPECTED
        if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        elif error == ErrorCode.CORRUPT_MESSAGE:
            kind = ProblemKind.CORRUPT
        text = f"{partition} cannot be fetched at {offset}: {describe(error)}. {meaning}"
        effects.fail(Problem(kind, text, error, (partition,)))
        return f"{meaning} The consumer gives up."

    def _on_failure(
        self, effects: Effects, wanted: Mapping[TopicPartition, tuple[int, int | None]], failure: Failure
    ) -> str | Failed:
        self._later(effects, wanted)
        if failure.kind is FailureKind.UNSUPPORTED:
            effects.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Failed("The consumer gives up.")
        self._metadata.outdated()
        return Failed(f"{listed(wanted)}: fetched again, with new metadata.")

    def _later(
        self, effects: Effects, partitions: Mapping[TopicPartition, object] | list[TopicPartition]
    ) -> None:
        for partition in partitions:
            self._not_before[partition] = effects.now + self._requests.config.retry_backoff_ms

    def _broken(self, effects: Effects, partition: TopicPartition, offset: int, malformed: Malformed) -> None:
        text = (
            f"The records of {partition} from offset {offset} on cannot be read: {malformed}. Seek past them "
            "to go on."
        )
        effects.fail(Problem(ProblemKind.CORRUPT, text, partitions=(partition,)))
        self._later(effects, [partition])

    def _too_large(self, effects: Effects, partition: TopicPartition, offset: int) -> None:
        text = (
            f"The record of {partition} at offset {offset} is larger than max.partition.fetch.bytes "
            f"({self._requests.config.max_partition_fetch_bytes}), and brokers before 0.10.1 do not send it "
            "whole. Raise that setting."
        )
        effects.fail(Problem(ProblemKind.TOO_LARGE, text, partitions=(partition,)))
        self._later(effects, [partition])
