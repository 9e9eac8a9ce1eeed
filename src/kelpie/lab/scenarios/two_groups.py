"""Two groups that read one topic while records come in: one of them will be ill, the other stays well."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.reader import SETTINGS, Reader
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition

ILL, WELL, TOPIC = "billing", "audit", "orders"
PARTITION = TopicPartition(TOPIC, 0)


@dataclass(frozen=True, slots=True)
class TwoGroups:
    cluster: Cluster
    ill: Reader
    well: Reader

    @classmethod
    async def start(
        cls,
        stage: Stage,
        *,
        settings: Mapping[str, object] | None = None,
        topic: Mapping[str, object] | None = None,
        records: int = 5,
    ) -> "TwoGroups":
        """Both have a rhythm when this comes back, and all is well."""
        cluster = await stage.cluster(1, config={**SETTINGS, **(settings or {})})
        cluster.create_topic(TOPIC, config=topic)
        stage.step(f"Groups {ILL} and {WELL} read {TOPIC}, and records come in all the time.")
        groups = cls(cluster, Reader(stage, cluster, ILL, [TOPIC]), Reader(stage, cluster, WELL, [TOPIC]))
        await groups.ill.start()
        await groups.well.start()
        trickle(stage, cluster, TOPIC, records)
        await groups.ill.until_at(PARTITION, 8 * records)
        await groups.well.until_at(PARTITION, 8 * records)
        await stage.calm(cluster)
        return groups


def trickle(stage: Stage, cluster: Cluster, topic: str, records: int = 5) -> "asyncio.Task[None]":
    """Somebody writes records into every partition, until the task is cancelled or the scenario ends."""

    async def write() -> None:
        while True:
            await produce(stage, cluster, topic, records)
            await asyncio.sleep(0.1)

    return stage.actor(write())
