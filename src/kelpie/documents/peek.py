"""`kelpie peek --json`: records as they lie in the log, with bytes in base64."""

import base64
from collections.abc import Iterable
from typing import Literal, cast

from kelpie.client.peek import Peek, PeekedRecord
from kelpie.documents.declaring import TypedDict, document

Fate = Literal["committed", "aborted", "undecided"]


@document
class Bytes(TypedDict):
    bytes: int
    """How many there are."""
    base64: str
    """The first of them, as many as were asked for."""


@document
class BatchData(TypedDict):
    first_offset: int
    last_offset: int
    records: int | None
    """As its header says; null before Kafka 0.11, whose headers do not say it."""
    bytes: int
    """As it is stored and sent."""
    compression: str
    leader_epoch: int
    """-1: not known."""
    producer_id: int
    """-1: none."""
    producer_epoch: int
    transactional: bool


@document
class RecordData(TypedDict):
    offset: int
    timestamp: int | None
    """Milliseconds since 1970."""
    log_append_time: bool
    """Whether the time is the broker's, and not the producer's."""
    bytes: int
    """Of key, value and headers, not compressed."""
    key: Bytes | None
    value: Bytes | None
    headers: list[tuple[str, Bytes | None]]
    control: str | None
    """Of a control record: commit or abort. Applications do not see such records."""
    transaction: Fate | None
    """Of a record of a transaction: what became of that."""
    batch: BatchData


@document
class PeekDocument(TypedDict):
    """Records of one partition, from an offset on."""

    version: Literal[1]
    topic: str
    partition: int
    offset: int
    """The one that was asked for."""
    earliest: int
    latest: int
    """The offset that the next record gets."""
    last_stable: int
    """Readers of committed transactions get no further."""
    in_range: bool
    next: int | None
    """The first offset after the one asked for that has a record, where that one has none."""
    failure: str | None
    """Why no more records could be read."""
    records: list[RecordData]


def peek_document(found: Peek, most: int) -> PeekDocument:
    """`most`: so many bytes of each key, header and value."""
    return {
        "version": 1,
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "offset": found.offset,
        "earliest": found.earliest,
        "latest": found.latest,
        "last_stable": found.stable,
        "in_range": found.is_in_range,
        "next": found.next_there,
        "failure": found.failure or None,
        "records": list(_records(found.records, most)),
    }


def _records(records: Iterable[PeekedRecord], most: int) -> Iterable[RecordData]:
    for record in records:
        batch = record.batch
        yield {
            "offset": record.offset,
            "timestamp": record.at,
            "log_append_time": record.appended,
            "bytes": record.size,
            "key": bytes_data(record.key, most),
            "value": bytes_data(record.value, most),
            "headers": [(name, bytes_data(value, most)) for name, value in record.headers],
            "control": record.marker or None,
            "transaction": cast("Fate", record.fate) if record.fate else None,
            "batch": {
                "first_offset": batch.first,
                "last_offset": batch.last,
                "records": None if batch.records < 0 else batch.records,
                "bytes": batch.size,
                "compression": batch.codec,
                "leader_epoch": batch.leader_epoch,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "transactional": batch.transactional,
            },
        }


def bytes_data(value: bytes | None, most: int | None = None) -> Bytes | None:
    if value is None:
        return None
    return {"bytes": len(value), "base64": base64.b64encode(value[:most]).decode()}
