"""CommitOffsets: progress of Spark's queries, committed to groups, exactly once per batch."""

import logging
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from kelpie.client.client_errors import BadSettings
from kelpie.errors import ErrorCode
from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.pipeline import CommitOffsets
from kelpie.real.cluster import RealCluster
from kelpie.wire.offsets_topic import RecordType, decode_key, decode_value

QUERY, OTHER = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
OFFSETS_PARTITIONS = 5

Wait = Callable[..., None]


@pytest.fixture
def lab() -> Iterator[SyncCluster]:
    with SyncCluster(1, offsets_partitions=OFFSETS_PARTITIONS) as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("payments", 1)
        yield cluster


def source(end: Any, description: str = "KafkaV2[Subscribe[orders]]") -> dict[str, Any]:
    nothing = dict.fromkeys(("numInputRows", "inputRowsPerSecond", "processedRowsPerSecond"), 0)
    return {"description": description, "startOffset": "", "endOffset": end, "latestOffset": end, **nothing}


def progress(batch: int, *sources: dict[str, Any], query: str = QUERY, name: str = "q") -> QueryProgressEvent:
    told = {
        "id": query,
        "runId": query,
        "name": name,
        "timestamp": "",
        "batchId": batch,
        "batchDuration": 1,
        "stateOperators": [],
        "sources": list(sources),
        "sink": {"description": "", "numOutputRows": 0},
    }
    return QueryProgressEvent(StreamingQueryProgress.fromJson(told))


def at(batch: int, first: int, second: int = 0, **more: Any) -> QueryProgressEvent:
    return progress(batch, source({"orders": {"0": first, "1": second}}), **more)


def ended(query: str = QUERY) -> QueryTerminatedEvent:
    return QueryTerminatedEvent(uuid.UUID(query), uuid.UUID(query), None, None)


def committed(cluster: Any, group: str, *places: tuple[str, int]) -> list[int]:
    """By librdkafka: the offset of each partition, −1001 for none."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        wanted = [TopicPartition(*place) for place in places or (("orders", 0), ("orders", 1))]
        return [it.offset for it in consumer.committed(wanted, timeout=30)]
    finally:
        consumer.close()


# On real Kafka, with Spark's own connector.


def read(spark: SparkSession, cluster: RealCluster, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "6"}
    return spark.readStream.format("kafka").options(**options, **limits).load()


def run(frame: DataFrame, checkpoint: Path, name: str) -> int:
    """All there is. How many batches it took."""
    writer = frame.writeStream.format("noop").queryName(name).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        assert query.awaitTermination(120), "the query did not end"
    finally:
        query.stop()
    return len(query.recentProgress)


def produce(cluster: RealCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, b"x", partition=number % 2)
    assert producer.flush(60) == 0


def stored(cluster: RealCluster, group: str) -> list[tuple[int, int, str]]:
    """Partition, offset and note of every commit that the offsets topic holds of a group, in order."""
    home = TopicPartition("__consumer_offsets", partition_for(group, OFFSETS_PARTITIONS), 0)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "nobody"})
    found = []
    try:
        consumer.assign([home])
        _, end = consumer.get_watermark_offsets(home, timeout=30)
        at = 0
        while at < end:
            (message,) = consumer.consume(1, timeout=30)
            offset = message.offset()
            assert offset is not None
            at = offset + 1
            kind, key = decode_key(message.key())
            if kind <= RecordType.OFFSET_COMMIT and key.group == group:
                value = decode_value(kind, message.value())
                found.append((key.partition, value.offset, value.metadata))
    finally:
        consumer.close()
    return found


def described(cluster: RealCluster, group: str) -> list[tuple[str, ...]]:
    """What Kafka's own tool shows: partition, offset, end, lag."""
    told = cluster.tool("kafka-consumer-groups", "--describe", "--group", group)
    rows = [line.split() for line in told.stdout.splitlines() if line.startswith(group)]
    return sorted(tuple(row[2:6]) for row in rows)


@pytest.mark.real
def test_kafkas_tool_sees_a_query_of_sparks(
    spark: SparkSession, real_kafka: Callable[..., RealCluster], tmp_path: Path
) -> None:
    """Two runs over one checkpoint: committed is what was read, and each batch was committed once."""
    cluster = real_kafka()
    topic = group = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
    places = ((topic, 0), (topic, 1))
    listener = CommitOffsets(
        "{query}", properties={"kafka.bootstrap.servers": cluster.bootstrap_servers}, query=group
    )

    def settled() -> bool:
        """What Spark has to say has been said, and committed."""
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return listener.flush(60)

    spark.streams.addListener(listener)
    try:
        produce(cluster, topic, 10)
        batches = run(read(spark, cluster, topic), tmp_path / "one", group)
        assert settled()
        assert committed(cluster, group, *places) == [5, 5]
        produce(cluster, topic, 4)
        run(
            spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load(),
            tmp_path / "two",
            "r",
        )
        batches += run(read(spark, cluster, topic), tmp_path / "one", group)
        assert settled()
        assert committed(cluster, group, *places) == [7, 7]
    finally:
        spark.streams.removeListener(listener)

    assert described(cluster, group) == [("0", "7", "7", "0"), ("1", "7", "7", "0")]
    commits = stored(cluster, group)
    for partition in (0, 1):
        own = [it for it in commits if it[0] == partition]
        assert len({note for _, _, note in own}) == len(own) <= batches == 3
        assert [offset for _, offset, _ in own] == sorted(offset for _, offset, _ in own)
        assert own[-1][2].endswith("batch 2")


