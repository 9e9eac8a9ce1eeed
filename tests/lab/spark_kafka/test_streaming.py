"""Structured Streaming over Kafka: checkpoints know where a stream stands, sinks feed other topics."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.lab.clients.clusters import Kafka

_LIMIT_S = 120


def produce(kafka: Kafka, topic: str, values: range, partitions: int = 2) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        headers: list[tuple[str, str | bytes | None]] = [("number", str(value).encode())]
        producer.produce(topic, f"v{value}".encode(), partition=value % partitions, headers=headers)
    assert producer.flush(60) == 0


def stream(spark: SparkSession, kafka: Kafka, topic: str, **options: Any) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return source.options(subscribe=topic, startingOffsets="earliest", **options).load()


def run(frame: DataFrame, to: str, checkpoint: Path, **options: Any) -> int:
    """Everything there is now, to its end. How many batches it took."""
    query = (
        frame.writeStream.format(to)
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(_LIMIT_S), "the query did not end"
    finally:
        query.stop()
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def test_checkpoint_is_continued_after_new_records(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Each record is in the output once: those of the first run, and those that came between the runs."""
    topic = kafka.create_topic(2)
    frame = stream(spark, kafka, topic, maxOffsetsPerTrigger=6).selectExpr("cast(value as string)", "offset")
    output: dict[str, Any] = {
        "to": "parquet",
        "checkpoint": tmp_path / "checkpoint",
        "path": str(tmp_path / "out"),
    }

    produce(kafka, topic, range(10))
    first = run(frame, **output)
    produce(kafka, topic, range(10, 14))
    second = run(frame, **output)
    none = run(frame, **output)

    got = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(map(tuple, got)) == sorted((f"v{value}", value // 2) for value in range(14))
    assert (first, second, none) == (2, 1, 0)


def test_stream_feeds_another_topic(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Source and sink in one query, headers included."""
    source, target = kafka.create_topic(2), kafka.create_topic(1)
    produce(kafka, source, range(8))
    frame = stream(spark, kafka, source, includeHeaders="true").selectExpr(
        "value as key", "concat('copy of ', cast(value as string)) as value", "headers"
    )

    run(
        frame,
        "kafka",
        tmp_path / "checkpoint",
        topic=target,
        includeHeaders="true",
        **{"kafka.bootstrap.servers": kafka.bootstrap_servers},
    )

    got = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    rows = got.options(subscribe=target, includeHeaders="true").load().collect()
    assert sorted((bytes(row.key), bytes(row.value), bytes(row.headers[0].value)) for row in rows) == sorted(
        (f"v{value}".encode(), f"copy of v{value}".encode(), str(value).encode()) for value in range(8)
    )
    assert sorted(row.offset for row in rows) == list(range(8))


def test_lost_records_stop_the_stream(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """What was deleted before it was read must not go unnoticed, unless the reader says that it may."""
    topic = kafka.create_topic(1)
    strict = stream(spark, kafka, topic).selectExpr("offset")
    output: dict[str, Any] = {
        "to": "parquet",
        "checkpoint": tmp_path / "checkpoint",
        "path": str(tmp_path / "out"),
    }
    produce(kafka, topic, range(2), 1)
    run(strict, **output)
    produce(kafka, topic, range(2, 8), 1)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 5)]).values()
    assert deleted.result(60).low_watermark == 5

    with pytest.raises(StreamingQueryException, match=r"(?i)data.?loss"):
        run(strict, **output)
    lenient = stream(spark, kafka, topic, failOnDataLoss="false").selectExpr("offset")
    run(lenient, **output)

    assert sorted(row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [
        0,
        1,
        5,
        6,
        7,
    ]
