"""Fetch: how long it waits, how much it brings, and what it may not see."""

import pytest

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnRequest
from kelpie.wire.api.end_txn import EndTxnRequest
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.records import Codec, Record, parse_header, read_batches, write_batch
from kelpie.wire.structs import NamedTopicPartitions
from tests.broker.clients import (
    LEADER,
    batch,
    coordinator,
    fetch,
    fetch_request,
    part,
    produced,
    read,
    values,
)
from tests.broker.driver import PARKED, PERSONAS, START, Cluster


@pytest.mark.parametrize("persona", PERSONAS)
def test_empty_partition_waits_and_a_record_wakes_it(persona: str) -> None:
    """The long poll: an answer as soon as there is something."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    version = 1 if persona == "0.9" else 12
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=500), version)
    assert sent.waits
    produced(cluster, partition, b"a")
    assert values(part(sent.answer)) == [b"a"]


@pytest.mark.parametrize("persona", PERSONAS)
def test_its_time_is_over(persona: str) -> None:
    """max_wait_ms: an empty answer then, and not before."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=500), 1 if persona == "0.9" else 12)
    cluster.advance(499)
    assert sent.waits
    cluster.advance(1)
    found = part(sent.answer)
    assert (found.error_code, found.high_watermark, found.records) == (0, 0, b"")


def test_only_committed_records_wake_it() -> None:
    """What followers lack is not for consumers, and does not end the wait."""
    cluster = Cluster()
    partition = cluster.create()
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=5000), 12)
    cluster.fabric.lag(3)
    produced(cluster, partition, b"a", acks=LEADER)
    assert sent.waits
    cluster.fabric.catch_up(3, None, cluster.now)
    assert values(part(sent.answer)) == [b"a"]


def test_least_size_is_waited_for_across_partitions() -> None:
    """min_bytes counts the whole answer."""
    cluster = Cluster()
    one, other = cluster.create("one"), cluster.create("other")
    size = len(batch(b"x" * 100))
    request = fetch_request((one, 0), (other, 0), max_wait_ms=5000, min_bytes=2 * size)
    sent = cluster.send(1, request, 12)
    produced(cluster, one, b"x" * 100)
    assert sent.waits
    produced(cluster, other, b"x" * 100)
    assert [len(it.partitions[0].records) for it in sent.answer.responses] == [size, size]


def test_more_than_the_answer_may_hold_is_not_waited_for() -> None:
    """min_bytes above max_bytes counts as max_bytes: else every such request would run into its deadline."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"x" * 100)
    assert fetch(cluster, partition, max_wait_ms=5000, min_bytes=1000, max_bytes=50) is not PARKED


@pytest.mark.parametrize("version", [3, 4, 12])
def test_first_batch_comes_even_if_it_is_too_large(version: int) -> None:
    """Since version 3 a consumer always gets on: one batch at least, and no second that does not fit."""
    cluster = Cluster(persona="3.9")
    partition = cluster.create()
    for _ in range(2):
        produced(cluster, partition, b"x" * 100)
    assert len(read(cluster, partition, version=version, partition_max_bytes=10)) == 1
    assert len(read(cluster, partition, version=version, max_bytes=10)) == 1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_consumer_gets_a_piece_of_what_is_too_large(version: int) -> None:
    """By the piece it notices that its buffer is too small."""
    cluster = Cluster(persona="2.8")
    partition = cluster.create()
    produced(cluster, partition, b"x" * 100)
    found = fetch(cluster, partition, version=version, partition_max_bytes=20)
    assert values(found) == []
    assert len(found.records) <= 20


def test_only_the_first_partition_may_exceed_the_limit() -> None:
    """The limit of the whole answer: whoever comes later gets nothing, and its turn next time."""
    cluster = Cluster()
    one, other = cluster.create("one"), cluster.create("other")
    for partition in (one, other):
        produced(cluster, partition, b"x" * 100)
    answer = cluster.ask(1, fetch_request((one, 0), (other, 0), max_bytes=10), 12)
    assert [len(values(it.partitions[0])) for it in answer.responses] == [1, 0]


@pytest.mark.parametrize("persona", PERSONAS)
@pytest.mark.parametrize("offset", [-1, 3])
def test_offset_out_of_range(persona: str, offset: int) -> None:
    """Beyond the end or before the beginning, at once, and with nothing but the error."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b")
    found = fetch(cluster, partition, offset, max_wait_ms=5000)
    assert (found.error_code, found.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert fetch(cluster, partition, 2).error_code == ErrorCode.NONE


def test_end_of_the_log_is_no_error_though_nobody_may_read_there() -> None:
    """Between high watermark and end there is nothing yet, but a reader from before may stand there."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.lag(3)
    produced(cluster, partition, b"a", b"b", acks=LEADER)
    found = fetch(cluster, partition, 1)
    assert (found.error_code, found.high_watermark, found.records) == (0, 0, b"")


def test_fetch_in_the_middle_of_a_batch_brings_the_batch() -> None:
    """Batches are opaque; clients skip what they did not ask for."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b", b"c")
    found = fetch(cluster, partition, 2)
    assert parse_header(found.records).base_offset == 0
    assert values(found) == [b"a", b"b", b"c"]


