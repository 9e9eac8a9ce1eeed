"""The doctor through a graceful rolling restart of real Kafka: nothing is wrong, so it says nothing."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import SurveyOptions, survey
from kelpie.observations import OFFSETS_TOPIC
from kelpie.real.cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.long]

CONFIG = {
    "default.replication.factor": 3,
    "num.partitions": 6,
    "offsets.topic.num.partitions": 8,
    "offsets.topic.replication.factor": 3,
    "min.insync.replicas": 2,
    "group.initial.rebalance.delay.ms": 0,
}
PROTOCOLS = ("classic", "consumer")
TOPIC = "orders"
COORDINATORS = {f"KLP{number}" for number in range(101, 108)}


@contextmanager
def _busy_groups(servers: str) -> Iterator[Callable[[], dict[str, int]]]:
    """A group of each protocol, of two members, that reads what a producer writes; how much each has read."""
    stop = Event()
    read = dict.fromkeys(PROTOCOLS, 0)

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
        while not stop.wait(0.05):
            producer.produce(TOPIC, b"v")
            producer.poll(0)
        producer.flush(10)

    def consume(protocol: str) -> None:
        settings = {
            "bootstrap.servers": servers,
            "group.id": protocol,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                read[protocol] += 1
        consumer.close()

    with ThreadPoolExecutor(5) as pool:
        work = [pool.submit(write), *(pool.submit(consume, name) for name in PROTOCOLS for _ in range(2))]
        try:
            yield lambda: dict(read)
        finally:
            stop.set()
            for each in work:
                each.result(60)


def _is_whole(servers: str) -> bool:
    """Whether every partition of the offsets topic has its three replicas in sync."""

    async def ask() -> bool:
        async with await Nodes.open(Settings.of(servers)) as nodes:
            seen = await survey(nodes, options=SurveyOptions(ends=False, offsets=False))
        rows = [row for row in seen.partitions if row.topic == OFFSETS_TOPIC and row.partition >= 0]
        return bool(rows) and all(len(row.in_sync) == 3 for row in rows)

    return asyncio.run(ask())


def test_a_graceful_rolling_restart_is_nothing_to_wake_anybody_for(
    fresh_real_kafka: Callable[..., RealCluster],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wait_until: Callable[..., None],
) -> None:
    """At every moment of it, for a classic group and one of KIP-848, the rules on coordinators keep still."""
    cluster = fresh_real_kafka("4.3.1", brokers=3, **CONFIG)
    servers = cluster.bootstrap_servers
    created = cluster.tool("kafka-topics", "--create", "--topic", TOPIC)
    assert created.status == 0, created.stderr

    def examine() -> list[dict[str, Any]]:
        main(["doctor", "-b", servers, "--json", "--store", str(tmp_path)])
        document = json.loads(capsys.readouterr().out)
        found: list[dict[str, Any]] = document["findings"]
        return found

    def restart_all() -> None:
        for node in ("1", "2", "3"):
            cluster.stop(node)
            cluster.start(node)
            wait_until(lambda: _is_whole(servers), limit_s=120)

    with _busy_groups(servers) as read:
        wait_until(lambda: min(read().values()) > 10, limit_s=90)
        wait_until(lambda: _is_whole(servers), limit_s=90)
        looks = [examine()]
        with ThreadPoolExecutor(1) as pool:
            restarting = pool.submit(restart_all)
            while not restarting.done():
                looks.append(examine())
            restarting.result()
        looks.append(examine())
    loud = [
        f"look {number}: {it['code']} {it['severity']} {it['summary']}"
        for number, findings in enumerate(looks)
        for it in findings
        if it["code"] in COORDINATORS and it["severity"] != "notice"
    ]
    assert len(looks) > 5
    assert not loud, "\n".join(loud)
