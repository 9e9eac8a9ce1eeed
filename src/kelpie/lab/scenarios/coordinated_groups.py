"""Two healthy groups, each with one member that has joined, read everything and committed it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import QUICK, Application
from kelpie.lab.scenarios.group_setup import new_member
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.questions.find_coordinator import AskCoordinator, FoundCoordinator

OFFSETS_TOPIC = "__consumer_offsets"

_TOPIC = "orders"
_PARTITION = TopicPartition(_TOPIC, 0)
_RECORDS = 20
_BROKERS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class CoordinatedGroups:
    """The first lives on partition 0 of the offsets topic, the second on partition 1."""

    cluster: Cluster
    first: str
    second: str
    members: Mapping[str, Application]


async def two_groups(
    stage: Stage, *leaders: int, config: Mapping[str, object] | None = None
) -> CoordinatedGroups:
    """Three brokers; `leaders` are those of the offsets topic's two partitions. Ends with a calm moment."""
    settings = {**QUICK, **(config or {})}
    cluster = await stage.cluster(len(_BROKERS), replication=3, offsets_partitions=2, config=settings)
    stage.step(
        f"Three brokers; partition 0 of {OFFSETS_TOPIC} is led by broker {leaders[0]}, partition 1 by broker "
        f"{leaders[1]}. On each lives a group."
    )
    replicas = {
        partition: (leader, *(node_id for node_id in _BROKERS if node_id != leader))
        for partition, leader in enumerate(leaders)
    }
    cluster.create_topic(OFFSETS_TOPIC, config={"cleanup.policy": "compact"}, assignment=replicas)
    cluster.create_topic(_TOPIC, 1)
    await produce(stage, cluster, _TOPIC, _RECORDS)
    first, second = _name_on(0), _name_on(1)
    members = {name: new_member(stage, cluster, name, f"{name}-app", [_TOPIC]) for name in (first, second)}
    for member in members.values():
        member.start()
    for name, member in members.items():
        await member.until_at(_PARTITION, _RECORDS)
        committed = await member.commit()
        stage.expect(committed == 0, f"{name} has read {_TOPIC} and committed offset {_RECORDS}")
    await stage.calm(cluster)
    return CoordinatedGroups(cluster, first, second, members)


def _name_on(partition: int) -> str:
    numbered = (f"billing-{number}" for number in count())
    return next(name for name in numbered if partition_for(name, 2) == partition)


async def lookup(stage: Stage, cluster: Cluster, node_id: int, group: str) -> FoundCoordinator:
    """The coordinator of a group, as this broker names it."""
    async with await stage.connect_to(cluster, node_id) as connection:
        return await connection.put(AskCoordinator(group))
