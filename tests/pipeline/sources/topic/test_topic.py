"""The offsets topic, read live: the same rows as from the disks, by Spark's source and by Kelpie's."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from kelpie.client.client_errors import BadSettings, ClientError
from kelpie.client.settings import Settings
from kelpie.errors import ErrorCode
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition as Name
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.group_offsets import CommitDelayed, GroupOffsets
from kelpie.pipeline.sources.topic import intake as topic
from kelpie.pipeline.sources.topic.data_source import OffsetsTopic
from kelpie.pipeline.sources.topic.ends import Epochs, ask_epochs, ask_topic_ends
from kelpie.pipeline.sources.topic.fetch import NotRead, read_range
from kelpie.pipeline.sources.topic.intake import KELPIE, SPARK, fitting, leader_epochs, open_topic, take_in
from kelpie.pipeline.sources.topic.rows import RAW, FetchRange
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.transforms.commits import timeline
from kelpie.real.cluster import RealCluster
from tests.pipeline.sources.segments.segments import CLUSTER, Here, ingest, rows

PARTITIONS = 5
_OF_THE_DISK = {"source", "replica"}
_OF_TRANSACTIONS = {"is_transactional"}
_UNKNOWN_TO_SPARK = {"producer_id", "producer_epoch"}


def commit(cluster: Any, group: str, *offsets: int, topic: str = "orders") -> None:
    """Over Kelpie's client, which speaks to Kafka 0.9 as well; one record each."""

    async def go() -> None:
        kafka = GroupOffsets(Settings.of(cluster.bootstrap_servers))
        for offset in offsets:
            while True:
                try:
                    await kafka.commit(group, {Name(topic, 0): offset}, "")
                    break
                except CommitDelayed:
                    await asyncio.sleep(0.05)
        await kafka.close()

    asyncio.run(asyncio.wait_for(go(), 60))


def found(lake: Lake, table: str, *without: set[str]) -> list[dict[str, Any]]:
    """Rows by their place in the topic, without some columns."""
    left_out = set().union(*without)
    told = rows(lake, table)
    told.sort(key=lambda row: (row.get("offsets_partition"), row.get("log_offset", row.get("position"))))
    return [{name: it for name, it in row.items() if name not in left_out} for row in told]


def from_disk(lake: Lake, cluster: RealCluster) -> Lake:
    folders = [node.data for node in cluster.brokers]
    ingest(lake, folders, Here())
    return lake


def from_topic(lake: Lake, raw: DataFrame, version: int = 0, epochs: Epochs | None = None) -> Lake:
    take_in(lake, raw, cluster=CLUSTER, application="topic", version=version, epochs=epochs)
    return lake


def stream_into(lake: Lake, raw: DataFrame, checkpoint: Path) -> None:
    """All there is now; and once more, as after a crash behind the last batch."""

    def batch(part: DataFrame, number: int) -> None:
        from_topic(lake, part, number)
        from_topic(lake, part, number)

    writer = raw.writeStream.foreachBatch(batch).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        assert query.awaitTermination(120), "the query did not end"
    finally:
        query.stop()


# Real Kafka 4.3.1.


def _consumer(cluster: RealCluster, group: str, **more: Any) -> Consumer:
    own = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    return Consumer({**own, "auto.offset.reset": "earliest", **more})


def _work(cluster: RealCluster, group: str, topic: str, **more: Any) -> None:
    """Join, commit what is assigned, leave."""
    consumer = _consumer(cluster, group, **more)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def _transact(cluster: RealCluster, group: str, topic: str) -> None:
    """5 is committed, 6 aborted, 7 committed."""
    own = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": group}
    producer, consumer = Producer(own), _consumer(cluster, group)
    try:
        producer.init_transactions(60)
        for offset, end in ((5, "commit"), (6, "abort"), (7, "commit")):
            producer.begin_transaction()
            places = [TopicPartition(topic, 0, offset)]
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 60)
            getattr(producer, f"{end}_transaction")(60)
    finally:
        consumer.close()


