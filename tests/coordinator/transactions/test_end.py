"""EndTxn, markers and completion: a transaction ends once, and one way."""

import pytest

from kelpie.coordinator.transactions import BEHAVIOUR_2_8, BEHAVIOUR_4_3, TransactionBehaviour
from kelpie.errors import ErrorCode
from kelpie.wire.transaction_state import TransactionState
from tests.coordinator.transactions.driver import Driver, partitions
from tests.coordinator.transactions.logs import log_with

BOTH = pytest.mark.parametrize("behaviour", [BEHAVIOUR_2_8, BEHAVIOUR_4_3], ids=["2.8", "4.3"])


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_is_answered_when_it_is_prepared(committed: bool) -> None:
    """The decision is in the log; the markers may take their time."""
    driver = Driver()
    producer = driver.begin("t", "b-1", "a-0")
    to = driver.end("t", producer, committed=committed)
    assert to not in driver.answers
    assert not driver.markers
    driver.write()
    assert driver.errors(to) == {ErrorCode.NONE}
    assert driver.state() == ("PrepareCommit" if committed else "PrepareAbort")
    marker = driver.mark()
    assert marker.committed is committed
    assert marker.partitions == tuple(partitions("a-0", "b-1"))
    assert driver.state() == ("PrepareCommit" if committed else "PrepareAbort")
    driver.write()
    assert driver.state() == ("CompleteCommit" if committed else "CompleteAbort")
    assert not driver.shard.transactions["t"].facts.partitions


def test_version_5_gives_each_transaction_its_own_epoch() -> None:
    """KIP-890: a delayed batch of the last transaction cannot slip into the next one."""
    driver = Driver()
    producer = driver.begin("t")
    assert driver.producer(driver.end("t", producer)) == (1000, 1)
    marker = driver.mark()
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_version) == (1000, 1, 2)


