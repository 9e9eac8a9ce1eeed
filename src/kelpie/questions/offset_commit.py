from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import Question, by_topic, shortened
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)


class OffsetToCommit(NamedTuple):
    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class AskToCommit(Question[dict[TopicPartition, int]]):
    """The answer is an error code for each partition."""

    group_id: str
    generation: int
    """Or, in the newer protocol, the member's epoch; −1 of someone who is no member."""
    member_id: str
    instance_id: str | None
    offsets: Mapping[TopicPartition, OffsetToCommit]
    is_newer: bool = False

    api = OffsetCommitRequest
    newest = 9  # 10 wants topic ids.

    @property
    def oldest(self) -> int:
        if self.is_newer:
            return 9
        return 1 if self.instance_id is None else 7  # 0 goes to ZooKeeper.

    def request(self, _version: int) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic, partitions=[self._row(TopicPartition(topic, number)) for number in numbers]
                )
                for topic, numbers in by_topic(self.offsets).items()
            ],
        )

    def answer(self, response: OffsetCommitResponse, _version: int) -> dict[TopicPartition, int]:
        return {
            TopicPartition(topic.name, row.partition_index): row.error_code
            for topic in response.topics
            for row in topic.partitions
        }

    def tell(self, answer: dict[TopicPartition, int]) -> str:
        errors = sorted(set(answer.values()))
        return ", ".join(map(describe, errors)) if errors else "nothing"

    def __str__(self) -> str:
        parts = [f"{partition} at {offset}" for partition, (offset, *_) in sorted(self.offsets.items())]
        return f"OffsetCommit({self.group_id}: {shortened(parts, 4)})"

    def _row(self, partition: TopicPartition) -> OffsetCommitRequestPartition:
        offset, epoch, metadata = self.offsets[partition]
        return OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=offset,
            committed_leader_epoch=-1 if epoch is None else epoch,
            committed_metadata=metadata,
        )
