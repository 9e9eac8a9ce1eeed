"""What people do to a cluster with Kafka's tools, as plain requests."""

from typing import Any

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kelpie.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

GROUP, TRANSACTION = 0, 1
LATEST, EARLIEST = -1, -2
_TOOL = "admin"
_NO_RETENTION = -1
_WITH_RETENTION, _WITH_EPOCHS = 4, 8


async def ask_any(cluster: Cluster, request: Any, version: int, client_id: str = _TOOL) -> Any:
    """The answer of the first broker that gives one."""
    failed: OSError | None = None
    for address in cluster.bootstrap_servers.split(","):
        try:
            async with RawClient(client_id, address) as client:
                return await client.ask(request, version)
        except OSError as error:
            failed = error
    raise failed or ConnectionError("there is no broker")


async def coordinator(stage: Stage, cluster: Cluster, key: str, kind: int = GROUP) -> str:
    """The address of a coordinator. It may take a moment until there is one."""

    async def look() -> Any:
        return await ask_any(cluster, FindCoordinatorRequest(key=key, key_type=kind), 2)

    found = await stage.until(look, lambda answer: answer.error_code == 0)
    if found.error_code:
        raise ConnectionError(f"{key} has no coordinator")
    return f"{found.host}:{found.port}"


async def leader(stage: Stage, cluster: Cluster, name: TopicPartition) -> tuple[str, int]:
    """Address and epoch of a partition's leader."""

    async def look() -> tuple[str, int] | None:
        answer = await ask_any(cluster, MetadataRequest(topics=[MetadataRequestTopic(name=name.topic)]), 7)
        brokers = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        for row in answer.topics[0].partitions:
            if row.partition_index == name.partition and row.leader_id in brokers:
                return brokers[row.leader_id], row.leader_epoch
        return None

    found = await stage.until(look, lambda answer: answer is not None)
    if found is None:
        raise ConnectionError(f"{name} has no leader")
    return found


async def commit(
    stage: Stage,
    cluster: Cluster,
    group: str,
    offsets: dict[TopicPartition, int],
    *,
    retention_ms: int | None = None,
) -> ErrorCode:
    """As kafka-consumer-groups --reset-offsets does it: no member, no generation, no leader epoch."""
    rows: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, offset in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=name.partition, committed_offset=offset, committed_metadata=""
        )
        rows.setdefault(name.topic, []).append(row)
    request = OffsetCommitRequest(
        group_id=group,
        retention_time_ms=_NO_RETENTION if retention_ms is None else retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=own) for topic, own in rows.items()],
    )
    async with RawClient(_TOOL, await coordinator(stage, cluster, group)) as client:
        answer = await client.ask(request, _WITH_EPOCHS if retention_ms is None else _WITH_RETENTION)
    codes = [row.error_code for topic in answer.topics for row in topic.partitions]
    return ErrorCode(max(codes, default=0))


async def committed(stage: Stage, cluster: Cluster, group: str, name: TopicPartition) -> int:
    asked = [OffsetFetchRequestTopic(name=name.topic, partition_indexes=[name.partition])]
    async with RawClient(_TOOL, await coordinator(stage, cluster, group)) as client:
        answer = await client.ask(OffsetFetchRequest(group_id=group, topics=asked), 7)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


async def end_of(
    stage: Stage, cluster: Cluster, name: TopicPartition, timestamp: int = LATEST, isolation: int = 0
) -> int:
    """Where a log begins, ends, or is stable up to."""
    address, _ = await leader(stage, cluster, name)
    wanted = ListOffsetsPartition(partition_index=name.partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=name.topic, partitions=[wanted])],
    )
    async with RawClient(_TOOL, address) as client:
        answer = await client.ask(request, 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


async def delete_records(stage: Stage, cluster: Cluster, name: TopicPartition, before: int) -> int:
    """Where the log begins after that."""
    address, _ = await leader(stage, cluster, name)
    part = DeleteRecordsPartition(partition_index=name.partition, offset=before)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name.topic, partitions=[part])], timeout_ms=10_000
    )
    async with RawClient(_TOOL, address) as client:
        answer = await client.ask(request, 1)
    begins: int = answer.topics[0].partitions[0].low_watermark
    return begins


async def add_partitions(cluster: Cluster, topic: str, count: int) -> ErrorCode:
    """So many there are then."""
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=False)
    answer = await ask_any(cluster, request, 1)
    return ErrorCode(answer.results[0].error_code)
