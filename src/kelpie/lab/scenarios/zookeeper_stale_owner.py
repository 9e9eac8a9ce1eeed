"""Kafka 0.8: partitions belong to a consumer that is dead, until ZooKeeper expires its session.

One consumer owns all partitions and is killed. Another one starts, meets the nodes of
the dead one, and waits for them to go. Its retries outlast the session, so it gets all
partitions in the end.
"""

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import GROUP, KAFKA_0_9, ZookeeperCluster, ZookeeperMember, gather
from kelpie.zookeeper.steps import Conflict

NAME = "zookeeper-stale-owner"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_SESSION_MS = 10_000


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=4)
    stage.step(f"app-1 of {GROUP} reads all four partitions.")
    (first,) = await gather(cluster, "app-1", session_timeout_ms=_SESSION_MS)
    await stage.calm(cluster.cluster, needs_logs=True)

    stage.step(f"app-1 is killed. ZooKeeper keeps its nodes for its session of {_SESSION_MS // 1000} s.")
    await first.kill()
    second = await ZookeeperMember.start(cluster, "app-2", session_timeout_ms=_SESSION_MS)
    stage.expect(await second.until_seen(Conflict, times=3), "app-2 meets the nodes of app-1")
    owners = set((await cluster.owners()).values())
    stage.expect(owners == {first.consumer_id}, "all partitions belong to app-1, which is dead")
    await stage.incident(cluster.cluster, finds={"KLP502": [GROUP], "KLP505": [GROUP]}, needs_logs=True)

    stage.step("ZooKeeper expires the session of app-1.")
    stage.expect(await second.until_owns(0, 1, 2, 3), "app-2 reads all partitions")
