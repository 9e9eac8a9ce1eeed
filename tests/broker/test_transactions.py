"""Transactions across brokers: markers that wait for leaders, offsets that wait for markers."""

from typing import Any

import pytest

from kelpie.broker.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.add_offsets_to_txn import AddOffsetsToTxnRequest
from kelpie.wire.api.describe_transactions import DescribeTransactionsRequest
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kelpie.wire.schema import NO_UUID
from tests.broker.clients import committed, coordinator, fetch, list_offset, produced, read, values
from tests.broker.driver import PERSONAS, Cluster
from tests.broker.test_fetch import Producer
from tests.broker.test_topics import drop

LATER = PERSONAS[1:]
GROUP = "billing"
LATEST = -1


def away_from(cluster: Cluster, name: str) -> int:
    """A broker that does not coordinate this transactional id."""
    node = coordinator(cluster, name, kind=1)
    return next(it for it in (1, 2, 3) if it != node)


def stable(cluster: Cluster, partition: TopicPartition) -> int:
    return int(list_offset(cluster, partition, LATEST, isolation_level=1).offset)


def state_of(cluster: Cluster, producer: Producer) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[producer.name])
    return str(cluster.ask(producer.node, request, 0).transaction_states[0].transaction_state)


@pytest.mark.parametrize("persona", ["3.9", "4.3"])
def test_marker_waits_for_a_leader_that_is_away(persona: str) -> None:
    """EndTxn is answered once the decision is written; the marker comes when there is a leader again."""
    cluster = Cluster(persona=persona)
    leader = away_from(cluster, "tx")
    partition = cluster.create(assignment={0: [leader]})
    producer = Producer(cluster, partition)
    producer.send(b"a")
    cluster.lose(leader)
    producer.end(committed=True)
    cluster.advance(5000)
    assert state_of(cluster, producer) == "PrepareCommit"
    cluster.start(leader)
    cluster.advance(100)
    assert state_of(cluster, producer) == "CompleteCommit"
    assert stable(cluster, partition) == 2
    assert values(fetch(cluster, partition, isolation_level=1)) == [b"a"]


@pytest.mark.parametrize("persona", ["3.9", "4.3"])
def test_marker_counts_once_it_is_replicated(persona: str) -> None:
    """A marker that only the leader has may be lost with it: the transaction is not complete before."""
    cluster = Cluster(
        persona=persona,
        settings={"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"},
    )
    leader = away_from(cluster, "tx")
    other = next(it for it in (1, 2, 3) if it not in (leader, coordinator(cluster, "tx", kind=1)))
    partition = cluster.create(assignment={0: [leader, other]})
    producer = Producer(cluster, partition)
    producer.send(b"a")
    cluster.fabric.lag(other)
    producer.end(committed=True)
    cluster.advance(200)
    assert state_of(cluster, producer) == "PrepareCommit"
    cluster.lose(leader)
    assert cluster.leader(partition) == other
    cluster.advance(100)
    assert state_of(cluster, producer) == "CompleteCommit"
    assert stable(cluster, partition) == 2


@pytest.mark.parametrize("persona", LATER)
def test_new_coordinator_finishes_what_the_old_one_began(persona: str) -> None:
    """The decision is in the log; whoever replays it sends the markers."""
    cluster = Cluster(persona=persona)
    place = TopicPartition(TRANSACTIONS_TOPIC, partition_for("tx", 4))
    leader = away_from(cluster, "tx")
    partition = cluster.create(assignment={0: [leader]})
    producer = Producer(cluster, partition)
    producer.send(b"a")
    cluster.lose(leader)
    producer.end(committed=True)
    cluster.lose(producer.node)
    cluster.start(leader)
    cluster.start(producer.node)
    cluster.advance(200)
    assert cluster.leader(place) > 0
    assert stable(cluster, partition) == 2


