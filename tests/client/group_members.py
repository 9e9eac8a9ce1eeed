"""Real consumers that are members of groups, for tests that look at members."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer

LIMIT_S = 60.0


class Consumers:
    """Real consumers that have joined. All are polled together: librdkafka joins again only when polled."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._all: list[Consumer] = []

    def join(self, client_id: str, group: str) -> None:
        self._all.append(
            Consumer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "group.id": group,
                    "client.id": client_id,
                    # By its answer a member hears that another one wants to join; three seconds by default.
                    "heartbeat.interval.ms": 100,
                }
            )
        )
        self._all[-1].subscribe(["orders"])

    def settle(self) -> None:
        deadline = time.monotonic() + LIMIT_S
        assigned: list[bool] = []
        while not (assigned and all(assigned)):
            assigned = [self._poll(consumer) for consumer in self._all]
            assert time.monotonic() < deadline, "some consumers were assigned nothing"

    def close(self) -> None:
        for consumer in self._all:
            consumer.close()

    def _poll(self, consumer: Consumer) -> bool:
        consumer.poll(0.05)
        return bool(consumer.assignment())


@contextmanager
def consuming(cluster: Any, *clients: tuple[str, str]) -> Iterator[Consumers]:
    """Consumers, each a client id and a group, that all have partitions."""
    consumers = Consumers(cluster.bootstrap_servers)
    try:
        for client_id, group in clients:
            consumers.join(client_id, group)
        consumers.settle()
        yield consumers
    finally:
        consumers.close()
