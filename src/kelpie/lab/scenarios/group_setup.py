"""A cluster with topics, and members that have read them: where most scenarios about membership begin."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import QUICK, Application, CommitPolicy
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

RECORDS = 20
"""In each partition."""

SINCE_2_8 = ("4.3", "3.9", "2.8")
"""Kafka 0.9 knows neither poll intervals nor static members."""


async def cluster_with(
    stage: Stage, topics: Mapping[str, int], config: Mapping[str, object] | None = None
) -> Cluster:
    """Three brokers, and topics with so many partitions and with records in them."""
    cluster = await stage.cluster(3, replication=3, offsets_partitions=6, config=QUICK | dict(config or {}))
    for topic, partitions in topics.items():
        cluster.create_topic(topic, partitions)
        await produce(stage, cluster, topic, RECORDS)
    return cluster


def new_member(
    stage: Stage,
    cluster: Cluster,
    group: str,
    name: str,
    topics: Sequence[str] = ("orders",),
    **options: Any,
) -> Application:
    """A member that commits when it has read everything, and not before."""
    return Application(stage, cluster, group, topics, name=name, commits=CommitPolicy.ON_DEMAND, **options)


def new_members(
    stage: Stage, cluster: Cluster, group: str, count: int, **options: Any
) -> tuple[Application, ...]:
    """Such members: app-1, app-2 and so on."""
    return tuple(
        new_member(stage, cluster, group, f"app-{number}", **options) for number in range(1, count + 1)
    )


async def gather(cluster: Cluster, *members: Application) -> None:
    """Start all members of a group; they get their assignment, read everything and commit it."""
    for member in members:
        member.start()
    await settled(cluster, *members)


async def settled(cluster: Cluster, *members: Application) -> None:
    """Wait until the group has exactly these members, and each has read and committed its partitions."""
    await cluster.wait_for_group(members[0].group, members=len(members))
    for member in members:
        await member.until(partial(_has_read_all, member))
        await member.commit()


def _has_read_all(member: Application) -> bool:
    at_end = all(member.position(partition) == RECORDS for partition in member.assignment)
    return member.is_joined and at_end
