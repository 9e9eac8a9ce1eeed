from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.questions.question import CONSUMER, Question, by_topic, listed, shortened
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    error: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[tuple[int, int], ...] = ()
    """Producer id and first offset of each transaction that was aborted, for readers of committed ones."""
    records: bytes = b""


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    error: int
    partitions: dict[TopicPartition, FetchedPartition]
    throttle_ms: int = 0
    """A quota holds the asker back for so long: then the answer may be empty."""


@dataclass(frozen=True, slots=True)
class AskRecords(Question[FetchAnswer]):
    """Without a fetch session: each request names all its partitions, and brokers keep nothing for it."""

    wanted: Mapping[TopicPartition, tuple[int, int | None]]
    """Offset, and the leader epoch that the asker knows of."""
    isolation_level: int = 0
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_partition_bytes: int = 1_048_576
    replica_id: int = CONSUMER

    api = FetchRequest
    newest = 12  # 13 wants topic ids.

    def request(self, _version: int) -> FetchRequest:
        return FetchRequest(
            replica_id=self.replica_id,
            max_wait_ms=self.max_wait_ms,
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            isolation_level=self.isolation_level,
            topics=[
                FetchTopic(
                    topic=topic, partitions=[self._row(TopicPartition(topic, number)) for number in numbers]
                )
                for topic, numbers in by_topic(self.wanted).items()
            ],
        )

    def answer(self, response: FetchResponse, _version: int) -> FetchAnswer:
        return FetchAnswer(
            response.error_code,
            {
                TopicPartition(topic.topic, row.partition_index): FetchedPartition(
                    row.error_code,
                    row.high_watermark,
                    row.last_stable_offset,
                    row.log_start_offset,
                    tuple((each.producer_id, each.first_offset) for each in row.aborted_transactions or ()),
                    row.records or b"",
                )
                for topic in response.responses
                for row in topic.partitions
            },
            response.throttle_time_ms,
        )

    def tell(self, answer: FetchAnswer) -> str:
        if answer.error:
            return describe(answer.error)
        parts = []
        for partition, row in sorted(answer.partitions.items()):
            said = (
                describe(row.error) if row.error else f"{len(row.records)} bytes up to {row.high_watermark}"
            )
            parts.append(f"{partition}: {said}")
        return shortened(parts) or "nothing"

    def __str__(self) -> str:
        if len(self.wanted) > 4:
            return f"Fetch({listed(self.wanted, 4)})"
        return f"Fetch({', '.join(f'{each} from {self.wanted[each][0]}' for each in sorted(self.wanted))})"

    def _row(self, partition: TopicPartition) -> FetchPartition:
        offset, epoch = self.wanted[partition]
        return FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1 if epoch is None else epoch,
            fetch_offset=offset,
            partition_max_bytes=self.max_partition_bytes,
        )
