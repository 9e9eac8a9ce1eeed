"""Spark's Kafka source and sink in batches: what is written is read back, whole or by offset and time."""

import json
from typing import Any

from confluent_kafka import Producer
from kafka.partitioner.default import murmur2
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from tests.lab.clients.clusters import Kafka

RECORDS = "key binary, value binary, partition int, headers array<struct<key:string,value:binary>>"


def read(spark: SparkSession, kafka: Kafka, **options: Any) -> DataFrame:
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return source.options(**options).load()


def texts(frame: DataFrame) -> list[tuple[Any, ...]]:
    rows = frame.selectExpr("partition", "offset", "cast(key as string)", "cast(value as string)").collect()
    return sorted(map(tuple, rows))


def stamped(kafka: Kafka, topic: str, stamps: list[int]) -> None:
    """One record for each time, in partition 0."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for stamp in stamps:
        producer.produce(topic, f"at {stamp}".encode(), partition=0, timestamp=stamp)
    assert producer.flush(60) == 0


def test_records_come_back_as_they_were_written(spark: SparkSession, kafka: Kafka) -> None:
    """Keys, values, headers and nulls pass through sink and source unchanged, each to its partition."""
    topic = kafka.create_topic(2)
    written = spark.createDataFrame(
        [
            (b"cow", b"milk", 0, [("colour", b"brown"), ("colour", b"white")]),
            (b"hen", None, 0, []),
            (None, b"wool", 1, [("empty", None)]),
        ],
        RECORDS,
    )

    written.write.format("kafka").options(
        **{"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic, "includeHeaders": "true"}
    ).save()
    got = read(spark, kafka, subscribe=topic, includeHeaders="true")

    assertDataFrameEqual(
        got.selectExpr("key", "value", "partition", "coalesce(headers, array()) as headers"), written
    )
    assert {row["timestampType"] for row in got.collect()} == {0}


def test_every_codec_is_written_and_read(spark: SparkSession, kafka: Kafka) -> None:
    """The connector brings a client of its own (3.9). Keys choose partitions as in every client."""
    topic = kafka.create_topic(3)
    frame = spark.range(30).selectExpr("cast(id as string) as key", "concat('v', id) as value").coalesce(1)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "kafka.compression.type": codec}
        frame.write.format("kafka").options(topic=topic, **options).save()

    got = texts(read(spark, kafka, subscribePattern=f"{topic[:-1]}.", startingOffsets="earliest"))

    by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for number in range(30):
        by_partition[(murmur2(str(number).encode()) & 0x7FFFFFFF) % 3].append(number)
    assert got == [
        (partition, offset, str(number), f"v{number}")
        for partition, numbers in by_partition.items()
        for offset, number in enumerate(numbers * 5)
    ]


def test_ranges_are_chosen_by_offset(spark: SparkSession, kafka: Kafka) -> None:
    """-2 is the beginning and -1 the end, partition by partition."""
    topic = kafka.create_topic(2)
    frame = spark.range(10).selectExpr("concat('v', id) as value", "cast(id % 2 as int) as partition")
    frame.coalesce(1).write.format("kafka").options(
        **{"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
    ).save()

    some = read(
        spark,
        kafka,
        assign=json.dumps({topic: [0, 1]}),
        startingOffsets=json.dumps({topic: {"0": 1, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 2}}),
    )

    assert [row[1:] for row in texts(some) if row[0] == 0] == [
        (offset, None, f"v{2 * offset}") for offset in (1, 2, 3, 4)
    ]
    assert [row[1:] for row in texts(some) if row[0] == 1] == [(0, None, "v1"), (1, None, "v3")]


def test_ranges_are_chosen_by_time(spark: SparkSession, kafka: Kafka) -> None:
    """The first record at or after a time begins, the first at or after another is left out."""
    topic = kafka.create_topic(1)
    stamped(kafka, topic, [1_700_000_000_000 + step for step in (0, 1000, 2000, 3000, 4000)])

    between = read(
        spark, kafka, subscribe=topic, startingTimestamp="1700000000500", endingTimestamp="1700000003000"
    )
    rest = read(
        spark,
        kafka,
        subscribe=topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": 1_700_000_003_000}}),
    )

    assert [row[1] for row in texts(between)] == [1, 2]
    assert [row[1] for row in texts(rest)] == [3, 4]


def test_aborted_records_are_skipped_by_readers_of_committed_ones(spark: SparkSession, kafka: Kafka) -> None:
    """Control records take offsets and are never rows."""
    topic = kafka.create_topic(1)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"spark-{topic}", "linger.ms": 0}
    )
    producer.init_transactions(60)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 2):
        producer.begin_transaction()
        producer.produce(topic, f"t{number}".encode(), partition=0)
        assert producer.flush(60) == 0  # An abort would drop what has not been sent.
        end(60)

    every = texts(read(spark, kafka, subscribe=topic))
    committed = texts(read(spark, kafka, subscribe=topic, **{"kafka.isolation.level": "read_committed"}))

    assert [row[1::2] for row in every] == [(0, "t0"), (2, "t1"), (4, "t2"), (6, "t3")]
    assert [row[1::2] for row in committed] == [(0, "t0"), (4, "t2")]
