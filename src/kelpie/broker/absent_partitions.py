"""Partitions that a request names and that do not exist: the broker refuses them before it asks the shard."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from kelpie.broker.image import Image
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.offset_delete import OffsetDeleteRequestTopic
from kelpie.wire.api.txn_offset_commit import TxnOffsetCommitRequestTopic
from kelpie.wire.structs import PartitionResult, TopicResults

RequestTopic = TypeVar("RequestTopic", OffsetDeleteRequestTopic, TxnOffsetCommitRequestTopic)


def split(
    image: Image, topics: Iterable[RequestTopic]
) -> tuple[list[RequestTopic], dict[str, list[PartitionResult]]]:
    """The topics with their existing partitions, and the errors of the others by topic."""
    existing: list[RequestTopic] = []
    absent: dict[str, list[PartitionResult]] = {}
    for topic in topics:
        kept = []
        for part in topic.partitions:
            index = part.partition_index
            if image.partition(TopicPartition(topic.name, index)) is not None:
                kept.append(part)
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result = PartitionResult(partition_index=index, error_code=error)
                absent.setdefault(topic.name, []).append(result)
        if kept:
            existing.append(replace(topic, partitions=kept))
    return existing, absent


def merged(absent: Iterable[TopicResults], answered: Iterable[TopicResults]) -> list[TopicResults]:
    """Kafka puts the partitions that it refused by itself first."""
    topics = {topic.name: topic for topic in absent}
    for topic in answered:
        if topic.name in topics:
            topics[topic.name].partitions.extend(topic.partitions)
        else:
            topics[topic.name] = topic
    return list(topics.values())
