"""What brokers of the lab have counted, added up over their scrapes."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck

from kelpie.lab import SyncCluster
from tests.lab.prometheus import read_strictly

QUICK: dict[str, object] = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500}
"""Settings of clusters on which groups are quick to gather, and sessions may be short."""
_SETTINGS: dict[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1000,
    "log_level": 0,
}


def counted(cluster: SyncCluster, name: str = "MESSAGE_OUT", *, topic: str | None = None) -> Counter[str]:
    """By group, over all brokers that are up. Groups that have nothing are left out."""
    counts: Counter[str] = Counter()
    for node in cluster.node_ids:
        if cluster.is_alive(node):
            for sample in read_strictly(cluster.scrape(node)):
                if sample.name == f"kop_server_{name}" and topic in (None, sample.labels["topic"]):
                    counts[sample.labels.get("group", "")] += int(sample.value)
    return counts


def send(cluster: SyncCluster, topic: str, count: int, partition: int = 0) -> None:
    """Messages to one partition, acknowledged by all replicas."""
    failed: list[Any] = []
    producer = ck.Producer({**_SETTINGS, "bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce(
            topic, b"%d" % number, partition=partition, on_delivery=lambda error, _: failed.append(error)
        )
    assert producer.flush(30) == 0
    assert [error for error in failed if error is not None] == []


@contextmanager
def consumer(cluster: SyncCluster, group: str, client_id: str, **settings: Any) -> Iterator["Reader"]:
    """librdkafka's. Points in names of settings are written as underscores."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    states: list[str] = []
    own = ck.Consumer(
        {
            **_SETTINGS,
            "statistics.interval.ms": 50,
            "stats_cb": lambda text: states.append(json.loads(text)["cgrp"]["state"]),
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 10_000,
            **given,
        }
    )
    try:
        yield Reader(own, states)
    finally:
        own.close()


class Reader:
    """A consumer that counts what it has got."""

    def __init__(self, client: ck.Consumer, states: list[str]) -> None:
        self.client = client
        self._states = states
        """Of its group, as librdkafka's statistics name them."""
        self.messages = 0

    @property
    def knows_coordinator(self) -> bool:
        return self._states[-1:] != [] and self._states[-1] in ("wait-broker", "wait-broker-transport", "up")

    def read(self, until: int, limit_s: float = 30.0) -> None:
        """Polls until it has got so many messages in all."""
        self.poll(lambda: self.messages >= until, limit_s)
        assert self.messages == until, f"{self.messages} messages instead of {until}"

    def poll(self, condition: Callable[[], object], limit_s: float = 30.0) -> None:
        """Polls until it is so."""
        for _ in range(int(limit_s / 0.05)):
            if condition():
                return
            self._take(self.client.consume(1_000, 0.05))
        raise AssertionError(f"did not come true within {limit_s} s; it has {self.messages} messages")

    def _take(self, messages: list[ck.Message]) -> None:
        self.messages += sum(message.error() is None for message in messages)
