"""Kafka 0.8: a consumer gives up a rebalance after another one was killed, and reads nothing.

Three consumers share six partitions. The second one is killed; ZooKeeper keeps its
registration and its owner nodes until its session expires. The first one leaves. The
third one now must own a partition that the dead one still owns: it tries
rebalance.max.retries times, logs an exception, and stays registered without any
partition.
"""

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import GROUP, KAFKA_0_9, LASTING_MS, ZookeeperCluster, gather

NAME = "zookeeper-retries-exhausted"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_HASTY = {"session_timeout_ms": LASTING_MS, "rebalance_max_retries": 3, "rebalance_backoff_ms": 300}


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=6)
    stage.step(f"app-1, app-2 and app-3 of {GROUP} share six partitions, two each.")
    stage.say("Sessions last half an hour here, so that the fault stays; the default is 6 s.")
    first, second, third = await gather(cluster, "app-1", "app-2", "app-3", **_HASTY)
    await stage.calm(cluster.cluster)

    stage.step("app-2 is killed, and app-1 leaves. The dead one still counts: app-3 is to own 3, 4 and 5.")
    await second.kill()
    await first.leave()
    stage.expect(await third.until_failed(), "app-3 has given up: app-2 still owns partition 3")
    stage.expect(third.owned == [], "it runs, is registered, and owns nothing")
    owners = await cluster.owners()
    stage.expect(set(owners) == {2, 3}, "partitions 0, 1, 4 and 5 have no owner; nobody reads anything")
    finds = {code: [GROUP] for code in ("KLP501", "KLP502", "KLP503", "KLP504", "KLP505")}
    await stage.incident(cluster.cluster, finds, needs_logs=True)
