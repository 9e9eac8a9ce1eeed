"""Where partitions begin and end, and which offset a time has: asked of their leaders, all at once."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.errors import ErrorCode, describe
from kelpie.model.names import TopicPartition
from kelpie.observations.positions import NO_OFFSET
from kelpie.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, EARLIEST = -1, -2
CONSUMER, ANY_REPLICA = -1, -2
"""Who asks: a consumer, who wants the leader; or a tool, whom every replica answers."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What is not known is NO_OFFSET, and `failure` says why."""

    earliest: int = NO_OFFSET
    latest: int = NO_OFFSET
    failure: str = ""

    @property
    def known(self) -> bool:
        return not self.failure


@dataclass(frozen=True, slots=True)
class Found:
    """The offset that was asked for; NO_OFFSET where there is none, with the failure if that is why."""

    offset: int = NO_OFFSET
    failure: str = ""
    coarse: bool = False
    """Kafka 0.9: where a segment begins that was last written before the time; NO_OFFSET if all are newer."""


async def ends_of(
    nodes: Nodes, cluster: ClusterView, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Ends]:
    wanted = sorted(set(partitions))
    first, last = await asyncio.gather(
        offsets_at(nodes, cluster, dict.fromkeys(wanted, EARLIEST)),
        offsets_at(nodes, cluster, dict.fromkeys(wanted, LATEST)),
    )
    return {
        it: Ends(first[it].offset, last[it].offset, first[it].failure or last[it].failure) for it in wanted
    }


async def offsets_at(
    nodes: Nodes, cluster: ClusterView, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Found]:
    """The first offset at or after each time, or the ends. Kafka 0.9 knows only the times of segments."""
    found: dict[TopicPartition, Found] = {}
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for partition, time in times.items():
        view = cluster.view(partition)
        if view is None:
            found[partition] = Found(failure=f"{partition} is not there")
        elif not cluster.has_leader(partition):
            found[partition] = Found(failure=f"{partition} has no living leader")
        else:
            by_leader.setdefault(view.leader, {})[partition] = time
    answers = await asyncio.gather(*(ask_offsets(nodes, node, part) for node, part in by_leader.items()))
    for answer in answers:
        found |= answer
    return found


async def ask_offsets(
    nodes: Nodes, node: int, times: Mapping[TopicPartition, int], asker: int = CONSUMER
) -> dict[TopicPartition, Found]:
    """One broker's answer about its partitions."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for partition, time in sorted(times.items()):
        topics.setdefault(partition.topic, []).append(
            ListOffsetsPartition(partition_index=partition.partition, timestamp=time)
        )
    request = ListOffsetsRequest(
        replica_id=asker,
        topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    try:
        version = (await nodes.versions(node)).pick(ListOffsetsRequest)
        response: ListOffsetsResponse = await nodes.ask(node, request, version)
    except ClientError as error:
        return dict.fromkeys(times, Found(failure=error.reason))
    return {
        TopicPartition(topic.name, it.partition_index): _found(topic.name, it, coarse=version == 0)
        for topic in response.topics
        for it in topic.partitions
    }


def _found(topic: str, told: ListOffsetsPartitionResponse, *, coarse: bool) -> Found:
    if told.error_code != ErrorCode.NONE:
        return Found(failure=f"{TopicPartition(topic, told.partition_index)}: {describe(told.error_code)}")
    if coarse:
        return Found(told.old_style_offsets[0] if told.old_style_offsets else NO_OFFSET, coarse=True)
    return Found(told.offset)
