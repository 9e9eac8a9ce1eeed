"""InitProducerId: who gets which producer id and epoch, and who is shut out."""

import pytest

from kelpie.coordinator.transactions import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_4_3,
    TransactionBehaviour,
    TransactionConfig,
)
from kelpie.errors import ErrorCode
from tests.coordinator.transactions.driver import Driver
from tests.coordinator.transactions.logs import log_with

BOTH = pytest.mark.parametrize("behaviour", [BEHAVIOUR_2_8, BEHAVIOUR_4_3], ids=["2.8", "4.3"])


def test_a_new_transactional_id_gets_epoch_zero() -> None:
    """The first producer of an id has nobody to fence."""
    driver = Driver()
    assert driver.producer(driver.init_producer_id("t")) == (1000, 0)
    assert driver.state() == "Empty"


def test_the_answer_waits_for_the_log() -> None:
    """An epoch that is told but not written could be given out twice."""
    driver = Driver()
    to = driver.init_producer_id("t")
    assert to not in driver.answers
    driver.write()
    assert driver.errors(to) == {ErrorCode.NONE}


def test_a_second_producer_raises_the_epoch() -> None:
    """That is how the first one, a zombie perhaps, is fenced."""
    driver = Driver()
    driver.producer(driver.init_producer_id("t"))
    assert driver.producer(driver.init_producer_id("t")) == (1000, 1)


def test_two_at_once_make_the_second_wait() -> None:
    """While an epoch is being written, the next one is not known."""
    driver = Driver()
    driver.init_producer_id("t")
    assert driver.errors(driver.init_producer_id("t")) == {ErrorCode.CONCURRENT_TRANSACTIONS}


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * 60_000 + 1])
def test_a_timeout_beyond_the_brokers_maximum_is_refused(timeout_ms: int) -> None:
    """transaction.max.timeout.ms protects readers of committed data from waiting for ever."""
    driver = Driver(config=TransactionConfig())
    to = driver.init_producer_id("t", timeout_ms=timeout_ms)
    assert driver.errors(to) == {ErrorCode.INVALID_TRANSACTION_TIMEOUT}
    assert not driver.shard.transactions


def test_an_empty_transactional_id_is_no_id() -> None:
    """Kafka tells it from null, which asks for a producer id alone."""
    driver = Driver()
    assert driver.errors(driver.init_producer_id("")) == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("producer", [(5, -1), (-1, 5)])
def test_an_id_without_epoch_is_refused(producer: tuple[int, int]) -> None:
    """KIP-360: a producer names both or none."""
    driver = Driver()
    assert driver.errors(driver.init_producer_id("t", producer=producer)) == {ErrorCode.INVALID_REQUEST}


def test_a_producer_raises_its_own_epoch() -> None:
    """KIP-360: after an error a producer goes on, if nobody has taken its place."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    assert driver.producer(driver.init_producer_id("t", producer=producer)) == (1000, 1)


def test_a_raise_that_is_repeated_is_answered_the_same() -> None:
    """The first answer may have been lost; the producer must not fence itself."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    for _ in range(2):
        assert driver.producer(driver.init_producer_id("t", producer=producer)) == (1000, 1)


def test_a_repeated_raise_is_not_known_after_a_move() -> None:
    """Kafka does not write the last epoch, so the next coordinator takes a retry for a zombie."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    driver.producer(driver.init_producer_id("t", producer=producer))
    driver.reload()
    assert driver.errors(driver.init_producer_id("t", producer=producer)) == {ErrorCode.PRODUCER_FENCED}


def test_a_zombie_cannot_raise_its_epoch() -> None:
    """Somebody else has called InitProducerId meanwhile."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    driver.producer(driver.init_producer_id("t"))
    to = driver.init_producer_id("t", producer=producer)
    assert driver.errors(to) == {ErrorCode.PRODUCER_FENCED}


