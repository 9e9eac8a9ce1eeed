"""kelpie peek: records as they lie in the log."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from kelpie.cli import main
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab import SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.wire.records import Codec
from tests.client.inhabitants import Inhabitants


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    with SyncCluster(1) as cluster:
        cluster.create_topic("orders", 1, replication=1)
        yield cluster


def with_nodes(address: str, work: Callable[[Inhabitants], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), await Nodes.open(Settings.of(address)) as nodes:
            await work(Inhabitants(nodes))

    asyncio.run(run())


class Peeking:
    def __init__(self, address: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._address, self._capsys = address, capsys
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        status = main(["peek", "-b", self._address, *words])
        self.out, self.err = self._capsys.readouterr()
        return status

    def data(self, *words: str) -> dict[str, Any]:
        self(*words, "--json")
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture
def peek(cluster: SyncCluster, capsys: pytest.CaptureFixture[str]) -> Peeking:
    return Peeking(cluster.bootstrap_servers, capsys)


def test_a_record_is_shown_with_its_batch_and_nothing_drives_the_terminal(
    cluster: SyncCluster, peek: Peeking
) -> None:
    """A value may hold anything; a poison record all the more."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": "gzip"})
    evil = b"\x1b[2J\xff" + b"x" * 1000
    producer.produce("orders", evil, b"k-1", partition=0, headers=[("trace\x07", b"a\nb")], timestamp=1000)
    producer.produce("orders", None, b"k-2", partition=0, timestamp=1000)
    assert producer.flush(30) == 0
    assert peek("orders", "0", "0", "--count", "2") == 0
    assert "Batch 0 to 1 of orders-0: 2 records" in peek.out
    assert "gzip" in peek.out
    assert "\x1b" not in peek.out
    assert 'value: "\\x1b[2J\\xffxxx' in peek.out
    assert "… of 1,005 bytes" in peek.out
    assert 'header trace\\x07: "a\\x0ab"' in peek.out
    assert "value: null" in peek.out
    assert "1970-01-01 00:00:01" in peek.out
    groups = cluster.describe().get("groups", {})
    assert not groups, "looking joins nothing"


def test_an_offset_out_of_range_gets_the_range(cluster: SyncCluster, peek: Peeking) -> None:
    """With status 1: the record is not there."""
    assert peek("orders", "0", "0") == 1
    assert "It is empty; the next record gets 0." in " ".join(peek.out.split())
    with_nodes(cluster.bootstrap_servers, lambda living: living.produce("orders", 0, 10))
    assert peek("orders", "0", "10") == 1
    assert "orders-0 has no offset 10: that is after its end. It holds 0 to 9." in peek.out
    assert peek("orders", "0", "9") == 0


def test_what_compaction_has_removed_names_the_next_record(cluster: SyncCluster, peek: Peeking) -> None:
    """A committed offset may point to such a place, and that is no loss."""
    with_nodes(cluster.bootstrap_servers, lambda living: living.produce("orders", 0, 3))

    def remove_two() -> None:
        log = cluster.twin.fabric.broker(1).replicas[TopicPartition("orders", 0)].log
        del log.segments[0].batches[0]

    with_nodes(cluster.bootstrap_servers, lambda living: living.produce("orders", 0, 2))
    cluster.call(remove_two)
    assert peek("orders", "0", "1") == 1
    assert "The next one is at 3:" in " ".join(peek.out.split())
    assert peek.data("orders", "0", "1")["next"] == 3


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nonesuch", "0", "0"], 3, "There is no topic nonesuch"),
        (["orders", "7", "0"], 3, "There is no partition orders-7; orders has 0 to 0."),
    ],
)
def test_what_is_not_there_is_told(peek: Peeking, words: list[str], status: int, said: str) -> None:
    """And is not made by asking."""
    assert peek(*words) == status
    assert said in " ".join(peek.err.split())


@pytest.mark.real
def test_records_of_real_kafka(
    real_kafka: Callable[..., RealCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    """Transactions with their markers and fates, compression, and a record larger than what is asked for."""
    cluster = real_kafka()
    peek = Peeking(cluster.bootstrap_servers, capsys)
    topic = "peeked"
    with_nodes(cluster.bootstrap_servers, lambda living: living.topic(topic))
    for codec in ("zstd", "lz4", "snappy"):
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec})
        producer.produce(topic, codec.encode() * 50, partition=0)
        assert producer.flush(30) == 0
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(topic, b"y" * 900_000, b"huge", partition=0)
    assert producer.flush(30) == 0
    transactional = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "peek"})
    transactional.init_transactions(60)
    for ending in (transactional.abort_transaction, transactional.commit_transaction):
        transactional.begin_transaction()
        transactional.produce(topic, b"t", partition=0)
        transactional.flush(30)
        ending(60)
    transactional.begin_transaction()
    transactional.produce(topic, b"open", partition=0)
    transactional.flush(30)
    records = peek.data(topic, "0", "0", "--count", "20")["records"]
    assert [record["batch"]["compression"] for record in records[:3]] == [
        Codec.ZSTD.name.lower(),
        Codec.LZ4.name.lower(),
        Codec.SNAPPY.name.lower(),
    ]
    assert records[3]["value"]["bytes"] == 900_000
    told = [(record["transaction"], record["control"]) for record in records[4:]]
    assert told == [
        ("aborted", None),
        (None, "abort"),
        ("committed", None),
        (None, "commit"),
        ("undecided", None),
    ]
    assert peek(topic, "0", "3") == 0
    assert len(peek.out) < 2000, "a huge value is cut"
    transactional.abort_transaction(60)
