"""Timeouts, expiry, loading and leaving."""

import pytest

from kelpie.coordinator.transactions import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_4_3,
    TransactionBehaviour,
    TransactionConfig,
    TransactionOutcome,
)
from kelpie.errors import ErrorCode
from kelpie.wire.transaction_state import TransactionState, decode_value
from tests.coordinator.transactions.driver import START, Driver, partitions
from tests.coordinator.transactions.logs import log_with

BOTH = pytest.mark.parametrize("behaviour", [BEHAVIOUR_2_8, BEHAVIOUR_4_3], ids=["2.8", "4.3"])


@BOTH
def test_a_late_transaction_is_aborted_with_a_higher_epoch(behaviour: TransactionBehaviour) -> None:
    """Readers of committed data wait for every open transaction."""
    driver = Driver(behaviour)
    producer = driver.begin("t", timeout_ms=5000)
    driver.advance(5000)
    assert not driver.writing, "not late yet"
    driver.advance(1000)
    driver.write()
    marker = driver.mark()
    assert (marker.committed, marker.producer_epoch) == (False, producer[1] + 1)
    driver.write()
    assert driver.state() == "CompleteAbort"
    assert driver.errors(driver.add_partitions("t", producer, "a-0")) == {ErrorCode.PRODUCER_FENCED}


def test_kafka_looks_for_late_transactions_now_and_then() -> None:
    """transaction.abort.timed.out.transaction.cleanup.interval.ms: 10 s unless set."""
    driver = Driver(config=TransactionConfig())
    driver.begin("t", timeout_ms=12_000)
    assert driver.timers == {("timeout", "t"): START + 20_000}


def test_an_end_takes_the_timer_away() -> None:
    """The next transaction has a time of its own."""
    driver = Driver()
    driver.end("t", driver.begin("t"))
    driver.settle()
    assert not driver.timers


def test_each_join_keeps_the_start_of_the_transaction() -> None:
    """The time limit is for the whole transaction, not for its last step."""
    driver = Driver()
    producer = driver.begin("t", timeout_ms=5000)
    driver.advance(4000)
    driver.verify_or_add("t", producer, "b-0")
    driver.write()
    driver.advance(2000)
    assert driver.writing


def test_a_late_transaction_that_is_just_ending_is_left_alone() -> None:
    """The client's own end is being written; the timer looks again later."""
    driver = Driver()
    producer = driver.begin("t", timeout_ms=5000)
    driver.end("t", producer)
    driver.advance(6000)
    assert len(driver.writing) == 1
    driver.fail()
    driver.advance(1000)
    driver.write()
    assert driver.state() == "PrepareAbort"


@BOTH
def test_an_abort_that_cannot_be_written_is_tried_at_the_next_look(behaviour: TransactionBehaviour) -> None:
    """And the epoch rises by one, not by one for each attempt."""
    driver = Driver(behaviour)
    driver.begin("t", timeout_ms=5000)
    driver.advance(6000)
    driver.fail()
    driver.advance(1000)
    driver.write()
    assert driver.mark().producer_epoch == 1


def test_after_a_timeout_a_client_of_version_2_takes_its_abort_for_done() -> None:
    """Its epoch is the one before: Kafka cannot tell it from the retry of an abort (KIP-890)."""
    driver = Driver()
    producer = driver.begin("t", timeout_ms=5000)
    driver.advance(6000)
    driver.settle()
    assert driver.errors(driver.end("t", producer, committed=True)) == {ErrorCode.INVALID_TXN_STATE}
    assert driver.producer(driver.end("t", producer, committed=False)) == (1000, 1)


def test_open_transactions_are_watched_again_after_a_load() -> None:
    """The start is in the log, so a move of the coordinator gives no extra time."""
    driver = Driver()
    driver.begin("t", timeout_ms=5000)
    driver.now += 20_000
    driver.reload()
    driver.advance(1000)
    driver.write()
    assert driver.state() == "PrepareAbort"


def test_two_phase_transactions_are_never_late() -> None:
    """KIP-939: the other coordinator decides, and takes as long as it takes."""
    driver = Driver(config=TransactionConfig(max_timeout_ms=2**31 - 1))
    driver.begin("t", timeout_ms=2**31 - 1)
    assert not driver.timers


def test_a_timer_of_a_forgotten_id_is_void() -> None:
    """It was set before the id expired."""
    driver = Driver()
    assert driver.shard.timer(("timeout", "gone"), driver.now) == TransactionOutcome()
    with pytest.raises(ValueError, match="no timer of this shard"):
        driver.shard.timer("session", driver.now)


@BOTH
def test_idle_ids_expire(behaviour: TransactionBehaviour) -> None:
    """transactional.id.expiration.ms: else every id ever used would stay for ever."""
    driver = Driver(behaviour, TransactionConfig(expiration_ms=1000, abort_interval_ms=1000))
    driver.producer(driver.init_producer_id("idle"))
    driver.begin("open")
    driver.now += 999
    assert driver.shard.expire(driver.now) == TransactionOutcome()
    driver.now += 1
    driver.carry_out(driver.shard.expire(driver.now))
    assert driver.errors(driver.init_producer_id("idle")) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    driver.write()
    assert set(driver.shard.transactions) == {"open"}
    assert driver.log[-1].value is None


def test_an_expiry_that_cannot_be_written_did_not_happen() -> None:
    """The id goes on as if nothing had been."""
    driver = Driver(config=TransactionConfig(expiration_ms=1000))
    driver.producer(driver.init_producer_id("t"))
    driver.now += 1000
    driver.carry_out(driver.shard.expire(driver.now))
    driver.fail()
    assert driver.producer(driver.init_producer_id("t")) == (1000, 1)


def test_records_are_those_of_the_release() -> None:
    """Value version 1 came with KIP-890; older brokers cannot read it."""
    for behaviour, version in ((BEHAVIOUR_2_8, 0), (BEHAVIOUR_4_3, 1)):
        driver = Driver(behaviour)
        driver.begin("t", "a-0", "b-2")
        value = driver.log[-1].value
        assert value is not None
        assert value[:2] == version.to_bytes(2, "big")
        decoded = decode_value(value)
        assert decoded is not None
        assert decoded.transaction_status == TransactionState.ONGOING
        assert [(each.topic, each.partition_ids) for each in decoded.transaction_partitions or ()] == [
            ("a", [0]),
            ("b", [2]),
        ]


def test_an_empty_state_has_no_partitions_in_its_record() -> None:
    """Kafka writes null there, not an empty list."""
    driver = Driver()
    driver.producer(driver.init_producer_id("t"))
    decoded = decode_value(driver.log[-1].value)
    assert decoded is not None
    assert decoded.transaction_partitions is None


def test_values_of_both_versions_can_be_loaded() -> None:
    """A log outlives an upgrade."""
    joined = frozenset(partitions("a-0"))
    for version in (0, 1):
        log = log_with(
            "t",
            producer_id=7,
            producer_epoch=2,
            state=TransactionState.ONGOING,
            joined=joined,
            value_version=version,
        )
        driver = Driver(log=log)
        assert driver.shard.transactions["t"].facts.partitions == joined
        assert driver.producer(driver.end("t", (7, 2))) == (7, 3)
