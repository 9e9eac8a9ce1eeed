"""The lab against one real Kafka 4.3.1 broker: start, throughput with librdkafka, a rebalance of 500 members.

Lab and Kafka are processes of their own on the same machine, one after the other; the load comes from here.
"""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.measure import Ratio, Report
from bench.members import Group
from kelpie.lab import SyncCluster
from kelpie.real.cluster import RealCluster

MESSAGES = 500_000
SIZE = 100
MEMBERS = 500
REBALANCES = 5
PEER = "kafka-4.3.1"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "1000",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
}


def run() -> Report:
    ready = statistics.median(_lab_ready() for _ in range(5))
    first = _first_lab_ready()
    with lab_process() as (address, pid):
        connections = asyncio.run(_memory_of_connections(address, pid))
        lab = _measure(address, pid)
    start = time.perf_counter()
    with RealCluster("4.3.1", brokers=1, config=SETTINGS) as cluster:
        real_ready = time.perf_counter() - start
        real = _measure(cluster.bootstrap_servers, None)
    rows = [
        ["ready (3 brokers in the lab, 1 of Kafka), s", f"{ready:.4f}", f"{real_ready:.2f}"],
        ["the first one in a process, imports included, s", f"{first:.2f}", "–"],
        [
            f"produce {SIZE}-byte messages, acks=1, thousand/s",
            f"{lab['produce']:.0f}",
            f"{real['produce']:.0f}",
        ],
        ["consume them, thousand/s", f"{lab['consume']:.0f}", f"{real['consume']:.0f}"],
        [f"rebalance of {MEMBERS} members, s", f"{lab['rebalance']:.3f}", f"{real['rebalance']:.3f}"],
        ["memory of an idle member with its connection, KiB", f"{lab['member_kib']:.1f}", "–"],
        ["memory of an idle connection, KiB", f"{connections:.1f}", "–"],
    ]
    return Report(
        title="Lab",
        about=f"{MESSAGES:,} messages through librdkafka; the rebalance is the best of {REBALANCES}.",
        header=["", "Kelpie's lab", "Kafka 4.3.1"],
        rows=rows,
        ratios=[
            Ratio("lab-ready", real_ready / ready, PEER),
            Ratio("lab-produce", lab["produce"] / real["produce"], PEER),
            Ratio("lab-consume", lab["consume"] / real["consume"], PEER),
            Ratio("lab-rebalance-500", real["rebalance"] / lab["rebalance"], PEER),
        ],
    )


def _lab_ready() -> float:
    start = time.perf_counter()
    with SyncCluster(brokers=3):
        return time.perf_counter() - start


def _first_lab_ready() -> float:
    code = (
        "import time; start = time.perf_counter()\n"
        "from kelpie.lab import SyncCluster\n"
        "with SyncCluster(brokers=3): print(time.perf_counter() - start)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return float(done.stdout)


@contextmanager
def lab_process() -> Iterator[tuple[str, int]]:
    """A lab of one broker in a process of its own, as a person starts it."""
    settings = [word for key, value in SETTINGS.items() for word in ("--config", f"{key}={value}")]
    command = [sys.executable, "-m", "kelpie", "lab", "up", "--brokers", "1", *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                found = re.search(r"bootstrap\s+(\S+)", line)
                if found:
                    break
            else:
                raise AssertionError("the lab did not start")
            yield found[1], process.pid
        finally:
            process.terminate()
            process.wait(30)


def _measure(address: str, pid: int | None) -> dict[str, float]:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("bench", 1, 1)])["bench"].result(30)
    produced = _produce(address)
    consumed = _consume(address)
    rebalance, member_kib = asyncio.run(_rebalance(address, pid))
    return {"produce": produced, "consume": consumed, "rebalance": rebalance, "member_kib": member_kib}


def _produce(address: str) -> float:
    producer = Producer(
        {"bootstrap.servers": address, "acks": 1, "linger.ms": 5, "queue.buffering.max.messages": MESSAGES}
    )
    payload = os.urandom(SIZE)
    start = time.perf_counter()
    for _ in range(MESSAGES):
        producer.produce("bench", payload)
    left = producer.flush(120)
    assert left == 0, f"{left} messages were not delivered"
    return MESSAGES / (time.perf_counter() - start) / 1000


def _consume(address: str) -> float:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition("bench", 0, 0)])
    seen, deadline = 0, time.monotonic() + 120
    start = time.perf_counter()
    while seen < MESSAGES and time.monotonic() < deadline:
        seen += sum(message.error() is None for message in consumer.consume(10_000, 1.0))
    took = time.perf_counter() - start
    consumer.close()
    assert seen == MESSAGES, f"{seen} of {MESSAGES} messages came back"
    return MESSAGES / took / 1000


async def _rebalance(address: str, pid: int | None) -> tuple[float, float]:
    host, _, port = address.rpartition(":")
    before = _resident_kib(pid)
    group = await Group.of(host, int(port), MEMBERS, "bench-members")
    await group.rebalance()
    grown = _resident_kib(pid) - before
    best = min([await group.rebalance() for _ in range(REBALANCES)])
    await group.close()
    return best, grown / MEMBERS


async def _memory_of_connections(address: str, pid: int) -> float:
    host, _, port = address.rpartition(":")
    before = _resident_kib(pid)
    opened = [await asyncio.open_connection(host, int(port)) for _ in range(MEMBERS)]
    for _, writer in opened:
        writer.write(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
    for reader, _ in opened:
        await asyncio.wait_for(reader.readexactly(8), 30)
    grown = _resident_kib(pid) - before
    for _, writer in opened:
        writer.close()
    return grown / MEMBERS


def _resident_kib(pid: int | None) -> float:
    if pid is None:
        return 0.0
    with open(f"/proc/{pid}/status") as status:
        return float(next(line.split()[1] for line in status if line.startswith("VmRSS")))
