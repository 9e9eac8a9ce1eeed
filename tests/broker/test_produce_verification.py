"""Records enter a transaction only if its coordinator knows of it (KIP-890)."""

import pytest

from kelpie.broker.image import TRANSACTIONS_TOPIC
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.end_txn import EndTxnRequest
from tests.broker.clients import batch, coordinator, fetch, produce, values
from tests.broker.driver import Cluster
from tests.broker.test_fetch import Producer


def send(producer: Producer, value: bytes, version: int, *, named: bool = True, sequence: int = 0) -> int:
    """Records without AddPartitionsToTxn before them."""
    cluster = producer.cluster
    records = batch(value, timestamp=cluster.now, producer=(producer.id, producer.epoch, sequence))
    name = producer.name if named else None
    answer = produce(cluster, producer.partition, records=records, transactional_id=name, version=version)
    return int(answer.error_code)


@pytest.mark.parametrize(
    ("persona", "version", "code"),
    [
        ("2.8", 9, ErrorCode.NONE),
        ("3.9", 9, ErrorCode.INVALID_TXN_STATE),
        ("3.9", 11, ErrorCode.TRANSACTION_ABORTABLE),
        ("4.3", 9, ErrorCode.INVALID_TXN_STATE),
        ("4.3", 11, ErrorCode.TRANSACTION_ABORTABLE),
        ("4.3", 12, ErrorCode.NONE),
    ],
)
def test_partition_that_was_not_added(persona: str, version: int, code: ErrorCode) -> None:
    """Up to 3.5 such records hung for ever; later they are refused, and v12 adds the partition itself."""
    cluster = Cluster(persona=persona)
    producer = Producer(cluster, cluster.create())

    assert send(producer, b"a", version) == code


@pytest.mark.parametrize(("persona", "code"), [("2.8", 0), ("4.3", ErrorCode.INVALID_TXN_STATE)])
def test_transactional_records_of_a_request_without_a_name(persona: str, code: int) -> None:
    """Nobody can be asked about them."""
    cluster = Cluster(persona=persona)
    producer = Producer(cluster, cluster.create())

    assert send(producer, b"a", 9, named=False) == code


def test_transaction_ends_with_a_higher_epoch() -> None:
    """transaction.version 2: no AddPartitionsToTxn, and each transaction has an epoch of its own."""
    cluster = Cluster()
    partition = cluster.create()
    producer = Producer(cluster, partition)
    for value in (b"a", b"b"):
        assert send(producer, value, 12) == ErrorCode.NONE
        end = EndTxnRequest(
            transactional_id="tx", producer_id=producer.id, producer_epoch=producer.epoch, committed=True
        )
        answer = cluster.ask(producer.node, end, 5)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, producer.epoch + 1)
        stale, producer.epoch = producer.epoch, answer.producer_epoch

    assert values(fetch(cluster, partition, isolation_level=1)) == [b"a", b"b"]
    producer.epoch = stale
    assert send(producer, b"c", 12) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producer_tries_again_while_its_coordinator_is_away() -> None:
    """NOT_ENOUGH_REPLICAS: what producers of every age try again after."""
    cluster = Cluster()
    node = coordinator(cluster, "tx", kind=1)
    other = next(it for it in (1, 2, 3) if it != node)
    producer = Producer(cluster, cluster.create(assignment={0: [other]}))
    place = TopicPartition(TRANSACTIONS_TOPIC, partition_for("tx", 4))
    cluster.fabric.make_leaderless(place, cluster.now)

    assert send(producer, b"a", 12) == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.fabric.elect(place, cluster.now, unclean=False)
    assert send(producer, b"a", 12) == ErrorCode.NONE


@pytest.mark.parametrize(("persona", "levels"), [("3.9", {}), ("4.3", {"transaction.version": 2})])
def test_clients_are_told_of_it(persona: str, levels: dict[str, int]) -> None:
    """They choose by the feature. Up to v3 a lowest level of 0 is not told (KAFKA-17011)."""
    cluster = Cluster(persona=persona)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    old, new = cluster.ask(1, request, 3), cluster.ask(1, request, 4)

    for answer in (old, new):
        finalized = {it.name: it.max_version_level for it in answer.finalized_features}
        assert {name: level for name, level in finalized.items() if name == "transaction.version"} == levels
    assert old.supported_features == []
    assert ("transaction.version" in {it.name for it in new.supported_features}) == bool(levels)