@pytest.fixture
def busy(real_kafka: Callable[..., RealCluster]) -> tuple[RealCluster, str]:
    """A cluster whose groups have done all that leaves records; and the beginning of their names."""
    cluster, name = real_kafka(), f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(name, b"x")
    assert producer.flush(60) == 0
    commit(cluster, f"{name}-plain", 1, 2, 3, topic=name)
    _work(cluster, f"{name}-classic", name)
    _work(cluster, f"{name}-newer", name, **{"group.protocol": "consumer"})
    _transact(cluster, f"{name}-transactional", name)
    commit(cluster, f"{name}-gone", 4, topic=name)
    admin.delete_consumer_groups([f"{name}-gone"])[f"{name}-gone"].result(60)
    places = ConsumerGroupTopicPartitions(f"{name}-plain", [TopicPartition(name, 0, 9)])
    (altered,) = admin.alter_consumer_group_offsets([places]).values()
    altered.result(60)
    return cluster, name


@pytest.mark.real
def test_topic_and_disk_tell_the_same(
    spark: SparkSession, busy: tuple[RealCluster, str], tmp_path: Path
) -> None:
    """Every record once, whichever way it came; but an aborted commit is on the disk alone."""
    cluster, name = busy
    assert fitting(ask_topic_ends(Settings.of(cluster.bootstrap_servers))) == SPARK
    disk = from_disk(Lake(tmp_path / "disk"), cluster)
    ways = {}
    for through in (SPARK, KELPIE):
        raw = open_topic(spark, cluster.bootstrap_servers, streaming=False, through=through)
        epochs = leader_epochs(cluster.bootstrap_servers)
        ways[through] = from_topic(Lake(tmp_path / through), raw, epochs=epochs)

    for through, unknown in ((SPARK, _UNKNOWN_TO_SPARK), (KELPIE, set[str]())):
        left_out = (_OF_THE_DISK, unknown)
        on_disk = [
            it
            for it in found(disk, "offset_commit", *left_out, _OF_TRANSACTIONS)
            if (it["group"], it["offset"]) != (f"{name}-transactional", 6)
        ]
        assert found(ways[through], "offset_commit", *left_out, _OF_TRANSACTIONS) == on_disk
        metadata = found(ways[through], "group_metadata", *left_out)
        assert metadata == found(disk, "group_metadata", *left_out)
        mine = {it["kind"] for it in metadata if it["group"].startswith(name)}
        assert {
            "group_metadata",
            "consumer_group_metadata",
            "consumer_group_current_member_assignment",
        } <= mine
        assert any(it["is_removal"] for it in metadata)
        sources = {it["source"] for it in rows(ways[through], "offset_commit")}
        assert sources <= {f"{OFFSETS_TOPIC}-{it}@{cluster.bootstrap_servers}" for it in range(PARTITIONS)}
        assert not found(ways[through], "quarantine")

    def told(lakes: list[Lake]) -> list[tuple[Any, ...]]:
        commits, markers = (
            _union([ClusterTables(spark, lake, CLUSTER).frame(table) for lake in lakes])
            for table in ("offset_commit", "transaction_marker")
        )
        return sorted(timeline(commits, markers).drop("is_transactional", "producer_id").collect(), key=repr)

    assert told([disk, *ways.values()]) == told([disk])


def _union(frames: list[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


@pytest.mark.long
@pytest.mark.real
def test_stream_goes_on_where_it_was_with_either_source(
    spark: SparkSession, real_kafka: Callable[..., RealCluster], tmp_path: Path
) -> None:
    """Each record is in the tables once, over three runs of one checkpoint."""
    cluster = real_kafka()
    group = f"stream-{uuid.uuid4().hex[:8]}"

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(group, 1, 1)])[group].result(60)
    lake, expected = Lake(tmp_path / "lake"), []
    for number, (through, most) in enumerate(((KELPIE, 10), (SPARK, None), (KELPIE, None))):
        commit(cluster, group, *range(10 * number, 10 * number + 5), topic=group)
        expected += list(range(10 * number, 10 * number + 5))
        raw = open_topic(
            spark, cluster.bootstrap_servers, streaming=True, through=through, most_per_trigger=most
        )
        stream_into(lake, raw, tmp_path / "checkpoint")
        assert [it["offset"] for it in found(lake, "offset_commit") if it["group"] == group] == expected
    all_of_it = rows(lake, "offset_commit")
    places = {(it["offsets_partition"], it["log_offset"]) for it in all_of_it}
    assert len(places) == len(all_of_it)