# On the lab, with what Spark would tell.


def test_each_batch_is_committed_once(lab: SyncCluster) -> None:
    """Spark may tell of a batch again, and a restarted query repeats its last one."""
    commits = lab.observe(api="OffsetCommit")
    listener = CommitOffsets("g", lab.bootstrap_servers)
    for batch in (0, 0, 1, 0, 1, 2, 2):
        listener.onQueryProgress(at(batch, 10 * batch, batch))
        assert listener.flush(30)
    assert committed(lab, "g") == [20, 2]
    assert commits.hits == 3

    again = CommitOffsets("g", lab.bootstrap_servers)
    again.onQueryProgress(at(2, 20, 2))
    again.onQueryProgress(at(1, 10, 1))
    assert again.flush(30)
    assert commits.hits == 3
    again.onQueryProgress(at(3, 30, 3))
    assert again.flush(30)
    assert (committed(lab, "g"), commits.hits) == ([30, 3], 4)


def test_a_commit_whose_answer_was_lost_is_not_repeated(lab: SyncCluster) -> None:
    """It was done; whoever looks before trying again knows."""
    commits = lab.observe(api="OffsetCommit")
    cut = lab.disconnect(api="OffsetCommit", after=True, count=1)
    listener = CommitOffsets("g", lab.bootstrap_servers)
    listener.onQueryProgress(at(0, 5, 6))
    assert listener.flush(30)
    assert (committed(lab, "g"), commits.hits, cut.hits) == ([5, 6], 1, 1)


def test_newest_progress_is_committed_once_the_coordinator_is_there(
    lab: SyncCluster, caplog: pytest.LogCaptureFixture, wait_until: Wait
) -> None:
    """While it is not, nobody waits; it is told once, and what came meanwhile is one commit."""
    caplog.set_level(logging.INFO)
    commits = lab.observe(api="OffsetCommit")
    listener = CommitOffsets("g", lab.bootstrap_servers)
    with lab.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE, api="FindCoordinator") as fault:
        for batch in range(50):
            listener.onQueryProgress(at(batch, batch))
        listener.onQueryTerminated(ended())
        wait_until(lambda: fault.hits > 3)
        assert not listener.flush(0)
    assert listener.flush(30)
    assert (committed(lab, "g"), commits.hits) == ([49, 0], 1)
    assert len([it for it in caplog.records if "cannot be committed yet" in it.message]) == 1


def test_commit_arrives_when_a_dead_broker_is_back(lab: SyncCluster) -> None:
    """Connections are refused for a while: nothing of it reaches the query."""
    listener = CommitOffsets("g", lab.bootstrap_servers)
    listener.onQueryProgress(at(0, 1))
    assert listener.flush(30)
    lab.kill(1)
    listener.onQueryProgress(at(1, 2))
    assert not listener.flush(0.5)
    lab.start(1)
    assert listener.flush(30)
    assert committed(lab, "g") == [2, 0]


