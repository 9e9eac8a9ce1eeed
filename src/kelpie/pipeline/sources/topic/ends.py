"""The first and last offsets of the offsets topic's partitions, and their leader epochs, asked of brokers.

A partition without a reachable leader has no offsets; it is listed with the reason.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelpie.client.client_errors import ClientError
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import READ_COMMITTED, ask_offsets, ask_views
from kelpie.client.settings import Settings
from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.questions.list_offsets import EARLIEST, LATEST
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds

_FOR_CLIENTS = 2
_MOST_EPOCHS = 100
"""Of one partition. Compaction has left few records of older epochs, if any."""


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """The offsets of all partitions that can be read now."""

    ends: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By partition: its first offset, and its last stable offset."""
    missing: Mapping[int, str] = field(default_factory=dict)
    """By partition: why it cannot be read now."""
    tells_versions: bool | None = None
    """Whether brokers answer ApiVersions; given to later clients, so that they need not find out again."""
    cluster_id: str | None = None
    """Null before 0.10.1."""


Epochs = Mapping[int, Sequence[tuple[int, int]]]
"""By partition: where the records of each leader epoch begin, and the epoch, in order."""


def ask_topic_ends(settings: Settings, tells_versions: bool | None = None) -> TopicEnds:
    """Raises ClientError when no broker answers at all."""
    return asyncio.run(_topic_ends(settings, tells_versions))


def ask_epochs(settings: Settings) -> Epochs:
    """Where each leader epoch begins, for partitions that can be asked, on brokers since 2.1.

    Spark's source does not give epochs, and they decide between different records at one offset.
    """
    try:
        return asyncio.run(_epochs(settings))
    except ClientError:
        return {}


async def _topic_ends(settings: Settings, tells_versions: bool | None) -> TopicEnds:
    async with await Nodes.open(settings, memory=Memory(tells_versions)) as nodes:
        known = await ask_views(nodes)
        by_leader: dict[int, list[int]] = defaultdict(list)
        missing = {}
        for partition, view in known.items():
            if view.leader < 0:
                missing[partition] = "it has no leader"
            else:
                by_leader[view.leader].append(partition)
        ends: dict[int, tuple[int, int]] = {}

        async def ask(leader: int, partitions: Sequence[int]) -> None:
            try:
                first = await offsets_of(nodes, leader, partitions, EARLIEST)
                last = await offsets_of(nodes, leader, partitions, LATEST)
            except ClientError as error:
                missing.update(dict.fromkeys(partitions, f"its leader, broker {leader}: {error.reason}"))
                return
            for partition in partitions:
                begin, end = first[partition], last[partition]
                if isinstance(begin, int) and isinstance(end, int):
                    ends[partition] = begin, end
                else:
                    missing[partition] = str(begin if isinstance(begin, str) else end)

        await asyncio.gather(*(ask(leader, own) for leader, own in by_leader.items()))
        return TopicEnds(ends, missing, nodes.memory.tells_versions, nodes.cluster_id)


async def _epochs(settings: Settings) -> Epochs:
    async with await Nodes.open(settings) as nodes:
        by_leader: dict[int, dict[int, int]] = defaultdict(dict)
        for partition, view in (await ask_views(nodes)).items():
            if view.leader >= 0 and view.leader_epoch >= 0:
                by_leader[view.leader][partition] = view.leader_epoch
        begins_by_partition: dict[int, list[tuple[int, int]]] = {}

        async def ask(leader: int, newest: Mapping[int, int]) -> None:
            try:
                first = await offsets_of(nodes, leader, list(newest), EARLIEST)
                wanted = {
                    partition: epoch
                    for partition, epoch in newest.items()
                    if isinstance(first[partition], int)
                }
                heads = dict(wanted)
                for _ in range(_MOST_EPOCHS):
                    # An epoch begins where the epoch before it ends.
                    asked = {partition: epoch - 1 for partition, epoch in heads.items() if epoch > 0}
                    ends = await _ask_epoch_ends(nodes, leader, asked) if asked else {}
                    for partition, epoch in list(heads.items()):
                        before, end = ends.get(partition, (-1, -1))
                        begin = int(first[partition])
                        begins_by_partition.setdefault(partition, []).append((max(begin, end), epoch))
                        if before < 0 or end <= begin:
                            del heads[partition]
                        else:
                            heads[partition] = before
                    if not heads:
                        break
            except ClientError:
                return  # An older broker, or gone: the epochs stay unknown.

        await asyncio.gather(*(ask(leader, own) for leader, own in by_leader.items()))
        return {partition: sorted(begins) for partition, begins in begins_by_partition.items()}


async def _ask_epoch_ends(nodes: Nodes, node: int, epochs: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By partition: the newest epoch up to the one asked for, and where it ends."""
    wanted = {TopicPartition(OFFSETS_TOPIC, number): (-1, epoch) for number, epoch in epochs.items()}
    ends = await nodes.put(node, AskEpochEnds(wanted, _FOR_CLIENTS))
    return {name.partition: (end.epoch, end.end_offset) for name, end in ends.items() if not end.error}


async def offsets_of(
    nodes: Nodes, node: int, partitions: Sequence[int], timestamp: int
) -> dict[int, int | str]:
    """By partition: an offset, or the reason why there is none."""
    offsets: dict[int, int | str] = dict.fromkeys(partitions, f"broker {node} does not tell its ends")
    answer = await ask_offsets(nodes, node, partitions, timestamp, isolation_level=READ_COMMITTED)
    for partition, answered in answer.items():
        if answered.error:
            offsets[partition] = f"broker {node} answers {describe(answered.error)}"
        elif answered.offset is not None:
            offsets[partition] = answered.offset
    return offsets
