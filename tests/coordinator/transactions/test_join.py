"""AddPartitionsToTxn, AddOffsetsToTxn and the produce path: what is in a transaction."""

import pytest

from kelpie.coordinator.transactions import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_4_3,
    TransactionBehaviour,
    add_partitions_result,
)
from kelpie.errors import ErrorCode
from kelpie.wire.api.add_partitions_to_txn import AddPartitionsToTxnResponse
from tests.coordinator.transactions.driver import OFFSETS, Driver, partitions

BOTH = pytest.mark.parametrize("behaviour", [BEHAVIOUR_2_8, BEHAVIOUR_4_3], ids=["2.8", "4.3"])


def test_the_first_partition_opens_the_transaction() -> None:
    """There is no request that begins a transaction; the first join does."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    driver.now += 5
    to = driver.add_partitions("t", producer, "a-0", "b-1")
    driver.write()
    assert driver.errors(to) == {ErrorCode.NONE}
    described = driver.shard.describe("t")
    assert (described.transaction_state, described.transaction_start_time_ms) == ("Ongoing", driver.now)
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("a", [0]), ("b", [1])]


def test_each_partition_has_its_own_result() -> None:
    """Clients look for every partition they asked for."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    to = driver.add_partitions("t", producer, "a-0", "b-1", "a-3")
    driver.write()
    response = driver.answers[to]
    assert isinstance(response, AddPartitionsToTxnResponse)
    found = [
        (topic.name, result.partition_index)
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]
    assert found == [("a", 0), ("a", 3), ("b", 1)]


def test_partitions_that_are_in_already_cost_no_record() -> None:
    """A producer asks again when an answer was lost, and a leader for each batch."""
    driver = Driver()
    producer = driver.begin("t", "a-0", "a-1")
    written = len(driver.log)
    to = driver.verify_or_add("t", producer, "a-1")
    assert driver.errors(to) == {ErrorCode.NONE}
    assert len(driver.log) == written


