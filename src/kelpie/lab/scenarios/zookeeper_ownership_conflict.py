"""Kafka 0.8: a consumer cannot claim its partitions, because another one does not let go of them.

One consumer owns all partitions, and its process is killed. Another one starts. Both
are registered, so half of the partitions must be its own, but the nodes of the first
one are in the way. The new consumer tries again and again; its retries are many.
"""

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import (
    GROUP,
    KAFKA_0_9,
    LASTING_MS,
    ZookeeperCluster,
    ZookeeperMember,
    gather,
)
from kelpie.zookeeper.steps import Conflict

NAME = "zookeeper-ownership-conflict"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=4)
    stage.step(f"app-1 of {GROUP} reads all four partitions. Its log is on a machine that is out of reach.")
    (first,) = await gather(cluster, "app-1", has_log=False, session_timeout_ms=LASTING_MS)
    await stage.calm(cluster.cluster)

    stage.step("app-1 is killed, and app-2 starts.")
    await first.kill()
    second = await ZookeeperMember.start(cluster, "app-2", session_timeout_ms=LASTING_MS)
    stage.expect(await second.until_seen(Conflict, times=3), "app-2 meets the nodes of app-1 in each try")
    stage.expect(set(await cluster.owners()) == {0, 1, 2, 3}, "every partition has an owner")
    stage.expect(second.owned == [], "app-2 reads nothing")
    await stage.incident(cluster.cluster, finds={"KLP502": [GROUP]}, needs_logs=True)
