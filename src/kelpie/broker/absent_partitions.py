"""Partitions that a request names and that do not exist: the broker refuses them before it asks the shard."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from kelpie.broker.image import Image
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.structs import PartitionResult


class IndexedPartition(Protocol):
    partition_index: int


class RequestTopic(Protocol):
    name: str

    @property
    def partitions(self) -> Sequence[IndexedPartition]: ...


class ResponseTopic(Protocol):
    name: str
    partitions: list[PartitionResult]


AnyRequestTopic = TypeVar("AnyRequestTopic", bound=RequestTopic)
AnyResponseTopic = TypeVar("AnyResponseTopic", bound=ResponseTopic)


def split(
    image: Image, topics: Iterable[AnyRequestTopic]
) -> tuple[list[AnyRequestTopic], dict[str, list[PartitionResult]]]:
    """The topics with their existing partitions, and the errors of the others by topic."""
    existing: list[AnyRequestTopic] = []
    absent: dict[str, list[PartitionResult]] = {}
    for topic in topics:
        kept: list[IndexedPartition] = []
        for part in topic.partitions:
            index = part.partition_index
            if image.partition(TopicPartition(topic.name, index)) is not None:
                kept.append(part)
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result = PartitionResult(partition_index=index, error_code=error)
                absent.setdefault(topic.name, []).append(result)
        if kept:
            changed: Any = topic
            existing.append(replace(changed, partitions=kept))
    return existing, absent


def merged(
    absent: Iterable[AnyResponseTopic], answered: Iterable[AnyResponseTopic]
) -> list[AnyResponseTopic]:
    """Kafka puts the partitions that it refused by itself first."""
    topics = {topic.name: topic for topic in absent}
    for topic in answered:
        if topic.name in topics:
            topics[topic.name].partitions.extend(topic.partitions)
        else:
            topics[topic.name] = topic
    return list(topics.values())
