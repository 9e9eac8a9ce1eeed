"""How far a streaming query has read Kafka, as its progress tells it."""

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
"""How Spark's Kafka source describes itself: KafkaV2[Subscribe[orders]]. Others have such offsets as well."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A batch that is done."""

    query: str
    """Its id, which it keeps as long as it has its checkpoint."""
    name: str | None
    batch: int
    offsets: Mapping[TopicPartition, int]
    """The next record to read of each partition; empty if the query does not read Kafka."""

    @property
    def mark(self) -> str:
        """What is stored beside a commit."""
        return f"spark query {self.query} batch {self.batch}"

    def __str__(self) -> str:
        return f"Batch {self.batch} of query {self.name or self.query}"


def progress_of(told: "StreamingQueryProgress") -> Progress:
    return Progress(str(told.id), told.name, int(told.batchId), _offsets(told.sources))


def mark_of(metadata: str) -> tuple[str, int]:
    """Query and batch of a stored commit; nothing, if it is somebody else's."""
    found = _MARK.fullmatch(metadata)
    return (found[1], int(found[2])) if found else ("", -1)


def _offsets(sources: Iterable[Any]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for source in sources:
        if _KAFKA.match(source.description):
            for name, offset in _read(source.endOffset):
                # A query may read a topic twice: what only one of them has read is not done.
                found[name] = min(offset, found.get(name, offset))
    return found


def _read(text: str | None) -> Iterable[tuple[TopicPartition, int]]:
    topics = json.loads(text) if text else None
    for topic, partitions in topics.items() if isinstance(topics, dict) else ():
        for partition, offset in partitions.items():
            if offset >= 0:
                yield TopicPartition(topic, int(partition)), int(offset)
