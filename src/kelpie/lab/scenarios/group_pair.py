"""Two groups that read one topic while records come in. A fault will affect one; the other stays healthy."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import QUICK_AND_SMALL, Application
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

AFFECTED, HEALTHY, TOPIC = "billing", "audit", "orders"
PARTITION = TopicPartition(TOPIC, 0)


@dataclass(frozen=True, slots=True)
class GroupPair:
    cluster: Cluster
    affected: Application
    healthy: Application

    @classmethod
    async def start(
        cls,
        stage: Stage,
        *,
        settings: Mapping[str, object] | None = None,
        topic: Mapping[str, object] | None = None,
        records: int = 5,
        pace_s: float = 0.1,
        **options: Any,
    ) -> "GroupPair":
        """Both groups commit regularly when this returns, and all is well. `options` are the cluster's.

        `pace_s`: how often records come in, and how often both groups poll and commit. A long scenario costs
        less with fewer steps in a second.
        """
        cluster = await stage.cluster(1, config={**QUICK_AND_SMALL, **(settings or {})}, **options)
        cluster.create_topic(TOPIC, config=topic)
        stage.step(f"Groups {AFFECTED} and {HEALTHY} read {TOPIC}, and records come in all the time.")
        pace_ms = round(1000 * pace_s)
        intervals: dict[str, Any] = {"fetch_max_wait_ms": pace_ms, "auto_commit_interval_ms": pace_ms}
        affected, healthy = (
            Application(stage, cluster, group, [TOPIC], poll_s=pace_s, **intervals).start()
            for group in (AFFECTED, HEALTHY)
        )
        groups = cls(cluster, affected, healthy)
        produce_steadily(stage, cluster, TOPIC, records, pace_s)
        await groups.affected.until_at(PARTITION, 8 * records)
        await groups.healthy.until_at(PARTITION, 8 * records)
        await stage.calm(cluster)
        return groups


def produce_steadily(
    stage: Stage, cluster: Cluster, topic: str, records: int = 5, pace_s: float = 0.1
) -> "asyncio.Task[None]":
    """Write records into every partition, until the task is cancelled or the scenario ends."""

    async def write() -> None:
        while True:
            await produce(stage, cluster, topic, records)
            await asyncio.sleep(pace_s)

    return stage.actor(write())