# Real Kafka 0.9.


@pytest.mark.long
@pytest.mark.real
def test_kafka_0_9_is_read_by_kelpies_own_source(
    spark: SparkSession, real_kafka: Callable[..., RealCluster], tmp_path: Path
) -> None:
    """It knows neither headers nor timestamps nor ApiVersions, and Spark's source does not speak to it."""
    cluster = real_kafka("0.9.0.1")
    group = f"old-{uuid.uuid4().hex[:8]}"
    cluster.tool(
        "kafka-topics", "--create", "--topic", group, "--partitions", "1", "--replication-factor", "1"
    )
    commit(cluster, group, 1, 2, 3, topic=group)
    assert fitting(ask_topic_ends(Settings.of(cluster.bootstrap_servers))) == KELPIE

    raw = open_topic(spark, cluster.bootstrap_servers, streaming=True)
    lake = Lake(tmp_path / "lake")
    stream_into(lake, raw, tmp_path / "checkpoint")

    disk = from_disk(Lake(tmp_path / "disk"), cluster)
    mine = found(lake, "offset_commit", _OF_THE_DISK)
    assert mine == found(disk, "offset_commit", _OF_THE_DISK)
    assert [it["offset"] for it in mine if it["group"] == group] == [1, 2, 3]
    assert {it["written"] for it in mine} == {None}
    assert found(lake, "group_metadata", _OF_THE_DISK) == found(disk, "group_metadata", _OF_THE_DISK)


# The lab, and the source without Spark.


