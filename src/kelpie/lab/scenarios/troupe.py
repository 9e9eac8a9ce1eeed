"""A cluster with topics, and members that have read them: where most scenarios about membership begin."""

from collections.abc import Mapping

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.member import Member
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage

RECORDS = 20
"""In each partition."""

SINCE_2_8 = ("4.3", "3.9", "2.8")
"""Kafka 0.9 knows neither poll intervals nor static members."""


async def cluster_with(
    stage: Stage, topics: Mapping[str, int], config: Mapping[str, object] | None = None
) -> Cluster:
    """Three brokers, and topics with so many partitions and records in them; groups are quick to gather."""
    quick = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
    cluster = await stage.cluster(3, replication=3, offsets_partitions=6, config=quick | dict(config or {}))
    for topic, partitions in topics.items():
        cluster.create_topic(topic, partitions)
        await produce(stage, cluster, topic, RECORDS)
    return cluster


async def gather(cluster: Cluster, *members: Member) -> None:
    """All of a group start, get their assignment, and have read and committed everything."""
    for member in members:
        member.start()
    await settled(cluster, *members)


async def settled(cluster: Cluster, *members: Member) -> None:
    """These, and nobody else, are in the group and at the end of their partitions."""
    await cluster.wait_for_group(members[0].group, members=len(members))
    for member in members:
        await member.until_joined()
        await member.commit(RECORDS)
