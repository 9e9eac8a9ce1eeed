"""Kafka 0.8: a consumer owns partitions that nobody reads.

One consumer is killed, and another one starts at once. The nodes of the dead one are in
its way, and it gives up: its application catches the exception, and does not close the
connector. When the dead one's session expires, the connector claims all partitions.
The application has never got a stream of it.
"""

from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import (
    GROUP,
    KAFKA_0_9,
    RECORDS,
    TOPIC,
    ZookeeperCluster,
    ZookeeperMember,
    gather,
)

NAME = "zookeeper-zombie-owner"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_SESSION_MS = 5_000
_HASTY = {"session_timeout_ms": _SESSION_MS, "rebalance_max_retries": 2, "rebalance_backoff_ms": 200}


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=4)
    stage.step(f"app-1 of {GROUP} reads all four partitions.")
    (first,) = await gather(cluster, "app-1", **_HASTY)
    await stage.calm(cluster.cluster)

    stage.step("app-1 is killed, and app-2 starts.")
    await first.kill()
    second = await ZookeeperMember.start(cluster, "app-2", **_HASTY)
    stage.expect(await second.until_failed(), "app-2 has given up")
    stage.expect(second.failed_at_start, "its application catches the exception, and goes on")

    stage.step("ZooKeeper expires the session of app-1, and records come in.")
    stage.expect(await second.until_owns(0, 1, 2, 3), "the connector of app-2 owns all partitions")
    await produce(stage, cluster.cluster, TOPIC, RECORDS)
    offsets = await cluster.offsets()
    stage.expect(
        set(offsets.values()) == {RECORDS}, f"nobody reads them: all committed offsets stay at {RECORDS}"
    )
    finds = {code: [GROUP] for code in ("KLP501", "KLP502", "KLP504", "KLP505", "KLP508")}
    await stage.incident(cluster.cluster, finds, needs_logs=True)
