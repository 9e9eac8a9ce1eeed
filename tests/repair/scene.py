"""Lab clusters with groups on them, for repairs: whole, or with brokers dead and their disks at hand."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from kelpie.cli import parser
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import Repair, RepairResult, apply
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.coordinators import Coordinators
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import Plan
from kelpie.repair.undo import undo
from tests.client.inhabitants import Inhabitants

T = TypeVar("T")

GROUP = "billing"
PARTITIONS = 8
"""Of the offsets topic."""
LIMIT_S = 60.0
_MEMORIES: WeakKeyDictionary[Any, Memory] = WeakKeyDictionary()
"""That a cluster is too old to tell its versions is found out once."""
ORDERS = [TopicPartition("orders", number) for number in range(3)]


@contextmanager
def a_cluster(
    persona: str = "4.3", brokers: int = 3, replication: int = 2, **options: Any
) -> Iterator[SyncCluster]:
    """A topic orders with ten records in each of three partitions, and an offsets topic."""
    config = {"offsets.topic.replication.factor": replication, "group.initial.rebalance.delay.ms": 0}
    with SyncCluster(
        brokers, persona=persona, offsets_partitions=PARTITIONS, config=config, **options
    ) as cluster:
        cluster.create_topic("orders", 3, replication=brokers)

        async def fill(nodes: Nodes) -> None:
            living = Inhabitants(nodes)
            for partition in range(3):
                await living.produce("orders", partition, 10)
            await living.commit("anybody", "orders", {0: 1})

        with_nodes(cluster, fill)
        yield cluster


def with_nodes(cluster: Any, work: Callable[[Nodes], Awaitable[T]]) -> T:
    """Runs something that asks the cluster, within a limit."""

    async def limited() -> T:
        async with asyncio.timeout(LIMIT_S):
            settings = Settings.of(cluster.bootstrap_servers, request_timeout_s=30.0, connect_timeout_s=30.0)
            memory = _MEMORIES.setdefault(cluster, Memory())
            async with await Nodes.open(settings, memory=memory) as nodes:
                return await work(nodes)

    return asyncio.run(limited())


def commit(cluster: Any, group: str, offsets: dict[int, int], topic: str = "orders") -> None:
    with_nodes(cluster, lambda nodes: Inhabitants(nodes).commit(group, topic, offsets))


def committed(cluster: Any, group: str) -> dict[int, int]:
    """What the group has in the topic orders."""

    async def ask(nodes: Nodes) -> dict[int, int]:
        found = await Coordinators(nodes, await survey_cluster(nodes, ["orders"])).committed(group)
        return {name.partition: claim.offset for name, claim in found.items()}

    return with_nodes(cluster, ask)


def assert_commands_parse(plan: Plan) -> None:
    """Every command of ours that a plan prints is one that our own parser takes."""
    ways = [*(step.undo for step in plan.steps), *plan.afterwards, *plan.instead]
    for line in (line for way in ways for line in way.lines if line.startswith("kelpie ")):
        words = shlex.split(line)[1:]
        parser(words[0]).parse_args(words)


async def do(repair: Repair) -> RepairResult:
    assert_commands_parse(repair.plan)
    return await apply(repair, lambda number, report: None)


def undone(cluster: Any, record: ChangeRecord) -> RepairResult:
    """Takes a change back, as its record says."""

    async def work(nodes: Nodes) -> RepairResult:
        return await do(await undo(nodes, record))

    return with_nodes(cluster, work)


def home(group: str) -> TopicPartition:
    return TopicPartition(OFFSETS_TOPIC, partition_for(group, PARTITIONS))


def replicas_of(cluster: SyncCluster, partition: TopicPartition) -> list[int]:
    state: Any = cluster.describe()["topics"][partition.topic][partition.partition]
    return list(state["replicas"])


def save_disks(cluster: SyncCluster, folder: Path, nodes: Sequence[int]) -> Path:
    """The segments of brokers, as Kafka lays them out."""

    def copy() -> None:
        for node in nodes:
            for partition, replica in cluster.twin.fabric.broker(node).replicas.items():
                for segment in replica.log.segments:
                    place = folder / f"broker-{node}" / str(partition)
                    place.mkdir(parents=True, exist_ok=True)
                    data = b"".join(batch.data for batch in segment.batches)
                    (place / f"{segment.base_offset:020}.log").write_bytes(data)

    cluster.call(copy)
    return folder


def strike(cluster: SyncCluster, group: str, folder: Path) -> Path:
    """Kills both brokers that hold the group's partition, and hands over their disks."""
    nodes = replicas_of(cluster, home(group))
    save_disks(cluster, folder, nodes)
    for node in nodes:
        cluster.kill(node)
    with_nodes(cluster, lambda left: _noticed(left, nodes))
    return folder


async def _noticed(left: Nodes, killed: Sequence[int]) -> None:
    """Waits until the cluster itself knows who is dead: a plan made before that is another one."""
    while True:
        cluster = await survey_cluster(left)
        views = [view for name in cluster.offsets_topic if (view := cluster.view(name)) is not None]
        led = [view for view in views if view.leader >= 0]  # Without one, the last in-sync replicas stay.
        if views and not any(set(killed) & {view.leader, *view.in_sync} for view in led):
            return
        await asyncio.sleep(0.05)