def test_epochs_are_fenced() -> None:
    """KIP-320: an older epoch than the leader's is fenced, a newer one not known here yet."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.lose(1)
    assert fetch(cluster, partition, epoch=1).error_code == ErrorCode.NONE
    assert fetch(cluster, partition, epoch=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetch(cluster, partition, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_version_16_names_the_leader_and_its_address() -> None:
    """KIP-951: a consumer at the wrong broker need not ask for metadata."""
    cluster = Cluster()
    partition = cluster.create()
    request = by_id(cluster, partition)
    answer = cluster.ask(2, request, 16)
    found = part(answer)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 0)
    assert [(it.node_id, it.host, it.port) for it in answer.node_endpoints] == [(1, "host1", 9091)]
    assert part(cluster.ask(2, request, 15)).current_leader is None


def by_id(cluster: Cluster, partition: TopicPartition, topic_id: bytes | None = None) -> FetchRequest:
    asked = FetchPartition(partition=partition.partition, fetch_offset=0, partition_max_bytes=1 << 20)
    found = topic_id or cluster.topic_id(partition.topic)
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic_id=found, partitions=[asked])])


def test_topics_go_by_id_since_version_13() -> None:
    """Unknown ids are errors of their partitions, and the others are read."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a")
    request = by_id(cluster, partition)
    request.topics += by_id(cluster, partition, b"\7" * 16).topics
    answer = cluster.ask(1, request, 13)
    assert [(it.topic_id, it.partitions[0].error_code) for it in answer.responses] == [
        (cluster.topic_id("orders"), 0),
        (b"\7" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_divergence_is_told_by_epoch() -> None:
    """Version 12: a reader whose last epoch ended earlier hears where, and gets no records."""
    cluster = Cluster()
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b")
    cluster.lose(1)
    produced(cluster, partition, b"c")
    found = fetch(cluster, partition, 5, last_fetched_epoch=0)
    assert (found.error_code, found.records) == (0, b"")
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 2)
    assert values(fetch(cluster, partition, 2, last_fetched_epoch=0)) == [b"c"]
    assert fetch(cluster, partition, 0, last_fetched_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_old_versions_get_old_messages(version: int, magic: int) -> None:
    """Magic 0 up to version 1, magic 1 up to 3, and the batches as they are from 4 on."""
    cluster = Cluster(persona="2.8")
    partition = cluster.create()
    produced(cluster, partition, b"a", b"b")
    found = fetch(cluster, partition, version=version)
    assert {it.header.magic for it in read_batches(found.records)} == {magic}
    assert values(found) == [b"a", b"b"]


def test_zstd_is_not_for_old_clients() -> None:
    """It cannot be converted for those before zstd, and they are told so."""
    cluster = Cluster(persona="2.8")
    partition = cluster.create()
    records = write_batch([Record(0, START, key=None, value=b"a" * 99)], codec=Codec.ZSTD)
    produced(cluster, partition, records=records)
    assert fetch(cluster, partition, version=3).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert values(fetch(cluster, partition, version=10)) == [b"a" * 99]


def test_waiting_fetch_hears_when_the_lead_moves() -> None:
    """Else a consumer would sit with a broker that never gets anything again."""
    cluster = Cluster()
    partition = cluster.create()
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=50_000), 12)
    cluster.fabric.stop(2, cluster.now)
    assert sent.waits, "another broker is no news"
    cluster.fabric.shrink_isr(partition, [3], cluster.now)
    assert part(sent.answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class Producer:
    """A transactional producer that has joined the partition."""

    def __init__(self, cluster: Cluster, partition: TopicPartition, name: str = "tx") -> None:
        self.cluster, self.partition, self.name = cluster, partition, name
        self.node = coordinator(cluster, name, kind=1)
        answer = cluster.ask(
            self.node, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4
        )
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def send(self, *sent: bytes) -> None:
        asked = NamedTopicPartitions(name=self.partition.topic, partitions=[self.partition.partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[asked],
        )
        answer = self.cluster.ask(self.node, request, 3)
        assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        records = batch(*sent, timestamp=self.cluster.now, producer=(self.id, self.epoch, self.sequence))
        produced(self.cluster, self.partition, records=records, transactional_id=self.name)
        self.sequence += len(sent)

    def end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        assert self.cluster.ask(self.node, request, 3).error_code == ErrorCode.NONE


@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_isolation_levels(persona: str) -> None:
    """read_committed ends at the first open transaction; aborted ones are listed for the client to drop."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    producer = Producer(cluster, partition)
    producer.send(b"a")
    found = fetch(cluster, partition, isolation_level=1)
    assert (found.last_stable_offset, found.high_watermark, values(found)) == (0, 1, [])
    assert values(fetch(cluster, partition)) == [b"a"]
    producer.end(committed=False)
    found = fetch(cluster, partition, isolation_level=1)
    assert (found.last_stable_offset, values(found)) == (2, [b"a"])
    assert [(it.producer_id, it.first_offset) for it in found.aborted_transactions] == [(producer.id, 0)]
    assert fetch(cluster, partition).aborted_transactions is None
    producer.send(b"b")
    producer.end(committed=True)
    found = fetch(cluster, partition, 2, isolation_level=1)
    assert (values(found), found.aborted_transactions) == ([b"b"], [])


def test_end_of_a_transaction_wakes_readers_of_committed_data() -> None:
    """The marker moves the last stable offset, and that is what they wait for."""
    cluster = Cluster()
    partition = cluster.create()
    producer = Producer(cluster, partition)
    producer.send(b"a")
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=5000, isolation_level=1), 12)
    assert sent.waits
    producer.end(committed=True)
    assert values(part(sent.answer)) == [b"a"]


def test_wait_ends_with_the_broker() -> None:
    """A killed broker answers nobody; its timers are gone with it."""
    cluster = Cluster()
    partition = cluster.create()
    sent = cluster.send(1, fetch_request((partition, 0), max_wait_ms=500), 12)
    cluster.lose(1)
    cluster.advance(10_000)
    assert sent.waits
