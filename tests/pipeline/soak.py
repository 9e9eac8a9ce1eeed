"""A live lab, and a stream over it that is killed again and again: it ends with the tables of a batch.

    python -m tests.pipeline.soak --seconds 300 --kills 8 --seed 7

Consumers commit, leave and come back; a broker dies and returns; a collector looks at the cluster. The stream
runs in a process of its own and is killed (SIGKILL, whatever it is doing) at random moments.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from pyspark.sql import SparkSession

from kelpie.lab import SyncCluster
from kelpie.pipeline.lake import Lake
from kelpie.pipeline.run import Derived, Summary, take_in
from kelpie.pipeline.sources import topic
from kelpie.pipeline.tables import TABLES

CLUSTER, TOPIC, GROUPS = "soaked", "orders", 4
PATIENCE_S = 180.0
_OF_THE_RUN = {"evidence_file": {"batch"}, "cluster_snapshot": {"snapshot", "ordinal"}}
"""Columns that tell how the input came in, and not what it was."""
_OF_THE_SOURCE = {"source", "replica", "log_epoch", "producer_id", "producer_epoch"}


def soak(
    spark: SparkSession, folder: Path, *, seconds: float, kills: int, seed: int, tell: Callable[[str], None]
) -> dict[str, int]:
    """Rows by table, all equal to those of a batch; raises AssertionError if not."""
    chance = random.Random(seed)
    landing, tables = folder / "landing", folder / "tables"
    landing.mkdir()
    config = {"group.initial.rebalance.delay.ms": 0, "log.cleaner.enable": "false"}
    with SyncCluster(brokers=3, offsets_partitions=8, replication=2, config=config) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication=3)
        with (
            at_work(cluster, chance),
            child("collect", *at(cluster), "--into", landing, "--every", "2s", "-q"),
        ):
            ends, dead = time.monotonic() + seconds, None
            for moment in sorted(chance.uniform(0.3, 1.0) for _ in range(kills)):
                with stream(cluster, landing, tables, "--every", "1s") as process:
                    time.sleep(max(1.0, ends - seconds * (1 - moment) - time.monotonic()))
                    tell(f"killed after {seconds * moment:.0f} s")
                    process.kill()
                dead = cluster.kill(3) if dead is None else dead.lift()
            time.sleep(max(0.0, ends - time.monotonic()))
            if dead is not None:
                dead.lift()
        with stream(cluster, landing, tables, "--once") as process:
            assert process.wait(PATIENCE_S) == 0
        whole = Lake(folder / "whole")
        raw = topic.open_topic(spark, cluster.bootstrap_servers, streaming=False, through=topic.KELPIE)
        topic.take_in(whole, raw, cluster=CLUSTER, application="all at once", version=0)
    summary: Summary = take_in(spark, whole, [landing], cluster=CLUSTER)
    Derived(spark, whole, summary, lambda _: None).make()
    return compared(Lake(tables), whole)


def compared(one: Lake, other: Lake) -> dict[str, int]:
    counts = {}
    for name in TABLES:
        left, right = rows(one, name), rows(other, name)
        missing, more = right.keys() - left.keys(), left.keys() - right.keys()
        assert not missing, f"{name} lacks {len(missing)} of {len(right)} rows, such as {sorted(missing)[0]}"
        assert not more, f"{name} has {len(more)} rows that a batch has not, such as {sorted(more)[0]}"
        for key, row in left.items():
            assert row == right[key], f"{name} {key}: {row} is not {right[key]}"
        counts[name] = len(left)
    return counts


def rows(lake: Lake, name: str) -> dict[str, Any]:
    """What a table says, however its input came in; a record that was read twice is one."""
    table = TABLES[name]
    left_out = _OF_THE_RUN.get(name, set()) | (_OF_THE_SOURCE if table.layer == "bronze" else set())
    key = [column for column in table.key if column not in left_out]
    found = {}
    for row in lake.rows(table, CLUSTER).to_pylist():
        told = {column: value for column, value in row.items() if column not in left_out}
        identity = str([told[column] for column in key] if key != ["cluster"] else told)
        found[identity] = told
    return found


def at(cluster: SyncCluster) -> list[str]:
    return ["-b", cluster.bootstrap_servers]


def stream(cluster: SyncCluster, landing: Path, tables: Path, *options: str) -> Any:
    return child(
        *("pipeline", "stream", "--from", landing, "--into", tables, "--cluster", CLUSTER),
        *at(cluster),
        *options,
    )


@contextmanager
def child(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command of Kelpie's, and whatever it starts, ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kelpie", *map(str, arguments)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # The JVM of a stream that was killed.
        process.wait(30)


@contextmanager
def at_work(cluster: SyncCluster, chance: random.Random) -> Iterator[None]:
    """A producer, and groups whose members come and go."""
    stopped = threading.Event()
    seeds = [chance.random() for _ in range(GROUPS)]
    people = [threading.Thread(target=_produce, args=(cluster, stopped))]
    people += [
        threading.Thread(target=_consume, args=(cluster, f"billing-{number}", random.Random(seed), stopped))
        for number, seed in enumerate(seeds)
    ]
    for person in people:
        person.start()
    try:
        yield
    finally:
        stopped.set()
        for person in people:
            person.join(60)


def _produce(cluster: SyncCluster, stopped: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    number = 0
    while not stopped.wait(0.02):
        producer.produce(TOPIC, f"order {number}", partition=number % 3)
        producer.poll(0)
        number += 1
    producer.flush(10)


def _consume(cluster: SyncCluster, group: str, chance: random.Random, stopped: threading.Event) -> None:
    settings: Mapping[str, Any] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
    }
    while not stopped.is_set():
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        leaves, committed = time.monotonic() + chance.uniform(5, 20), time.monotonic()
        while not stopped.is_set() and time.monotonic() < leaves:
            message = consumer.poll(0.2)
            if message is None or message.error() or time.monotonic() - committed < 0.3:
                continue
            with suppress(KafkaException):  # A broker has just died; the next one may do.
                consumer.commit(asynchronous=False)
            committed = time.monotonic()
        consumer.close()


def main() -> int:
    from kelpie.pipeline.session import open_session

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spark = open_session("local[2]", brief=True)
    with tempfile.TemporaryDirectory(prefix="kelpie-soak-") as folder:
        counts = soak(
            spark,
            Path(folder),
            seconds=options.seconds,
            kills=options.kills,
            seed=options.seed,
            tell=lambda text: print(text, flush=True),
        )
    print("equal, by table:", ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
