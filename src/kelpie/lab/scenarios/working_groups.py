"""Two groups that are well, each with one member that has joined, read everything, and committed it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.member import Member
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

OFFSETS_TOPIC = "__consumer_offsets"
QUICK = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}

_TOPIC = "orders"
_RECORDS = 20
_BROKERS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """The first lives on partition 0 of the offsets topic, the second on partition 1."""

    cluster: Cluster
    first: str
    second: str
    members: Mapping[str, Member]


async def two_groups(stage: Stage, *leaders: int, config: Mapping[str, object] | None = None) -> TwoGroups:
    """Three brokers; `leaders` are those of the offsets topic's two partitions. Ends with a calm moment."""
    settings = {**QUICK, **(config or {})}
    cluster = await stage.cluster(len(_BROKERS), replication=3, offsets_partitions=2, config=settings)
    stage.step(
        f"Three brokers; partition 0 of {OFFSETS_TOPIC} is led by broker {leaders[0]}, partition 1 by broker "
        f"{leaders[1]}. On each lives a group."
    )
    replicas = {
        partition: (leader, *(node for node in _BROKERS if node != leader))
        for partition, leader in enumerate(leaders)
    }
    cluster.create_topic(OFFSETS_TOPIC, config={"cleanup.policy": "compact"}, assignment=replicas)
    cluster.create_topic(_TOPIC, 1)
    await produce(stage, cluster, _TOPIC, _RECORDS)
    first, second = _name_on(0), _name_on(1)
    members = {name: Member(stage, cluster, name, f"{name}-app", [_TOPIC]) for name in (first, second)}
    for member in members.values():
        member.start()
    for name, member in members.items():
        await member.until_joined()
        committed = await member.commit(_RECORDS)
        stage.expect(committed == 0, f"{name} has read {_TOPIC} and committed offset {_RECORDS}")
    await stage.calm(cluster)
    return TwoGroups(cluster, first, second, members)


def _name_on(partition: int) -> str:
    numbered = (f"billing-{number}" for number in count())
    return next(name for name in numbered if partition_for(name, 2) == partition)


async def lookup(cluster: Cluster, node: int, group: str) -> FindCoordinatorResponse:
    """Who this broker says coordinates the group."""
    endpoint = cluster.endpoints[node]
    async with RawClient("scenario", f"{endpoint.host}:{endpoint.port}") as client:
        found: FindCoordinatorResponse = await client.ask(FindCoordinatorRequest(key=group), 0)
        return found
