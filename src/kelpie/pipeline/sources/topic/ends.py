"""The first and last offsets of the offsets topic's partitions, and their leader epochs, asked of brokers.

A partition without a reachable leader has no offsets; it is listed with the reason.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelpie.client.admin.asking import Asking
from kelpie.client.admin.log_ends import ask_ends, ask_offsets_at
from kelpie.client.client_errors import ClientError
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.offsets_topic import ask_views
from kelpie.client.settings import Settings
from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.questions.list_offsets import EARLIEST
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
        leaders = {view.name: view.leader for view in (await ask_views(nodes)).values()}
        asking = Asking(nodes)
        await asking.meet()
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for name, leader in leaders.items():
            if leader in asking.reached:
                by_leader[leader].append(name)
        await ask_ends(asking, by_leader)
        answers = {row.name: row for row in asking.seen.ends}
        ends, missing = {}, {}
        for name, leader in leaders.items():
            row = answers.get(name)
            if row is not None and not row.error:
                ends[name.partition] = row.earliest, row.stable
            elif row is not None:
                missing[name.partition] = f"broker {leader} answers {describe(row.error)}"
            elif leader < 0:
                missing[name.partition] = "it has no leader"
            else:
                reason = asking.why_not(leader) or "it does not tell its ends"
                missing[name.partition] = f"its leader, broker {leader}: {reason}"
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
                names = [TopicPartition(OFFSETS_TOPIC, partition) for partition in newest]
                starts = await ask_offsets_at(nodes, leader, dict.fromkeys(names, EARLIEST))
                first = {name.partition: start.offset for name, start in starts.items() if not start.failure}
                heads = {partition: epoch for partition, epoch in newest.items() if partition in first}
                for _ in range(_MOST_EPOCHS):
                    # An epoch begins where the epoch before it ends.
                    asked = {partition: epoch - 1 for partition, epoch in heads.items() if epoch > 0}
                    ends = await _ask_epoch_ends(nodes, leader, asked) if asked else {}
                    for partition, epoch in list(heads.items()):
                        before, end = ends.get(partition, (-1, -1))
                        begin = first[partition]
                        begins_by_partition.setdefault(partition, []).append((max(begin, end), epoch))
                        if before < 0 or end <= begin:
                            del heads[partition]
                        else:
                            heads[partition] = before
                    if not heads:
                        break
            except ClientError:
                return  # An older broker, or gone: the epochs stay unknown.

        await asyncio.gather(*(ask(leader, newest) for leader, newest in by_leader.items()))
        return {partition: sorted(begins) for partition, begins in begins_by_partition.items()}


async def _ask_epoch_ends(nodes: Nodes, node: int, epochs: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By partition: the newest epoch up to the one asked for, and where it ends."""
    wanted = {TopicPartition(OFFSETS_TOPIC, number): (-1, epoch) for number, epoch in epochs.items()}
    ends = await nodes.put(node, AskEpochEnds(wanted, _FOR_CLIENTS))
    return {name.partition: (end.epoch, end.end_offset) for name, end in ends.items() if not end.error}
