from collections.abc import Iterable
from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import Question, by_topic, listed
from kelpie.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopics,
)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    """Below 0: none."""
    epoch: int | None = None
    metadata: str | None = None
    error: int = 0


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    error: int
    partitions: dict[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class AskCommitted(Question[CommittedOffsets]):
    """How far a group has come; `partitions` None: wherever it has committed something."""

    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    require_stable: bool = True
    member_id: str | None = None
    """Of the newer protocol, with its epoch; older members and strangers are not named."""
    member_epoch: int = -1

    api = OffsetFetchRequest
    newest = 9  # 10 wants topic ids.

    @property
    def oldest(self) -> int:
        return 1 if self.partitions is not None else 2  # 0 asks ZooKeeper.

    def request(self, version: int) -> OffsetFetchRequest:
        topics: list[OffsetFetchRequestTopics] | None = None
        if self.partitions is not None:
            by_name = by_topic(self.partitions).items()
            topics = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=numbers) for topic, numbers in by_name
            ]
        # Java's client, too, does without stable offsets where the broker cannot tell.
        stable = self.require_stable and version >= 7
        if version < 8:
            return OffsetFetchRequest(group_id=self.group_id, topics=topics, require_stable=stable)
        group = OffsetFetchRequestGroup(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            topics=topics,
        )
        return OffsetFetchRequest(groups=[group], require_stable=stable)

    def answer(self, response: OffsetFetchResponse, version: int) -> CommittedOffsets:
        if version < 8:
            return CommittedOffsets(response.error_code, _rows(response.topics))
        for group in response.groups:
            if group.group_id == self.group_id:
                return CommittedOffsets(group.error_code, _rows(group.topics))
        return CommittedOffsets(-1, {})

    def tell(self, answer: CommittedOffsets) -> str:
        if answer.error:
            return describe(answer.error)
        errors = {row.error for row in answer.partitions.values() if row.error}
        if errors:
            return ", ".join(map(describe, sorted(errors)))
        committed = {partition: row for partition, row in answer.partitions.items() if row.offset >= 0}
        if len(committed) > 8:
            return f"{len(committed)} of {len(answer.partitions)} partitions have a committed offset"
        parts = [f"{partition} at {row.offset}" for partition, row in sorted(committed.items())]
        missing = answer.partitions.keys() - committed.keys()
        if missing:
            parts.append(f"none for {listed(missing)}")
        return ", ".join(parts) or "nothing committed"

    def __str__(self) -> str:
        what = "all" if self.partitions is None else listed(self.partitions, 4)
        return f"OffsetFetch({self.group_id}: {what})"


def _rows(topics: Iterable[OffsetFetchResponseTopics]) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, row.partition_index): CommittedOffset(
            row.committed_offset,
            row.committed_leader_epoch if row.committed_leader_epoch >= 0 else None,
            row.metadata,
            row.error_code,
        )
        for topic in topics
        for row in topic.partitions
    }
