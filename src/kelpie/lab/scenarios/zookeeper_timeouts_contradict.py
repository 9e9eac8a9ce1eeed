"""Kafka 0.8: a consumer would give up a rebalance before a dead member's session can expire.

Two groups read the same topic, and both are well. The retries of one outlast a session.
Those of the other span a second, and its sessions last half a minute: the next kill can
leave one of its consumers without partitions.
"""

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import KAFKA_0_9, ZookeeperCluster, gather

NAME = "zookeeper-timeouts-contradict"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_SOUND, _HASTY = "audit", "billing"


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, partitions=4)
    stage.step(f"A consumer of {_SOUND} reads. Its retries outlast a session.")
    await gather(cluster, "audit-1", group=_SOUND, rebalance_max_retries=50, rebalance_backoff_ms=200)
    await stage.calm(cluster.cluster, needs_logs=True)

    stage.step(f"A consumer of {_HASTY} reads: 3 retries, 500 ms between them, sessions of 30 s.")
    hasty = {"rebalance_max_retries": 3, "rebalance_backoff_ms": 500, "session_timeout_ms": 30_000}
    await gather(cluster, "billing-1", group=_HASTY, **hasty)
    await stage.incident(cluster.cluster, finds={"KLP504": [_HASTY]}, needs_logs=True)
