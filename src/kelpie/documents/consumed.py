"""`kelpie consume --json`: one line for each record; with --count, the numbers at the end."""

from collections.abc import Mapping
from typing import Literal

from kelpie.consumer.effects import ConsumedRecord
from kelpie.documents.declaring import TypedDict, document
from kelpie.documents.peek import Bytes, bytes_data
from kelpie.model.names import TopicPartition


@document
class ConsumedDocument(TypedDict):
    """A record that was read; each is a line."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1: none."""
    key: Bytes | None
    value: Bytes | None
    headers: list[tuple[str, Bytes | None]]


@document
class PartitionCount(TypedDict):
    topic: str
    partition: int
    records: int


@document
class CountsDocument(TypedDict):
    """With --count: how many records were read."""

    version: Literal[1]
    partitions: list[PartitionCount]
    total: int


ConsumeDocument = ConsumedDocument | CountsDocument


def consumed_document(record: ConsumedRecord) -> ConsumedDocument:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": bytes_data(record.key),
        "value": bytes_data(record.value),
        "headers": [(name, bytes_data(value)) for name, value in record.headers],
    }


def counts_document(counts: Mapping[TopicPartition, int]) -> CountsDocument:
    rows: list[PartitionCount] = [
        {"topic": name.topic, "partition": name.partition, "records": number}
        for name, number in sorted(counts.items())
    ]
    return {"version": 1, "partitions": rows, "total": sum(counts.values())}
