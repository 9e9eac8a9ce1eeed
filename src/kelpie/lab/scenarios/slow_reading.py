"""A group that reads at a pace of its own, slowly enough for looks minutes apart on the virtual clock."""

import asyncio
from collections.abc import Mapping

from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.producing import leaders, write
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.wire.records import Record, write_batch

_PAUSE_S = 5.0


def slow_reader(stage: Stage, cluster: Cluster, group: str, topic: str) -> Application:
    """It commits every five seconds, and takes five records at a time."""
    return Application(
        stage,
        cluster,
        group,
        [topic],
        poll_s=2.0,
        session_timeout_ms=30_000,
        max_poll_interval_ms=300_000,
        max_poll_records=5,
        fetch_max_wait_ms=5_000,
        auto_commit_interval_ms=5_000,
    )


def write_slowly(
    stage: Stage, cluster: Cluster, topic: str, counts: Mapping[int, int]
) -> "asyncio.Task[None]":
    """Every five seconds so many records into each partition, until the scenario ends."""

    async def one_round() -> None:
        async with await stage.nodes(cluster, "producer") as nodes:
            leader_of = await leaders(nodes, topic)
            for partition, count in counts.items():
                name = TopicPartition(topic, partition)
                at = cluster.driver.clock.now()
                records = [Record(offset=n, timestamp=at, value=b"%d" % n) for n in range(count)]
                await write(nodes, leader_of[name], name, write_batch(records))

    async def go_on() -> None:
        while True:
            await one_round()
            await asyncio.sleep(_PAUSE_S)

    return stage.actor(go_on())
