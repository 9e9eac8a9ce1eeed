from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import CONSUMER, Question, by_topic, listed, shortened
from kelpie.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@dataclass(frozen=True, slots=True)
class EpochEnd:
    error: int
    epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class AskEpochEnds(Question[dict[TopicPartition, EpochEnd]]):
    """Where the log of an epoch ends, so that a reader sees whether what it read is still there (KIP-320)."""

    wanted: Mapping[TopicPartition, tuple[int, int]]
    """The leader epoch that the asker knows of (−1: any), and the epoch of what it read last."""
    oldest_version: int = 3
    """Before version 3 (Kafka 2.3) a consumer needs rights on the cluster."""

    api = OffsetForLeaderEpochRequest

    @property
    def oldest(self) -> int:
        return self.oldest_version

    def request(self, _version: int) -> OffsetForLeaderEpochRequest:
        topics = [
            OffsetForLeaderTopic(
                topic=topic, partitions=[self._row(TopicPartition(topic, number)) for number in numbers]
            )
            for topic, numbers in by_topic(self.wanted).items()
        ]
        return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=topics)

    def answer(self, response: OffsetForLeaderEpochResponse, _version: int) -> dict[TopicPartition, EpochEnd]:
        return {
            TopicPartition(topic.topic, row.partition): EpochEnd(
                row.error_code, row.leader_epoch, row.end_offset
            )
            for topic in response.topics
            for row in topic.partitions
        }

    def tell(self, answer: dict[TopicPartition, EpochEnd]) -> str:
        parts = [
            f"{partition}: {describe(row.error)}"
            if row.error
            else f"{partition}: epoch {row.epoch} ends at {row.end_offset}"
            for partition, row in sorted(answer.items())
        ]
        return shortened(parts) or "nothing"

    def __str__(self) -> str:
        return f"OffsetForLeaderEpoch({listed(self.wanted, 4)})"

    def _row(self, partition: TopicPartition) -> OffsetForLeaderPartition:
        current, epoch = self.wanted[partition]
        return OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=current, leader_epoch=epoch
        )