def test_without_sparks_source_kelpies_own_is_taken(
    spark: SparkSession, lab: SyncCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its jars are not everywhere."""

    def missing(*_: object, **__: object) -> DataFrame:
        raise AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka.")

    monkeypatch.setattr(topic, "_by_spark", missing)
    raw = open_topic(spark, lab.bootstrap_servers, streaming=True, through=SPARK)
    assert raw.isStreaming
    assert raw.columns == RAW.names
    assert "Kelpie's own reads the offsets topic" in caplog.text


GROUPS = {partition_for(group, PARTITIONS): group for group in map("group-{}".format, range(40))}
"""By partition of the offsets topic: a group that lives there."""


@pytest.fixture
def lab() -> Iterator[SyncCluster]:
    """Three brokers, one replica each; two commits in every partition."""
    with SyncCluster(3, offsets_partitions=PARTITIONS, replication=1) as cluster:
        cluster.create_topic("orders", 1, assignment={0: [1, 2, 3]})
        for group in GROUPS.values():
            commit(cluster, group, 1, 2)
        yield cluster


def options(cluster: SyncCluster, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, **more}


def read_all(reader: Any, parts: Any) -> pa.Table:
    batches = [batch for part in parts for batch in reader.read(part)]
    return pa.Table.from_batches(batches) if batches else pa.table({"offsets_partition": []})


def partitions_in(table: pa.Table) -> dict[int, int]:
    """How many records of each partition."""
    numbers = table["offsets_partition"].to_pylist()
    return {number: numbers.count(number) for number in sorted(set(numbers))}


def batch_reader(cluster: SyncCluster, **more: str) -> DataSourceReader:
    source = OffsetsTopic(options(cluster, **more))
    return source.reader(source.schema())


def stream_reader(cluster: SyncCluster, **more: str) -> DataSourceStreamReader:
    source = OffsetsTopic(options(cluster, **more))
    return source.streamReader(source.schema())


def leader_of(cluster: SyncCluster, partition: int) -> int:
    return int(cluster.describe()["topics"][OFFSETS_TOPIC][partition]["leader"])


def test_partition_without_a_leader_is_left_out_until_it_has_one(lab: SyncCluster) -> None:
    """The others go on; what came meanwhile is not lost, and nothing comes twice."""
    reader = stream_reader(lab)
    limit = reader.getDefaultReadLimit()
    with lab.make_leaderless(OFFSETS_TOPIC, 3):
        start = reader.initialOffset()
        first = reader.latestOffset(start, limit)
        before = partitions_in(read_all(reader, reader.partitions(start, first)))
        assert set(before) == {0, 1, 2, 4}
        assert reader.latestOffset(first, limit) == first
    commit(lab, GROUPS[3], 3)
    second = reader.latestOffset(first, limit)
    after = partitions_in(read_all(reader, reader.partitions(first, second)))
    assert set(after) == {3}
    assert reader.latestOffset(second, limit) == second


def test_batch_says_which_partitions_it_lacks(lab: SyncCluster) -> None:
    """As a row, so that tables tell of it."""
    reader = batch_reader(lab)
    with lab.make_leaderless(OFFSETS_TOPIC, 3):
        table = read_all(reader, reader.partitions())
    reasons = [row["reason"] for row in table.to_pylist() if row["offsets_partition"] == 3]
    assert reasons == [f"{OFFSETS_TOPIC}-3 was not read: it has no leader"]
    assert set(partitions_in(table)) == set(range(PARTITIONS))


def test_dead_brokers_cost_only_their_partitions(lab: SyncCluster) -> None:
    """One of the bootstrap addresses is dead, and what it led has no leader."""
    dead = leader_of(lab, 0)
    lost = {it for it in range(PARTITIONS) if leader_of(lab, it) == dead}
    lab.kill(dead)
    reader = stream_reader(lab)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    read_now = partitions_in(read_all(reader, reader.partitions(start, end)))
    assert set(read_now) == set(range(PARTITIONS)) - lost
    for node in lab.node_ids:
        if node != dead:
            lab.kill(node)
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    with pytest.raises(ClientError):
        stream_reader(lab).initialOffset()


def test_limit_takes_a_part_of_each_partition(lab: SyncCluster) -> None:
    """And in the end everything, once."""
    reader = stream_reader(lab, maxOffsetsPerTrigger="5")
    limit = reader.getDefaultReadLimit()
    at, counts = reader.initialOffset(), []
    while (following := reader.latestOffset(at, limit)) != at:
        counts.append(read_all(reader, reader.partitions(at, following)).num_rows)
        at = following
    everything = batch_reader(lab)
    assert sum(counts) == read_all(everything, everything.partitions()).num_rows
    assert len(counts) > 1
    assert max(counts) <= 5


def test_stream_may_begin_at_the_end_or_at_an_offset(lab: SyncCluster) -> None:
    """A partition that has no leader then begins where it ends when it is back."""
    with lab.make_leaderless(OFFSETS_TOPIC, 3):
        reader = stream_reader(lab, startingOffsets="latest")
        start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(start, limit)
    assert read_all(reader, reader.partitions(start, end)).num_rows == 0
    for group in GROUPS.values():
        commit(lab, group, 7)
    following = reader.latestOffset(end, limit)
    table = read_all(reader, reader.partitions(end, following))
    assert partitions_in(table) == dict.fromkeys(range(PARTITIONS), 1)

    given = '{"__consumer_offsets": {"0": 1}}'
    other = stream_reader(lab, startingOffsets=given)
    assert other.initialOffset()[OFFSETS_TOPIC] == {"0": 1, "1": 0, "2": 0, "3": 0, "4": 0}


def test_available_now_ends_at_what_there_was(lab: SyncCluster) -> None:
    """However much comes while it runs."""
    reader = stream_reader(lab)
    start = reader.initialOffset()
    assert isinstance(reader, SupportsTriggerAvailableNow)
    reader.prepareForTriggerAvailableNow()
    commit(lab, GROUPS[0], 8)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert partitions_in(read_all(reader, reader.partitions(start, end))) == dict.fromkeys(
        range(PARTITIONS), 2
    )
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end


def _offsets(
    lab: SyncCluster, offset_range: FetchRange, patience_s: float = 30.0
) -> tuple[list[int], list[str]]:
    pieces = list(read_range(Settings.of(lab.bootstrap_servers), offset_range, patience_s=patience_s))
    offsets = [offset for pairs, _ in pieces for offset in pairs["log_offset"].to_pylist()]
    return offsets, [it.reason for _, unread in pieces for it in unread]


def test_planned_stretch_is_read_though_its_leader_moves(lab: SyncCluster) -> None:
    """A batch that Spark has planned counts on every record of it."""
    lab.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, api="Fetch", count=2)
    lab.disconnect(api="Fetch", count=1)
    assert _offsets(lab, FetchRange(0, 0, 2)) == ([0, 1], [])
    with (
        lab.make_leaderless(OFFSETS_TOPIC, 0),
        pytest.raises(NotRead, match="-0 could not be read from offset 1"),
    ):
        _offsets(lab, FetchRange(0, 1, 2), patience_s=0.3)


def test_deleted_offsets_are_skipped_and_lost_ones_told(lab: SyncCluster) -> None:
    """The beginning moves by itself; an end that comes nearer is a loss."""
    commit(lab, GROUPS[0], 3)
    leader = leader_of(lab, 0)

    def delete() -> None:
        name = Name(OFFSETS_TOPIC, 0)
        lab.twin.fabric.broker(leader).replicas[name].log.delete_before(2)

    lab.call(delete)
    assert ask_topic_ends(Settings.of(lab.bootstrap_servers)).ends[0] == (2, 3)
    assert _offsets(lab, FetchRange(0, 0, 3)) == ([2], [])
    offsets, reasons = _offsets(lab, FetchRange(0, 9, 12))
    assert offsets == []
    assert reasons[0].startswith("the log ends before offset 12: what was there from 9 on is lost")


def test_leader_epochs_are_those_of_the_records(lab: SyncCluster) -> None:
    """By them copies from disks that differ are told apart, and Spark's source does not tell them."""
    for _ in range(3):
        lab.restart(leader_of(lab, 1))
        commit(lab, GROUPS[1], 5)
    reader = batch_reader(lab)
    told = read_all(reader, reader.partitions()).to_pylist()
    epochs = ask_epochs(Settings.of(lab.bootstrap_servers))
    assert len(epochs[1]) >= 3
    for row in told:
        known = [epoch for begin, epoch in epochs[row["offsets_partition"]] if begin <= row["log_offset"]]
        assert known[-1] == row["log_epoch"]


def test_log_that_has_become_shorter_is_read_anew(lab: SyncCluster) -> None:
    """After an unclean election other records stand at the same offsets; copies count once."""
    reader = stream_reader(lab)
    start = {OFFSETS_TOPIC: {str(it): 5 if it == 2 else 2 for it in range(PARTITIONS)}}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end[OFFSETS_TOPIC]["2"] == 2
    assert partitions_in(read_all(reader, reader.partitions(start, end))) == {2: 2}


def test_tasks_get_the_name_of_the_file_with_the_password_and_read_it_themselves(
    lab: SyncCluster, tmp_path: Path
) -> None:
    """Spark pickles what tasks get, and keeps it; a password has no place there."""
    file = tmp_path / "client.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=hunter2;"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    given = options(lab, propertiesFile=str(file))
    reader = OffsetsTopic(given).reader(OffsetsTopic(given).schema())
    pickled: bytes = cloudpickle.dumps(reader)  # type: ignore[no-untyped-call] # It has no types.
    assert b"hunter2" not in pickled
    at_task = cloudpickle.loads(pickled)
    sasl = at_task._options.settings.security.sasl
    assert sasl is not None
    assert sasl.password.reveal() == "hunter2"
    file.write_text("client.id=anybody\n")
    reader = OffsetsTopic(given).reader(OffsetsTopic(given).schema())
    assert read_all(reader, reader.partitions()).num_rows > 0
    file.unlink()
    with pytest.raises(BadSettings, match="cannot be read"):
        reader.partitions()