def test_a_groups_offsets_join_as_a_partition() -> None:
    """The offsets are committed by a marker like any other record."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    to = driver.add_offsets("t", producer)
    driver.write()
    assert driver.errors(to) == {ErrorCode.NONE}
    assert driver.shard.transactions["t"].facts.partitions == {OFFSETS}


@pytest.mark.parametrize(
    ("version", "error"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_a_wrong_epoch_is_fenced(version: int, error: ErrorCode) -> None:
    """KIP-588 gave it a name of its own; older clients know another."""
    driver = Driver()
    producer_id, epoch = driver.producer(driver.init_producer_id("t"))
    for wrong in (epoch - 1, epoch + 1):
        assert driver.errors(driver.add_partitions("t", (producer_id, wrong), "a-0", version=version)) == {
            error
        }
        assert driver.errors(driver.add_offsets("t", (producer_id, wrong), version=version)) == {error}


def test_a_leader_is_told_fenced_whatever_the_client_knows() -> None:
    """Brokers translate for their clients."""
    driver = Driver()
    producer_id, epoch = driver.producer(driver.init_producer_id("t"))
    for verify_only in (True, False):
        to = driver.verify_or_add("t", (producer_id, epoch + 1), "a-0", verify_only=verify_only)
        assert driver.errors(to) == {ErrorCode.PRODUCER_FENCED}


def test_an_unknown_id_or_a_foreign_producer_is_no_mapping() -> None:
    """The transactional id does not belong to this producer id."""
    driver = Driver()
    _, epoch = driver.producer(driver.init_producer_id("t"))
    for transactional_id, producer_id in (("t", 5), ("other", 1000)):
        producer = (producer_id, epoch)
        for to in (
            driver.add_partitions(transactional_id, producer, "a-0"),
            driver.add_offsets(transactional_id, producer),
            driver.verify_or_add(transactional_id, producer, "a-0"),
            driver.verify_or_add(transactional_id, producer, "a-0", verify_only=True),
        ):
            assert driver.errors(to) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_an_empty_transactional_id_is_invalid() -> None:
    """As InitProducerId has it."""
    driver = Driver()
    for to in (
        driver.add_partitions("", (1, 0), "a-0"),
        driver.add_offsets("", (1, 0)),
        driver.verify_or_add("", (1, 0), "a-0"),
        driver.verify_or_add("", (1, 0), "a-0", verify_only=True),
    ):
        assert driver.errors(to) == {ErrorCode.INVALID_REQUEST}


@BOTH
def test_nothing_joins_while_the_last_transaction_ends(behaviour: TransactionBehaviour) -> None:
    """The markers would close what has only just been opened."""
    driver = Driver(behaviour)
    producer = driver.begin("t", "a-0")
    version = 5 if behaviour.raises_epoch else 3
    driver.end("t", producer, version=version)
    driver.write()
    producer_id, epoch = producer
    held = (producer_id, epoch + 1) if behaviour.raises_epoch else producer
    for to in (
        driver.add_partitions("t", held, "a-0"),
        driver.verify_or_add("t", held, "a-0", verify_only=True),
    ):
        assert driver.errors(to) == {ErrorCode.CONCURRENT_TRANSACTIONS}


def test_kafka_4_lets_a_fenced_producer_wait_while_a_step_is_written() -> None:
    """KAFKA-18660: a producer that is about to get a new id must not be told that it is fenced."""
    for behaviour, error in (
        (BEHAVIOUR_4_3, ErrorCode.CONCURRENT_TRANSACTIONS),
        (BEHAVIOUR_2_8, ErrorCode.PRODUCER_FENCED),
    ):
        driver = Driver(behaviour)
        producer_id, epoch = driver.begin("t", "a-0")
        driver.add_partitions("t", (producer_id, epoch), "b-0")
        assert driver.errors(driver.add_partitions("t", (producer_id, epoch + 1), "c-0")) == {error}


def test_verification_tells_partitions_in_from_partitions_out() -> None:
    """KIP-890: a hanging transaction begins with an append that no transaction knows of."""
    driver = Driver()
    producer = driver.begin("t", "a-0")
    to = driver.verify_or_add("t", producer, "a-0", "a-1", verify_only=True)
    here, missing = partitions("a-0", "a-1")
    assert driver.answers[to] == {here: ErrorCode.NONE, missing: ErrorCode.TRANSACTION_ABORTABLE}
    assert driver.shard.transactions["t"].facts.partitions == {here}


def test_a_pending_join_is_not_verified() -> None:
    """It may still fail to be written."""
    driver = Driver()
    producer = driver.begin("t", "a-0")
    driver.verify_or_add("t", producer, "a-1")
    to = driver.verify_or_add("t", producer, "a-1", verify_only=True)
    assert driver.errors(to) == {ErrorCode.TRANSACTION_ABORTABLE}
    driver.write()
    assert driver.errors(driver.verify_or_add("t", producer, "a-1", verify_only=True)) == {ErrorCode.NONE}


def test_a_join_that_cannot_be_written_did_not_happen() -> None:
    """No marker may go to a partition that never joined."""
    driver = Driver()
    producer = driver.begin("t", "a-0")
    to = driver.verify_or_add("t", producer, "a-1")
    driver.fail()
    assert driver.errors(to) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    driver.end("t", producer)
    driver.write()
    assert driver.mark().partitions == tuple(partitions("a-0"))


def test_a_result_of_version_4_names_its_transaction() -> None:
    """A broker asks for many transactions in one request."""
    result = add_partitions_result("t", dict.fromkeys(partitions("a-0", "b-1", "a-2"), ErrorCode.NONE))
    assert result.transactional_id == "t"
    assert [topic.name for topic in result.topic_results] == ["a", "b"]
    assert [each.partition_index for each in result.topic_results[0].results_by_partition] == [0, 2]
