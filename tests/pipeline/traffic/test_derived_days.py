"""Derived traffic on Spark: as much as brokers of the lab count, and day by day."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from pyspark.sql import SparkSession

from kelpie.lab import SyncCluster
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import write_rows
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic import derivation_tasks
from kelpie.pipeline.traffic.day import Day
from kelpie.pipeline.traffic.derived_days import DerivedDays
from kelpie.places.place import move
from tests.collect.rounds import collect
from tests.lab.counted import QUICK, Reader, consumer, counted
from tests.pipeline.rows import at
from tests.pipeline.traffic.test_derivation import group, log

TOPIC, PARTITIONS, ROUNDS = "orders", 2, 8
DAY_S = 86_400


def commit(reader: Reader, offset: int | None = None) -> None:
    """What was read so far; or an offset in every partition."""
    if offset is None:
        reader.client.commit(asynchronous=False)
    else:
        places = [ck.TopicPartition(TOPIC, number, offset) for number in range(PARTITIONS)]
        reader.client.commit(offsets=places, asynchronous=False)


def derived(lake: Lake, cluster: str) -> list[dict[str, Any]]:
    rows = lake.rows(TABLES["attributed_traffic"], cluster).to_pylist()
    return [row for row in rows if row["how"] == "derived"]


def test_derived_traffic_is_what_the_brokers_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Within 2 %, with real clients: one group keeps up, one reads late, and records have all sizes.

    Both commit before the first record, so the surveys see all that they read.
    """
    landing, lake = tmp_path / "landing", Lake(tmp_path / "tables")
    chance, sent = random.Random(5), 0
    with SyncCluster(3, attribution="incarnation", config=QUICK) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication=3)
        producer = ck.Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
        with (
            consumer(cluster, "prompt", "app-1", enable_auto_commit=False) as prompt,
            consumer(cluster, "late", "app-2", enable_auto_commit=False) as late,
        ):
            for reader in (prompt, late):
                reader.client.subscribe([TOPIC])
                reader.poll(lambda reader=reader: len(reader.client.assignment()) == PARTITIONS)  # type: ignore[misc]
                commit(reader, 0)
            rounds = 0

            def between(_: object) -> None:
                nonlocal sent, rounds
                rounds += 1
                if rounds < ROUNDS - 1:
                    many = 20 * rounds
                    for number in range(many):
                        body = chance.randbytes(chance.randrange(10, 4_000 * rounds))
                        producer.produce(TOPIC, body, partition=number % PARTITIONS)
                    assert producer.flush(30) == 0
                    sent += many
                    prompt.read(sent)
                    commit(prompt)
                if rounds in (4, ROUNDS - 1):
                    late.read(sent)
                    commit(late)

            (told, *_) = collect(landing, cluster.bootstrap_servers, ROUNDS, after=between)
        messages = counted(cluster, topic=TOPIC)
        sizes = counted(cluster, "BYTES_OUT", topic=TOPIC)
    run(spark, lake, [landing], cluster=told.cluster)
    found: Counter[tuple[str, str]] = Counter()
    for row in derived(lake, told.cluster):
        assert row["bytes"] is not None, row
        found[row["group"], "messages"] += row["messages"]
        found[row["group"], "bytes"] += row["bytes"]
    assert messages == {"prompt": sent, "late": sent}
    for name in ("prompt", "late"):
        assert found[name, "messages"] == messages[name]
        assert found[name, "bytes"] == pytest.approx(sizes[name], rel=0.02)


def take_in(lake: Lake, version: int, *rows: dict[str, Any]) -> None:
    table = TABLES["offset_sample"]
    lake.open(table)
    samples = [{"cluster": "c", "day": row["at"].date(), "source": "survey 1", **row} for row in rows]
    files = write_rows(table, lake.path(table), "c", samples)
    lake.add(table, files, application="test", version=version)


def test_new_day_goes_on_without_reading_old_samples(spark: SparkSession, tmp_path: Path) -> None:
    """The files of the older day are even gone. A run without anything new changes nothing."""
    lake = Lake(tmp_path)
    days = DerivedDays(ClusterTables(spark, lake, "c"))
    take_in(lake, 1, log(0, 100, 1_000), group(0, 50), log(30, 200, 3_000), group(30, 150))
    days.make()
    for file in lake.files(TABLES["offset_sample"], "c"):
        move(file, file.with_suffix(".away"))
    take_in(lake, 2, log(DAY_S, 300, 4_000), group(DAY_S, 300))
    days.make()
    told = {(row["began"], row["ended"]): (row["messages"], row["bytes"]) for row in derived(lake, "c")}
    # The second day knows the log of the first day by its size alone: 15 bytes for each of its offsets.
    assert told == {(at(0), at(30)): (100, 1_500), (at(30), at(DAY_S)): (150, 1_750)}
    before = lake.open(TABLES["attributed_traffic"]).version()
    days.make()
    assert lake.open(TABLES["attributed_traffic"]).version() == before


def test_day_is_cut_by_partitions(tmp_path: Path) -> None:
    """A day may be larger than memory; all samples of one partition stay together."""
    lake = Lake(tmp_path)
    rows = [
        {**row, "partition": number}
        for number in range(40)
        for row in (log(0, 100, 1_000), group(0, 100), log(30, 200, 2_000), group(30, 200))
    ]
    take_in(lake, 1, *rows)
    files = [str(file) for file in lake.files(TABLES["offset_sample"], "c")]
    folders = {name: str(tmp_path / "out" / name) for name in ("attributed_traffic", "offset_closing")}
    day = Day("c", str(at(0).date()), folders, files)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(derivation_tasks, "ROWS_AT_ONCE", 10)
        (written,) = derivation_tasks.derive(day)["attributed_traffic"]
        (closing,) = derivation_tasks.close_offsets(day)["offset_closing"]
    assert (written.rows, closing.rows) == (40, 80)
