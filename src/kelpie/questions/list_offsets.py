from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import CONSUMER, Question, by_topic, listed, shortened
from kelpie.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, EARLIEST, NEWEST_TIMESTAMP = -1, -2, -3
"""In place of a timestamp."""
_WORDS = {LATEST: "latest", EARLIEST: "earliest"}


@dataclass(frozen=True, slots=True)
class ListedOffset:
    error: int
    offset: int | None = None
    """None: there is no such record."""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class AskOffsets(Question[dict[TopicPartition, ListedOffset]]):
    isolation_level: int
    wanted: Mapping[TopicPartition, tuple[int, int | None]]
    """Timestamp (−1 latest, −2 earliest) and the leader epoch that the asker knows of."""
    timeout_ms: int = 30_000
    replica_id: int = CONSUMER

    api = ListOffsetsRequest

    @property
    def oldest(self) -> int:
        if self.isolation_level:
            return 2
        return 1 if any(timestamp >= 0 for timestamp, _ in self.wanted.values()) else 0

    def request(self, _version: int) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                name=topic, partitions=[self._row(TopicPartition(topic, number)) for number in numbers]
            )
            for topic, numbers in by_topic(self.wanted).items()
        ]
        return ListOffsetsRequest(
            replica_id=self.replica_id,
            isolation_level=self.isolation_level,
            topics=topics,
            timeout_ms=self.timeout_ms,
        )

    def answer(self, response: ListOffsetsResponse, version: int) -> dict[TopicPartition, ListedOffset]:
        return {
            TopicPartition(topic.name, row.partition_index): _offset(row, version)
            for topic in response.topics
            for row in topic.partitions
        }

    def tell(self, answer: dict[TopicPartition, ListedOffset]) -> str:
        parts = []
        for partition, row in sorted(answer.items()):
            if row.error:
                parts.append(f"{partition}: {describe(row.error)}")
            else:
                parts.append(f"{partition}: {'no such record' if row.offset is None else row.offset}")
        return shortened(parts) or "nothing"

    def __str__(self) -> str:
        times = sorted({_WORDS.get(timestamp, str(timestamp)) for timestamp, _ in self.wanted.values()})
        return f"ListOffsets({listed(self.wanted, 4)}: {', '.join(times)})"

    def _row(self, partition: TopicPartition) -> ListOffsetsPartition:
        timestamp, epoch = self.wanted[partition]
        return ListOffsetsPartition(
            partition_index=partition.partition,
            current_leader_epoch=-1 if epoch is None else epoch,
            timestamp=timestamp,
        )


def _offset(row: ListOffsetsPartitionResponse, version: int) -> ListedOffset:
    if row.error_code:
        return ListedOffset(row.error_code)
    if version == 0:
        return ListedOffset(0, row.old_style_offsets[0] if row.old_style_offsets else None)
    return ListedOffset(
        0,
        row.offset if row.offset >= 0 else None,
        row.leader_epoch if row.leader_epoch >= 0 else None,
    )
