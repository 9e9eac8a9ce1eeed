"""The demo: an outage in the lab, found, understood and repaired, then told by tables on Spark; and one of
real Kafka, from files alone.

Everything runs on this machine, on loopback. What follows a $ is what a person would type.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # The recordings live with the tests.

from tests.evidence import unpacked

TOPIC, RECORDS, LATER = "orders", 600, 90
OFFSETS_PARTITIONS = 50
GROUPS = [f"billing-{number}" for number in range(6)]
RECORDING = "kafka-4.3.1-coordinator-outage"
REPORT_LINES, STORY_LINES, TABLE_LINES = 38, 27, 22
PATIENCE_S = 30.0
SPARK_PATIENCE_S = 240.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kelpie-demo-") as state:
        os.environ["KELPIE_STATE"] = state  # The doctor remembers what it has seen, here for a minute.
        outage_in_the_lab(Path(state))
    recorded_outage()
    return 0


def outage_in_the_lab(folder: Path) -> None:
    logs, landing, tables = (folder / name for name in ("logs", "landing", "tables"))
    tell("1. A cluster of three brokers, in this process; unmodified clients use it.")
    config = {"group.initial.rebalance.delay.ms": 0}
    with SyncCluster(
        brokers=3, offsets_partitions=OFFSETS_PARTITIONS, replication=2, config=config, log_folder=logs
    ) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication=3)
        produce(cluster, RECORDS)
        for group in GROUPS:
            read(cluster, group, RECORDS)
        print(f"   {len(GROUPS)} groups have each read {RECORDS} records, and committed.")
        kelpie("doctor", "-b", cluster.bootstrap_servers)

        tell("2. Two brokers die. Somebody collects what can be seen meanwhile.")
        hit = stricken(cluster)
        with collecting(cluster, landing):
            for node in (2, 3):
                cluster.kill(node)
            kelpie("doctor", "-b", cluster.bootstrap_servers, lines=REPORT_LINES)
        print("   …")

        tell(f"3. Move {hit[0]} to a healthy coordinator, with its place.")
        said = kelpie("rehome", "-b", cluster.bootstrap_servers, hit[0], "--apply")
        new = next(line.split("=")[1].split()[0] for line in said.splitlines() if "group.id=" in line)
        produce(cluster, LATER)
        came = read(cluster, new, LATER + 1, limit_s=5.0)
        print(f"\n   {LATER} records were written meanwhile. A consumer of {new} was given {came}.")

        tell(
            "4. The same night as tables, on Spark: what was collected, the brokers' logs, the offsets topic."
        )
        sources = ("--from", str(landing), str(logs), "-b", cluster.bootstrap_servers)
        kelpie(
            *("pipeline", "stream", "--once", "--quiet", *sources, "--into", str(tables)),
            limit_s=SPARK_PATIENCE_S,
        )
        print()
    kelpie("doctor", "--tables", str(tables), lines=TABLE_LINES)
    print("   …")


def recorded_outage() -> None:
    tell("5. An outage of real Kafka 4.3.1, from files alone: logs, tools' outputs, disks.")
    kelpie("doctor", "--evidence", str(unpacked(RECORDING)), lines=STORY_LINES)
    print("\n   … and so on. `kelpie explain` lists what the doctor knows; docs/doctor.md says more.")


def tell(text: str) -> None:
    print(f"\n{text}\n", flush=True)


@contextmanager
def collecting(cluster: SyncCluster, landing: Path) -> Iterator[None]:
    """A look at the cluster every second, in the background."""
    print("   $ kelpie collect -b … --into landing --every 1s &")
    options = ["-b", cluster.bootstrap_servers, "--into", str(landing), "--every", "1s", "--quiet"]
    process = subprocess.Popen([sys.executable, "-m", "kelpie", "collect", *options])
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not any(landing.glob("[!.]*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def kelpie(*arguments: str, lines: int | None = None, limit_s: float = 2 * PATIENCE_S) -> str:
    """Run a command as a person would, and show what it says."""
    shown = [argument if not argument.startswith("/") else Path(argument).name for argument in arguments]
    print(f"   $ kelpie {' '.join(shown)}\n", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "kelpie", *arguments],
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    said = done.stdout + done.stderr
    for line in said.splitlines()[:lines]:
        print(f"   {line}".rstrip())
    return said


def stricken(cluster: SyncCluster) -> list[str]:
    """The groups whose partition of the offsets topic has no replica on broker 1."""
    lost = {number for number, nodes in replicas(cluster).items() if 1 not in nodes}
    return [group for group in GROUPS if partition_for(group, OFFSETS_PARTITIONS) in lost]


def replicas(cluster: SyncCluster) -> dict[int, Sequence[int]]:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=PATIENCE_S)
    offsets_topic = metadata.topics["__consumer_offsets"]
    return {number: partition.replicas for number, partition in offsets_topic.partitions.items()}


def produce(cluster: SyncCluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce(TOPIC, f"order {number}", partition=number % 3)
    producer.flush(PATIENCE_S)


def read(cluster: SyncCluster, group: str, count: int, limit_s: float = PATIENCE_S) -> int:
    """Read so many records in a group, or what comes in time, commit, and leave. How many came."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    came, deadline = 0, time.monotonic() + limit_s
    try:
        while came < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                came += 1
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return came


if __name__ == "__main__":
    raise SystemExit(main())