@pytest.mark.parametrize("persona", LATER)
def test_transaction_that_takes_too_long_is_aborted(persona: str) -> None:
    """The coordinator aborts it after its timeout, so that readers of committed data get on."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    producer = Producer(cluster, partition)
    producer.send(b"a")
    produced(cluster, partition, b"b")
    assert stable(cluster, partition) == 0
    cluster.advance(75_000)
    assert stable(cluster, partition) == 3
    found = fetch(cluster, partition, isolation_level=1)
    assert [it.producer_id for it in found.aborted_transactions] == [producer.id]


def commit_in(cluster: Cluster, producer: Producer, partition: TopicPartition, offset: int, node: int) -> int:
    add = AddOffsetsToTxnRequest(
        transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, group_id=GROUP
    )
    assert cluster.ask(producer.node, add, 3).error_code == ErrorCode.NONE
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=producer.name,
        group_id=GROUP,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=partition.topic, partitions=[part])],
    )
    answer: Any = cluster.ask(node, request, 3)
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("persona", LATER)
@pytest.mark.parametrize("keep", [True, False])
def test_pending_offsets_survive_a_failover(persona: str, keep: bool) -> None:
    """They wait for the marker on the next coordinator too: unstable for some, unseen by others."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    producer = Producer(cluster, partition)
    node = coordinator(cluster, GROUP)
    assert commit_in(cluster, producer, partition, 9, node) == ErrorCode.NONE
    cluster.fabric.stop(node, cluster.now)
    producer.node = coordinator(cluster, producer.name, kind=1)
    after = cluster.leader(TopicPartition(OFFSETS_TOPIC, partition_for(GROUP, 4)))
    assert committed(cluster, GROUP, partition, node=after, version=7) == -1
    unstable = committed(cluster, GROUP, partition, node=after, version=7, stable=True)
    assert unstable == ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer.end(committed=keep)
    cluster.advance(100)
    assert committed(cluster, GROUP, partition, node=after, version=7, stable=True) == (9 if keep else -1)


@pytest.mark.parametrize("persona", LATER)
def test_transactional_offsets_count_when_the_transaction_does(persona: str) -> None:
    """And after a reload of the log it is the same."""
    cluster = Cluster(persona=persona)
    partition = cluster.create()
    producer = Producer(cluster, partition)
    node = coordinator(cluster, GROUP)
    assert commit_in(cluster, producer, partition, 9, node) == ErrorCode.NONE
    producer.end(committed=True)
    assert committed(cluster, GROUP, partition, node=node) == 9
    cluster.fabric.stop(node, cluster.now)
    after = cluster.leader(TopicPartition(OFFSETS_TOPIC, partition_for(GROUP, 4)))
    assert committed(cluster, GROUP, partition, node=after) == 9


@pytest.mark.parametrize("persona", LATER)
def test_wrong_brokers_are_not_transaction_coordinators(persona: str) -> None:
    """16, and an isolated one cannot get producer ids."""
    cluster = Cluster(persona=persona)
    node = coordinator(cluster, "tx", kind=1)
    other = next(it for it in (1, 2, 3) if it != node)
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    assert cluster.ask(other, request, 4).error_code == ErrorCode.NOT_COORDINATOR
    plain = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    ids = [cluster.ask(it, plain, 4).producer_id for it in (1, 2, 3)]
    assert len(set(ids)) == 3
    cluster.fabric.isolate(other, cluster.now)
    assert cluster.ask(other, plain, 4).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_deleted_topic_does_not_hold_a_transaction() -> None:
    """There is nothing left to mark."""
    cluster = Cluster()
    partition = cluster.create()
    other = cluster.create("other")
    producer = Producer(cluster, partition)
    producer.send(b"a")
    cluster.fabric.controller.delete_topic("orders")
    cluster.fabric.publish(cluster.now)
    producer.end(committed=True)
    cluster.advance(100)
    assert state_of(cluster, producer) == "CompleteCommit"
    assert read(cluster, other) == []


@pytest.mark.parametrize("persona", LATER)
def test_coordinators_end_with_the_topic_of_transactions(persona: str) -> None:
    """Without the topic no broker coordinates, and a new topic knows nothing of the transactions before."""
    cluster = Cluster(persona=persona)
    producer = Producer(cluster, cluster.create())
    producer.send(b"a")
    assert cluster.fabric.broker(producer.node).transactions.hosts
    assert drop(cluster, (TRANSACTIONS_TOPIC, NO_UUID), version=5) == [ErrorCode.NONE]
    cluster.advance(1000)
    assert not any(cluster.fabric.broker(node).transactions.hosts for node in (1, 2, 3))
    request = InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=60_000)
    assert cluster.ask(producer.node, request, 4).error_code == ErrorCode.NOT_COORDINATOR
    new = Producer(cluster, producer.partition)
    assert (new.epoch, new.id != producer.id) == (0, True)
