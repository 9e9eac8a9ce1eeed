"""Kafka 0.8: a partition has no owner, and no log says so.

Three consumers share six partitions. The first one is killed, and the last one leaves.
The dead one is still registered, so the other leaves it a larger share than it had:
one partition more, which nobody claims. No rebalance fails, and no exception is logged.
"""

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import GROUP, KAFKA_0_9, LASTING_MS, ZookeeperCluster, gather

NAME = "zookeeper-partition-unowned"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=6)
    stage.step(f"app-1, app-2 and app-3 of {GROUP} share six partitions, two each.")
    names = ("app-1", "app-2", "app-3")
    first, second, third = await gather(cluster, *names, session_timeout_ms=LASTING_MS)
    await stage.calm(cluster.cluster)

    stage.step("app-1 is killed, and app-3 leaves. app-2 counts the dead one, and takes the second half.")
    await first.kill()
    await third.leave()
    stage.expect(await second.until_owns(3, 4, 5), "app-2 reads partitions 3, 4 and 5")
    stage.expect(set(await cluster.owners()) == {0, 1, 3, 4, 5}, "partition 2 has no owner")
    await stage.incident(cluster.cluster, finds={"KLP503": [GROUP]})
