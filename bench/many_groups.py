"""10,000 groups with ten partitions each on a real cluster: each has read all records, and committed that.

As consumers do, they commit the leader epoch of the last record.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import ask_views
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Record
from kelpie.wire.records.writer import write_batch

GROUPS = 10_000
PARTITIONS = 10
RECORDS = 10
"""In each partition."""
TOPIC = "orders"
LIMIT_S = 60.0
_UNDER_WAY = 200


def names() -> list[str]:
    """Of all groups."""
    return [f"group-{number:05}" for number in range(GROUPS)]


async def commit_all(bootstrap: str, replicas: int = 1) -> None:
    """One commit for each group, many under way, at the end of each partition."""
    async with await Nodes.open(Settings.of(bootstrap, request_timeout_s=LIMIT_S)) as nodes:
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=replicas, assignments=[], configs=[]
        )
        await nodes.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        await _until(lambda: _topic_is_there(nodes))
        for partition in range(PARTITIONS):
            await _until(partial(_written, nodes, partition))
        await _until(lambda: _coordinator_is_there(nodes))
        await _until(lambda: _all_are_led(nodes))
        views = await ask_views(nodes)
        slots = asyncio.Semaphore(_UNDER_WAY)

        async def commit(group: str) -> None:
            leader = views[partition_for(group, len(views))].leader
            partitions = [
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=RECORDS,
                    committed_leader_epoch=0,
                    committed_metadata="",
                )
                for partition in range(PARTITIONS)
            ]
            request = OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
            )
            async with slots:
                await _until(lambda: _committed(nodes, leader, request))

        await asyncio.gather(*map(commit, names()))


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not await holds():
            await asyncio.sleep(0.05)


async def _topic_is_there(nodes: Nodes) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    response = await nodes.ask_any(request)
    return len(response.topics[0].partitions) == PARTITIONS


async def _written(nodes: Nodes, partition: int) -> bool:
    """Whether its leader has taken the records."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    (topic,) = (await nodes.ask_any(request)).topics
    leader = next(row.leader_id for row in topic.partitions if row.partition_index == partition)
    now = int(time.time() * 1000)
    raw = write_batch([Record(offset=at, timestamp=now, value=b"order") for at in range(RECORDS)])
    data = [PartitionProduceData(index=partition, records=raw)]
    topics = [TopicProduceData(name=TOPIC, partition_data=data)]
    produce = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
    response = await nodes.ask(leader, produce, 7)
    return bool(response.responses[0].partition_responses[0].error_code == ErrorCode.NONE)


async def _coordinator_is_there(nodes: Nodes) -> bool:
    response = await nodes.ask_any(FindCoordinatorRequest(coordinator_keys=names()[:1]))
    return bool(response.coordinators[0].error_code == ErrorCode.NONE)


async def _all_are_led(nodes: Nodes) -> bool:
    return all(view.leader >= 0 for view in (await ask_views(nodes)).values())


async def _committed(nodes: Nodes, leader: int, request: OffsetCommitRequest) -> bool:
    response = await nodes.ask(leader, request, 9)
    return all(
        partition.error_code == ErrorCode.NONE for topic in response.topics for partition in topic.partitions
    )
