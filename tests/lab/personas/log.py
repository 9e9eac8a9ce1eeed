"""What lies in a partition, read with Fetch and told in words that the lab and real Kafka share."""

from dataclasses import replace
from typing import Any

from kelpie.model.partitioning import partition_for
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.offsets_topic import RecordType, decode_key, decode_value, encode_value
from kelpie.wire.records import MessageHeader, RecordBatch, read_batches
from tests.lab.personas.client import Client
from tests.lab.personas.cluster import OFFSETS_PARTITIONS, OFFSETS_TOPIC, Cluster

_FETCH = {"0.9": 1, "2.8": 11, "3.9": 12}


def batches(client: Client, topic: str, partition: int, version: int, start: int = 0) -> list[RecordBatch]:
    """All of a partition that fits in one answer."""
    asked = FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=2**24)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[asked])], session_epoch=-1
    )
    (found,) = client.peek(request, version).responses[0].partitions
    assert found.error_code == 0
    return list(read_batches(found.records or b""))


def group_records(cluster: Cluster, group: str) -> list[str]:
    """The records of one group, with everything that the release decides: format, versions, fields.

    Times are left out, save that it is told how long an offset is to be kept.
    """
    told: list[str] = []
    partition = partition_for(group, OFFSETS_PARTITIONS)
    for batch in batches(cluster.client(), OFFSETS_TOPIC, partition, _FETCH[cluster.persona]):
        ours = []
        for record in batch.records():
            kind, key = decode_key(record.key)
            if key.group == group:
                where = f"{key.topic}-{key.partition}" if kind == RecordType.OFFSET_COMMIT else ""
                value = _value(kind, record.value, cluster)
                ours.append(f"{RecordType(kind).name} {where} {value} headers={list(record.headers)}")
        if ours:
            told.append(f"{_format(batch)} {ours}")
    return told


def _format(batch: RecordBatch) -> str:
    header = batch.header
    if isinstance(header, MessageHeader):
        return f"magic {header.magic} attributes {header.attributes}"
    return (
        f"magic {header.magic} attributes {header.attributes} producer {header.producer_id} "
        f"{header.producer_epoch} {header.base_sequence} epoch {header.partition_leader_epoch}"
    )


def _value(kind: int, raw: bytes | None, cluster: Cluster) -> str:
    if raw is None:
        return "tombstone"
    version = int.from_bytes(raw[:2])
    value: Any = decode_value(kind, raw)
    assert encode_value(value, version) == raw, "the codec hides nothing"
    if kind == RecordType.OFFSET_COMMIT:
        kept = value.expire_timestamp - value.commit_timestamp if value.expire_timestamp != -1 else None
        value = replace(value, commit_timestamp=0, expire_timestamp=0 if kept is None else kept)
    elif value.current_state_timestamp != -1:
        value = replace(value, current_state_timestamp=0)
    return f"v{version} {cluster.transcript.plain(value)}"
