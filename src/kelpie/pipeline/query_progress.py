"""How far a streaming query has read Kafka, from the progress that Spark reports."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kelpie.model.names import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

_MARK = re.compile(r"spark query ([0-9a-f-]{36}) batch (\d+)")
_KAFKA = re.compile(r"Kafka\w*\[")
"""How Spark's Kafka source describes itself: KafkaV2[Subscribe[orders]]. Others have such offsets, too."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """A batch that is complete."""

    query: str
    """Its id, which it keeps as long as it has its checkpoint."""
    name: str | None
    batch: int
    offsets: Mapping[TopicPartition, int]
    """The next record to read of each partition; empty if the query does not read Kafka."""

    @property
    def mark(self) -> str:
        """The metadata of its commits."""
        return f"spark query {self.query} batch {self.batch}"

    def __str__(self) -> str:
        return f"Batch {self.batch} of query {self.name or self.query}"


def progress_of(progress: "StreamingQueryProgress") -> QueryProgress:
    return QueryProgress(str(progress.id), progress.name, int(progress.batchId), _offsets(progress.sources))


def mark_of(metadata: str) -> tuple[str, int]:
    """Query and batch of a stored commit; ("", -1) if Kelpie did not write it."""
    match = _MARK.fullmatch(metadata)
    return (match[1], int(match[2])) if match else ("", -1)


def _offsets(sources: Iterable[Any]) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for source in sources:
        if _KAFKA.match(source.description):
            for name, offset in _read(source.endOffset):
                # A query may read a topic twice: only what both sources have read is complete.
                offsets[name] = min(offset, offsets.get(name, offset))
    return offsets


def _read(text: str | None) -> Iterable[tuple[TopicPartition, int]]:
    topics = json.loads(text) if text else None
    for topic, partitions in topics.items() if isinstance(topics, dict) else ():
        for partition, offset in partitions.items():
            if offset >= 0:
                yield TopicPartition(topic, int(partition)), int(offset)
