"""Kafka 0.8: a group has more consumers than its settings are good for.

With Kafka's defaults (4 retries, 2 s between them, sessions of 6 s) a rebalance after a
kill fails now and then. The more consumers there are, the more often one of them dies,
and the likelier one of them ends without partitions.
"""

import asyncio

from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.zookeeper_group import GROUP, KAFKA_0_9, ZookeeperCluster, ZookeeperMember, gather

NAME = "zookeeper-group-too-large"
PERSONAS = KAFKA_0_9
NEEDS_ZOOKEEPER = True
_DEFAULTS = {"session_timeout_ms": 6_000, "rebalance_max_retries": 4, "rebalance_backoff_ms": 2_000}
_FEW, _MANY, _PARTITIONS = 2, 8, 17


async def run(stage: Stage) -> None:
    cluster = await ZookeeperCluster.start(stage, _PARTITIONS)
    stage.step(f"{_FEW} consumers of {GROUP} with Kafka's default settings share {_PARTITIONS} partitions.")
    members = await gather(cluster, "app-1", "app-2", **_DEFAULTS)
    await stage.calm(cluster.cluster, needs_logs=True)

    stage.step(f"{_MANY - _FEW} more consumers start.")
    names = [f"app-{number}" for number in range(_FEW + 1, _MANY + 1)]
    starting = (ZookeeperMember.start(cluster, name, **_DEFAULTS) for name in names)
    members += await asyncio.gather(*starting)
    stage.expect(await cluster.until_read(*members), f"{_MANY} consumers share the partitions")
    await stage.incident(cluster.cluster, finds={"KLP507": [GROUP]}, needs_logs=True)