def test_before_version_5_the_epoch_stays() -> None:
    """Those clients would fence themselves."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    driver.add_partitions("t", producer, "a-0")
    driver.write()
    to = driver.end("t", producer, version=4)
    driver.write()
    assert (driver.answers[to].producer_id, driver.answers[to].producer_epoch) == (-1, -1)
    marker = driver.mark()
    assert (marker.producer_epoch, marker.transaction_version) == (0, 0)


def test_the_last_epoch_ends_with_a_new_producer_id() -> None:
    """The markers bear the old id; the client goes on with a new one from epoch 0."""
    joined = frozenset(partitions("a-0"))
    driver = Driver(
        log=log_with("t", producer_id=7, producer_epoch=32766, state=TransactionState.ONGOING, joined=joined)
    )
    assert driver.producer(driver.end("t", (7, 32766))) == (1000, 0)
    marker = driver.mark()
    assert (marker.producer_id, marker.producer_epoch) == (7, 32767)
    driver.write()
    facts = driver.shard.transactions["t"].facts
    assert (facts.producer_id, facts.producer_epoch, facts.previous_producer_id) == (1000, 0, 7)
    assert driver.producer(driver.end("t", (7, 32766))) == (1000, 0), "the retry of that end"


def test_the_next_producer_id_survives_a_move_of_the_coordinator() -> None:
    """It is in the prepared record (value version 1), because the client knows it already."""
    joined = frozenset(partitions("a-0"))
    driver = Driver(
        log=log_with("t", producer_id=7, producer_epoch=32766, state=TransactionState.ONGOING, joined=joined)
    )
    driver.end("t", (7, 32766))
    driver.write()
    driver.reload()
    driver.settle()
    assert driver.shard.transactions["t"].facts.producer_id == 1000


def test_while_markers_are_written_all_else_waits() -> None:
    """The transaction is neither open nor over."""
    driver = Driver()
    producer = driver.begin("t")
    held = driver.producer(driver.end("t", producer))
    for committed in (True, False):
        for epoch in (producer, held):
            to = driver.end("t", epoch, committed=committed)
            assert driver.errors(to) == {ErrorCode.CONCURRENT_TRANSACTIONS}


def test_before_version_5_a_wrong_epoch_counts_first() -> None:
    """The old path checks the producer before it looks whether a step is under way."""
    driver = Driver()
    producer = driver.begin("t")
    driver.end("t", producer, version=4)
    driver.write()
    assert driver.errors(driver.end("t", (1000, 9), version=4)) == {ErrorCode.PRODUCER_FENCED}
    assert driver.errors(driver.end("t", producer, version=4)) == {ErrorCode.CONCURRENT_TRANSACTIONS}


@pytest.mark.parametrize("committed", [True, False])
def test_before_version_5_the_same_end_is_done_and_the_other_invalid(committed: bool) -> None:
    """A retry is harmless; a change of mind comes too late."""
    driver = Driver()
    producer = driver.begin("t")
    driver.end("t", producer, committed=committed, version=4)
    driver.settle()
    assert driver.errors(driver.end("t", producer, committed=committed, version=4)) == {ErrorCode.NONE}
    to = driver.end("t", producer, committed=not committed, version=4)
    assert driver.errors(to) == {ErrorCode.INVALID_TXN_STATE}


def test_before_version_5_nothing_is_nothing_to_end() -> None:
    """No transaction was ever open."""
    driver = Driver()
    producer = driver.producer(driver.init_producer_id("t"))
    for committed in (True, False):
        to = driver.end("t", producer, committed=committed, version=4)
        assert driver.errors(to) == {ErrorCode.INVALID_TXN_STATE}


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_version_5_knows_a_retry_by_the_epoch_before(ended: bool, committed: bool) -> None:
    """The same end again is done; the other one is invalid."""
    driver = Driver()
    producer = driver.begin("t")
    held = driver.producer(driver.end("t", producer, committed=ended))
    driver.settle()
    to = driver.end("t", producer, committed=committed)
    if ended is committed:
        assert driver.producer(to) == held
    else:
        assert driver.errors(to) == {ErrorCode.INVALID_TXN_STATE}


@pytest.mark.parametrize("ended", [None, True, False])
def test_version_5_aborts_what_never_began(ended: bool | None) -> None:
    """A client that does not know whether its produce arrived aborts anyway, and gets the next epoch."""
    driver = Driver()
    if ended is None:
        held = driver.producer(driver.init_producer_id("t"))
    else:
        held = driver.producer(driver.end("t", driver.begin("t"), committed=ended))
    driver.settle()
    assert driver.errors(driver.end("t", held, committed=True)) == {ErrorCode.INVALID_TXN_STATE}
    driver.now += 5
    assert driver.producer(driver.end("t", held, committed=False)) == (held[0], held[1] + 1)
    assert not driver.markers, "no partition has joined"
    assert driver.state() == "CompleteAbort"


def test_version_5_in_empty_fences_the_epoch_before() -> None:
    """Empty comes from InitProducerId: whoever held the epoch before is a zombie."""
    driver = Driver()
    first = driver.producer(driver.init_producer_id("t"))
    driver.producer(driver.init_producer_id("t"))
    for committed in (True, False):
        to = driver.end("t", first, committed=committed)
        assert driver.errors(to) == {ErrorCode.PRODUCER_FENCED}


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)],
)
def test_a_wrong_epoch_cannot_end_a_transaction(version: int, error: ErrorCode) -> None:
    """Neither a zombie nor a producer of the future."""
    driver = Driver()
    producer_id, epoch = driver.begin("t")
    for wrong in (epoch - 1, epoch + 1):
        assert driver.errors(driver.end("t", (producer_id, wrong), version=version)) == {error}
    assert driver.state() == "Ongoing"


@pytest.mark.parametrize("version", [4, 5])
def test_an_unknown_id_or_a_foreign_producer_ends_nothing(version: int) -> None:
    """The transactional id does not belong to this producer id."""
    driver = Driver()
    driver.begin("t")
    assert driver.errors(driver.end("", (1000, 0), version=version)) == {ErrorCode.INVALID_REQUEST}
    for transactional_id, producer_id in (("t", 5), ("other", 1000)):
        to = driver.end(transactional_id, (producer_id, 0), version=version)
        assert driver.errors(to) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_an_end_that_cannot_be_written_may_be_tried_again() -> None:
    """And no marker goes out for it."""
    driver = Driver()
    producer = driver.begin("t")
    to = driver.end("t", producer)
    driver.fail()
    assert driver.errors(to) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not driver.markers
    assert driver.producer(driver.end("t", producer, committed=False)) == (1000, 1)


def test_a_completion_that_cannot_be_written_is_written_later() -> None:
    """No client waits for it, so the coordinator itself tries again."""
    driver = Driver()
    driver.end("t", driver.begin("t"))
    driver.write()
    driver.mark()
    driver.fail()
    assert driver.state() == "PrepareCommit"
    driver.advance(driver.config.completion_retry_ms)
    driver.write()
    assert driver.state() == "CompleteCommit"


def test_markers_told_twice_complete_once() -> None:
    """The driver may hear of a marker again after a retry."""
    driver = Driver()
    driver.end("t", driver.begin("t"))
    driver.write()
    driver.carry_out(driver.shard.markers_written("t", driver.now))
    driver.carry_out(driver.shard.markers_written("t", driver.now))
    driver.carry_out(driver.shard.markers_written("unknown", driver.now))
    assert len(driver.writing) == 1


@BOTH
def test_a_prepared_end_is_carried_on_by_the_next_coordinator(behaviour: TransactionBehaviour) -> None:
    """From the prepared record on, the end is certain, whoever leads."""
    driver = Driver(behaviour)
    producer = driver.begin("t", "a-0", "a-1")
    driver.end("t", producer, version=5 if behaviour.raises_epoch else 3)
    driver.write()
    before = driver.markers[0]
    driver.reload()
    marker = driver.mark()
    assert marker.coordinator_epoch == before.coordinator_epoch + 1
    assert (marker.partitions, marker.producer_epoch) == (before.partitions, before.producer_epoch)
    driver.write()
    assert driver.state() == "CompleteCommit"


def test_a_prepared_abort_without_partitions_is_completed_after_a_load() -> None:
    """There is no marker whose writing could complete it."""
    driver = Driver(log=log_with("t", producer_id=7, producer_epoch=1, state=TransactionState.PREPARE_ABORT))
    driver.advance(0)
    driver.write()
    assert driver.state() == "CompleteAbort"