def test_a_zombie_with_an_old_client_is_told_its_epoch_is_invalid() -> None:
    """Clients before KIP-588 (InitProducerId v4) do not know PRODUCER_FENCED."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    driver.producer(driver.init_producer_id("t"))
    to = driver.init_producer_id("t", producer=producer, version=3)
    assert driver.errors(to) == {ErrorCode.INVALID_PRODUCER_EPOCH}


def test_a_foreign_producer_id_is_fenced() -> None:
    """The id belonged to another transactional id, or to a life before expiry."""
    driver = Driver()
    driver.producer(driver.init_producer_id("t"))
    assert driver.errors(driver.init_producer_id("t", producer=(5, 0))) == {ErrorCode.PRODUCER_FENCED}


def test_a_forgotten_producer_gets_a_new_id() -> None:
    """The coordinator has expired the id: nobody else can hold it, so the producer may go on."""
    driver = Driver()
    assert driver.producer(driver.init_producer_id("t", producer=(5, 3))) == (1000, 0)


@BOTH
def test_an_open_transaction_is_aborted_first(behaviour: TransactionBehaviour) -> None:
    """The new producer must not read its predecessor's half-written data as its own."""
    driver = Driver(behaviour)
    driver.begin("t")
    to = driver.init_producer_id("t")
    assert to not in driver.answers
    driver.write()
    assert driver.errors(to) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    assert driver.state() == "PrepareAbort"
    again = driver.init_producer_id("t")
    assert driver.errors(again) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    marker = driver.mark()
    assert (marker.committed, marker.producer_epoch) == (False, 1)
    driver.write()
    assert driver.state() == "CompleteAbort"
    assert driver.producer(driver.init_producer_id("t")) == (1000, 2)


def test_a_fence_that_cannot_be_written_still_fences_before_version_2() -> None:
    """Kafka raises the epoch in memory at once; the next attempt does not raise it again."""
    driver = Driver(BEHAVIOUR_2_8)
    producer = driver.begin("t")
    to = driver.init_producer_id("t")
    driver.fail()
    assert driver.errors(to) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    zombie = driver.end("t", producer, version=3)
    assert driver.errors(zombie) == {ErrorCode.PRODUCER_FENCED}
    driver.init_producer_id("t")
    driver.settle()
    assert driver.producer(driver.init_producer_id("t")) == (1000, 2)


def test_a_fence_that_cannot_be_written_leaves_version_2_as_it_was() -> None:
    """With KIP-890 the epoch is raised by the prepared abort itself."""
    driver = Driver()
    producer = driver.begin("t")
    driver.init_producer_id("t")
    driver.fail()
    assert driver.state() == "Ongoing"
    assert driver.producer(driver.end("t", producer)) == (1000, 1)


def test_exhausted_epochs_bring_a_new_producer_id() -> None:
    """An epoch is a signed 16-bit number, and its last value is kept to fence with."""
    driver = Driver(log=log_with("t", producer_id=7, producer_epoch=32766))
    assert driver.producer(driver.init_producer_id("t")) == (1000, 0)


def test_a_producer_whose_epochs_are_exhausted_may_repeat_its_raise() -> None:
    """It still names the previous producer id, because the answer was lost."""
    driver = Driver(log=log_with("t", producer_id=7, producer_epoch=32766))
    for _ in range(2):
        assert driver.producer(driver.init_producer_id("t", producer=(7, 32766))) == (1000, 0)
    assert driver.errors(driver.init_producer_id("t", producer=(7, 32765))) == {ErrorCode.PRODUCER_FENCED}


def test_a_wrong_epoch_of_an_exhausted_producer_is_a_server_error() -> None:
    """Kafka's own assertion fails before it compares the epochs."""
    driver = Driver(log=log_with("t", producer_id=7, producer_epoch=32766))
    to = driver.init_producer_id("t", producer=(7, 3))
    assert driver.errors(to) == {ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_is_answered_as_the_coordinators_failure(error: ErrorCode, answer: ErrorCode) -> None:
    """The client knows nothing of the log; it is told whether to ask again, here or elsewhere."""
    driver = Driver()
    to = driver.init_producer_id("t")
    driver.fail(error)
    assert driver.errors(to) == {answer}
    assert driver.producer(driver.init_producer_id("t")) == (1000, 0)