def test_patience_has_an_end(lab: SyncCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A batch is given up in words; the next one stands for it."""
    listener = CommitOffsets("g", lab.bootstrap_servers, patience_s=1.0)
    with lab.fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, api="OffsetFetch"):
        listener.onQueryProgress(at(0, 1))
        assert listener.flush(30)
    assert "Batch 0 of query q was not committed within" in caplog.text
    assert "COORDINATOR_LOAD_IN_PROGRESS" in caplog.text
    listener.onQueryProgress(at(1, 2))
    assert listener.flush(30)
    assert committed(lab, "g") == [2, 0]


def test_group_with_members_is_told_in_words(
    lab: SyncCluster, caplog: pytest.LogCaptureFixture, wait_until: Wait
) -> None:
    """A group is either one of consumers or of a query; once the consumers are gone, it goes on."""
    member = Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": "g"})
    listener = CommitOffsets("g", lab.bootstrap_servers)
    try:
        member.subscribe(["orders"])
        wait_until(lambda: member.poll(0.05) is None and member.assignment())
        for batch in (0, 1):
            listener.onQueryProgress(at(batch, 1))
            assert listener.flush(30)
    finally:
        member.close()
    told = [it.message for it in caplog.records if "It has members" in it.message]
    assert len(told) == 1
    assert "needs a group of its own" in told[0]
    listener.onQueryProgress(at(2, 3))
    assert listener.flush(30)
    assert committed(lab, "g") == [3, 0]


def test_group_is_never_taken_back(lab: SyncCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A query with a new checkpoint begins where it likes; the group stays where it is."""
    first = CommitOffsets("g", lab.bootstrap_servers)
    first.onQueryProgress(at(7, 100, 4))
    assert first.flush(30)
    first.onQueryTerminated(ended())
    first.onQueryProgress(at(0, 10, 5, query=OTHER))
    assert first.flush(30)
    assert committed(lab, "g") == [100, 5]
    assert "groups are never taken back" in caplog.text
    first.onQueryProgress(at(1, 101, 5, query=OTHER))
    assert first.flush(30)
    assert committed(lab, "g") == [101, 5]


def test_several_sources_of_a_query_go_to_one_group(lab: SyncCluster) -> None:
    """Of a topic that is read twice, what both have read counts; what is no Kafka is left out."""
    listener = CommitOffsets("g", lab.bootstrap_servers)
    event = progress(
        0,
        source({"orders": {"0": 9, "1": 4}}),
        source({"orders": {"0": 5, "1": 8}, "payments": {"0": 3}}, "KafkaV2[SubscribePattern[.*]]"),
        source({"hub": {"0": 7}}, "EventHubsSource[hub]"),
        source("12", "RateStreamV2[rowsPerSecond=1]"),
        source(None, "KafkaV2[Subscribe[new]]"),
    )
    listener.onQueryProgress(event)
    assert listener.flush(30)
    assert committed(lab, "g", ("orders", 0), ("orders", 1), ("payments", 0)) == [5, 4, 3]


def test_topic_that_is_not_there_does_not_keep_the_others(
    lab: SyncCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A query may read two clusters, and a topic may be deleted while it runs."""
    listener = CommitOffsets("g", lab.bootstrap_servers)
    listener.onQueryProgress(progress(0, source({"orders": {"0": 2}, "elsewhere": {"0": 9}})))
    assert listener.flush(30)
    assert committed(lab, "g", ("orders", 0)) == [2]
    assert "elsewhere-0 is not committed: 3 UNKNOWN_TOPIC_OR_PARTITION" in caplog.text


def test_two_queries_do_not_share_a_group(lab: SyncCluster, caplog: pytest.LogCaptureFixture) -> None:
    """The second is told how to have one of its own: by "{query}" in the name."""
    one = CommitOffsets("g", lab.bootstrap_servers)
    one.onQueryProgress(at(0, 5))
    one.onQueryProgress(at(0, 9, query=OTHER, name="p"))
    assert one.flush(30)
    assert committed(lab, "g") == [5, 0]
    assert f"group g is that of query {QUERY}" in caplog.text

    each = CommitOffsets("spark-{query}", lab.bootstrap_servers)
    each.onQueryProgress(at(0, 5))
    each.onQueryProgress(at(0, 9, query=OTHER, name="p"))
    assert each.flush(30)
    assert (committed(lab, "spark-q"), committed(lab, "spark-p")) == ([5, 0], [9, 0])


def test_only_the_query_that_is_named(lab: SyncCluster) -> None:
    """By name or by id."""
    listener = CommitOffsets("g", lab.bootstrap_servers, query=OTHER)
    listener.onQueryProgress(at(0, 5))
    listener.onQueryProgress(at(0, 6, query=OTHER))
    assert listener.flush(30)
    assert committed(lab, "g") == [6, 0]


_SCRIPT = """
import sys, uuid
sys.path.insert(0, {root!r})
from tests.pipeline.test_commit_offsets import CommitOffsets, at, started
listener = CommitOffsets("g", {bootstrap!r})
listener.onQueryStarted(started())
listener.onQueryProgress(at(0, 42))
"""


def started() -> QueryStartedEvent:
    return QueryStartedEvent(uuid.UUID(QUERY), uuid.UUID(QUERY), "q", "", set())


def test_last_progress_outlives_the_program(lab: SyncCluster) -> None:
    """A program that ends right after its query waits for the commit, and not for a query that goes on."""
    root = str(Path(__file__).parents[2])
    script = _SCRIPT.format(root=root, bootstrap=lab.bootstrap_servers)
    with lab.fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, api="OffsetFetch", count=4):
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert committed(lab, "g") == [42, 0]


def test_what_cannot_be_understood_does_not_reach_the_query(
    lab: SyncCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener that raises would be logged by Spark with every batch."""
    listener = CommitOffsets("g", lab.bootstrap_servers)
    listener.onQueryProgress(progress(0, source('{"orders": {"zero": "no"}}')))
    listener.onQueryProgress(progress(0, source("{")))
    assert listener.flush(30)
    assert "could not be understood" in caplog.text


def test_package_is_found_without_spark() -> None:
    """Parts of it are used where no Spark is, and the listener by those who have it."""
    look = "import sys, kelpie.pipeline; assert 'pyspark' not in sys.modules; assert kelpie.pipeline.__all__"
    subprocess.run([sys.executable, "-c", look], check=True, timeout=60)


def test_settings_are_checked_at_once() -> None:
    """Not when the first batch is done."""
    with pytest.raises(BadSettings, match="No broker is named"):
        CommitOffsets("g")
    with pytest.raises(ValueError, match="must have a name"):
        CommitOffsets("", "localhost:9092")
