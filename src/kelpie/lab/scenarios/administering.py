"""What people do to a cluster with Kafka's tools."""

from typing import Any, TypeVar

from kelpie.client.client_errors import ClientError, Unreachable
from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.questions.list_offsets import AskOffsets
from kelpie.questions.metadata import AskMetadata
from kelpie.questions.offset_commit import AskToCommit
from kelpie.questions.offset_fetch import AskCommitted
from kelpie.questions.question import Question
from kelpie.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kelpie.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUP, TRANSACTION = 0, 1
LATEST, EARLIEST = -1, -2
_TOOL = "admin"
_WITH_RETENTION = 4

A = TypeVar("A")


async def put_any(stage: Stage, cluster: Cluster, question: Question[A], client_id: str = _TOOL) -> A:
    """The answer of the first broker that gives one."""
    failure: ClientError = Unreachable("there is no broker")
    for address in cluster.bootstrap_servers.split(","):
        try:
            async with await stage.connect(address, client_id) as connection:
                return await connection.put(question)
        except ClientError as error:
            failure = error
    raise failure


async def ask_any(stage: Stage, cluster: Cluster, request: Any, version: int) -> Any:
    """The response of the first broker that gives one, to a request of this version."""
    failure: ClientError = Unreachable("there is no broker")
    for address in cluster.bootstrap_servers.split(","):
        try:
            async with await stage.connect(address, _TOOL) as connection:
                return await connection.ask(request, version)
        except ClientError as error:
            failure = error
    raise failure


async def coordinator(stage: Stage, cluster: Cluster, key: str, kind: int = GROUP) -> str:
    """The address of a coordinator. It may take a moment until there is one."""

    async def find() -> Any:
        return await ask_any(stage, cluster, FindCoordinatorRequest(key=key, key_type=kind), 2)

    response = await stage.until(find, lambda answer: answer.error_code == 0)
    if response.error_code:
        raise ConnectionError(f"{key} has no coordinator")
    return f"{response.host}:{response.port}"


async def leaders(
    stage: Stage, cluster: Cluster, topic: str, client_id: str = _TOOL
) -> dict[TopicPartition, str]:
    """The address of each partition's leader; partitions without one are left out."""
    facts = await put_any(stage, cluster, AskMetadata((topic,)), client_id)
    addresses = {node_id: f"{host}:{port}" for node_id, (host, port) in facts.brokers.items()}
    return {
        TopicPartition(topic, number): addresses[partition.leader]
        for number, partition in facts.topics[topic].partitions.items()
        if partition.leader in addresses
    }


async def leader(stage: Stage, cluster: Cluster, partition: TopicPartition) -> str:
    """The address of a partition's leader. It may take a moment until there is one."""

    async def find() -> str | None:
        return (await leaders(stage, cluster, partition.topic)).get(partition)

    address = await stage.until(find, lambda answer: answer is not None)
    if address is None:
        raise ConnectionError(f"{partition} has no leader")
    return address


async def commit(
    stage: Stage,
    cluster: Cluster,
    group: str,
    offsets: dict[TopicPartition, int],
    *,
    retention_ms: int | None = None,
) -> ErrorCode:
    """As kafka-consumer-groups --reset-offsets does it: no member, no generation, no leader epoch."""
    address = await coordinator(stage, cluster, group)
    async with await stage.connect(address, _TOOL) as connection:
        if retention_ms is None:
            rows = {partition: (offset, None, "") for partition, offset in offsets.items()}
            codes = (await connection.put(AskToCommit(group, -1, "", None, rows))).values()
            return ErrorCode(max(codes, default=0))
        topics = [
            OffsetCommitRequestTopic(
                name=partition.topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition, committed_offset=offset, committed_metadata=""
                    )
                ],
            )
            for partition, offset in offsets.items()
        ]
        request = OffsetCommitRequest(group_id=group, retention_time_ms=retention_ms, topics=topics)
        response = await connection.ask(request, _WITH_RETENTION)
    return ErrorCode(max(row.error_code for topic in response.topics for row in topic.partitions))


async def committed(stage: Stage, cluster: Cluster, group: str, partition: TopicPartition) -> int:
    """The committed offset; −1: none."""
    question = AskCommitted(group, (partition,), require_stable=False)
    async with await stage.connect(await coordinator(stage, cluster, group), _TOOL) as connection:
        return (await connection.put(question)).partitions[partition].offset


async def end_of(
    stage: Stage, cluster: Cluster, partition: TopicPartition, timestamp: int = LATEST, isolation: int = 0
) -> int:
    """The offset at which a log begins or ends; of isolation 1: up to which it is stable."""
    async with await stage.connect(await leader(stage, cluster, partition), _TOOL) as connection:
        rows = await connection.put(AskOffsets(isolation, {partition: (timestamp, None)}))
    offset = rows[partition].offset
    return -1 if offset is None else offset


async def delete_records(stage: Stage, cluster: Cluster, partition: TopicPartition, before: int) -> int:
    """The offset at which the log begins after that."""
    row = DeleteRecordsPartition(partition_index=partition.partition, offset=before)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=partition.topic, partitions=[row])], timeout_ms=10_000
    )
    async with await stage.connect(await leader(stage, cluster, partition), _TOOL) as connection:
        response = await connection.ask(request, 1)
    low_watermark: int = response.topics[0].partitions[0].low_watermark
    return low_watermark


async def add_partitions(stage: Stage, cluster: Cluster, topic: str, count: int) -> ErrorCode:
    """`count`: how many partitions the topic has then."""
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=False)
    response = await ask_any(stage, cluster, request, 1)
    return ErrorCode(response.results[0].error_code)
