"""Groups with real consumers on a cluster of the lab, and a producer that gives them something to read.

So that there is something to see: what a fault does to one group, and not to another, follows from where the
group lives and what it reads. Topics differ in how many replicas they have.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from itertools import count, islice

from kelpie.client.client_errors import ClientError
from kelpie.client.consumer import Consumer, ConsumerError
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab.cluster import Cluster
from kelpie.lab.lab_errors import LabError
from kelpie.lab.scenarios.producing import leaders, write
from kelpie.wire.records import Record, write_batch, write_message_set

MOST_GROUPS = 200
TOPICS = {"orders": (6, 3), "payments": (3, 2), "clicks": (3, 1)}
"""Partitions and replicas; of the latter as many as there are brokers."""
_NAMES = (
    *("billing", "shipping", "search", "invoices", "fraud", "reports"),
    *("mail", "stock", "alerts", "prices", "archive", "sessions"),
)
_EVERY_S = 1.0
_RECORDS = 5
"""For each partition, each time."""
_PAUSE_S = 2.0
"""Before an application that has failed starts again."""


def group_names(number: int) -> list[str]:
    def names() -> Iterator[str]:
        yield from _NAMES
        for at in count(1):
            yield f"group-{at}"

    return list(islice(names(), number))


class Population:
    """As a context manager, within the loop of the cluster."""

    def __init__(self, cluster: Cluster, groups: int) -> None:
        if not 1 <= groups <= MOST_GROUPS:
            raise LabError(f"{groups} groups cannot be had; choose 1 to {MOST_GROUPS}.")
        self.groups = group_names(groups)
        self._cluster = cluster
        self._is_old = cluster.persona.name == "0.9"
        self._memory = Memory(tells_versions=not self._is_old)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Population":
        for name, (partitions, replicas) in TOPICS.items():
            self._cluster.create_topic(name, partitions, min(replicas, self._cluster.size))
        self._begin(self._produce())
        for at, group in enumerate(self.groups):
            topic = list(TOPICS)[at % len(TOPICS)]
            for member in range(1, 2 + at % 2):
                self._begin(self._consume(group, topic, f"{group}-{member}"))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def _settings(self, client_id: str) -> Settings:
        return Settings.of(self._cluster.bootstrap_servers, client_id=client_id)

    async def _consume(self, group: str, topic: str, client_id: str) -> None:
        """An application that is started again when it fails."""
        while True:
            consumer = Consumer(
                self._settings(client_id),
                group,
                [topic],
                memory=self._memory,
                assignors=("range",),
                auto_offset_reset="earliest",
                enable_auto_commit=True,
                auto_commit_interval_ms=1_000,
                session_timeout_ms=10_000,
                fetch_max_wait_ms=500,
            )
            try:
                with suppress(ConsumerError):
                    while True:
                        await consumer.poll(1.0)
            finally:
                await consumer.crash()
            await asyncio.sleep(_PAUSE_S)

    async def _produce(self) -> None:
        while True:
            # Partitions without a leader, and brokers that are gone, get no records.
            with suppress(ClientError, OSError):
                async with await Nodes.open(self._settings("producer"), memory=self._memory) as nodes:
                    while True:
                        await self._round(nodes)
                        await asyncio.sleep(_EVERY_S)
            await asyncio.sleep(_EVERY_S)

    async def _round(self, nodes: Nodes) -> None:
        now = -1 if self._is_old else self._cluster.driver.clock.now()
        records = [Record(offset=at, timestamp=now, value=b"%d" % at) for at in range(_RECORDS)]
        batch = write_message_set(records, magic=0) if self._is_old else write_batch(records)
        for topic in TOPICS:
            for partition, leader in (await leaders(nodes, topic)).items():
                with suppress(ClientError, AssertionError):  # The leader may have moved since.
                    await write(nodes, leader, partition, batch, version=1 if self._is_old else 7)
