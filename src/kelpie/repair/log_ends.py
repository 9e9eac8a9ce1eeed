"""Where partitions begin and end, and which offset a time has, by the leaders that the picture names."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kelpie.client.admin.log_ends import OffsetAt, ask_offsets_at
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.observations.positions import NO_OFFSET
from kelpie.questions.list_offsets import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class Ends:
    """What is not known is NO_OFFSET, and `failure` says why."""

    earliest: int = NO_OFFSET
    latest: int = NO_OFFSET
    failure: str = ""

    @property
    def known(self) -> bool:
        return not self.failure


async def ends_of(
    nodes: Nodes, cluster: ClusterView, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Ends]:
    wanted = sorted(set(partitions))
    first, last = await asyncio.gather(
        offsets_at(nodes, cluster, dict.fromkeys(wanted, EARLIEST)),
        offsets_at(nodes, cluster, dict.fromkeys(wanted, LATEST)),
    )
    return {
        name: Ends(first[name].offset, last[name].offset, first[name].failure or last[name].failure)
        for name in wanted
    }


async def offsets_at(
    nodes: Nodes, cluster: ClusterView, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, OffsetAt]:
    """The first offset at or after each time, or the ends. Kafka 0.9 knows only the times of segments."""
    offsets: dict[TopicPartition, OffsetAt] = {}
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for partition, time in times.items():
        view = cluster.view(partition)
        if view is None:
            offsets[partition] = OffsetAt(failure=f"{partition} is not there")
        elif not cluster.has_leader(partition):
            offsets[partition] = OffsetAt(failure=f"{partition} has no living leader")
        else:
            by_leader.setdefault(view.leader, {})[partition] = time
    answers = await asyncio.gather(*(ask_offsets_at(nodes, node, part) for node, part in by_leader.items()))
    for answer in answers:
        offsets |= answer
    return offsets
