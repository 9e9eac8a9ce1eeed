"""Idempotence: a batch that is sent twice is stored once, and a zombie is fenced."""

from kelpie.broker.log import Appended, AppendRefusal
from kelpie.errors import ErrorCode
from tests.broker.log.writing import CONFIG, T, append, marker, new_log, refused, sent

LAST = 2**31 - 1


def test_a_duplicate_of_any_of_the_last_five_batches_is_answered_with_its_old_offset() -> None:
    """A producer that lost the response sends again; it must get the same answer, and the log no copy."""
    log = new_log()
    batches = [sent(2, producer=(1, 0, 2 * n)) for n in range(6)]
    for batch in batches:
        append(log, batch)
    for n in range(1, 6):
        again = append(log, batches[n])
        assert again.duplicate
        assert (again.first_offset, again.last_offset) == (2 * n, 2 * n + 1)
    assert log.end_offset == 12
    assert refused(log, batches[0]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused() -> None:
    """Something got lost between the two; the producer has to send it first."""
    log = new_log()
    append(log, sent(2, producer=(1, 0, 0)))
    assert refused(log, sent(1, producer=(1, 0, 3))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, sent(1, producer=(1, 0, 1))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, sent(1, producer=(1, 0, 2)))


def test_sequence_numbers_wrap_around_and_duplicates_are_still_known() -> None:
    """After 2^31 - 1 comes 0, also in the middle of a batch."""
    log = new_log()
    append(log, sent(2, producer=(1, 0, LAST - 2)))
    across = sent(3, producer=(1, 0, LAST))
    append(log, across)
    assert append(log, across).duplicate
    append(log, sent(1, producer=(1, 0, 2)))
    log = new_log()
    append(log, sent(1, producer=(1, 0, LAST)))
    begin = sent(1, producer=(1, 0, 0))
    append(log, begin)
    again = append(log, begin)
    assert again.duplicate
    assert again.first_offset == 1


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Its state may have expired, or gone with the records (KIP-360)."""
    log = new_log()
    append(log, sent(1, producer=(1, 3, 500)))
    append(log, sent(1, producer=(1, 3, 501)))


def test_a_new_epoch_begins_with_0_and_fences_the_old_one() -> None:
    """Two producers with one id: the one that was replaced must not write any more."""
    log = new_log()
    append(log, sent(1, producer=(1, 3, 0)))
    assert refused(log, sent(1, producer=(1, 4, 1))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, sent(1, producer=(1, 4, 0)))
    assert refused(log, sent(1, producer=(1, 3, 1))) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, sent(1, producer=(1, 3, 0))) is ErrorCode.INVALID_PRODUCER_EPOCH, (
        "no duplicate either"
    )


def test_producers_do_not_disturb_each_other() -> None:
    """State is kept by producer id."""
    log = new_log()
    for n in range(3):
        append(log, sent(1, producer=(1, 0, n)))
        append(log, sent(1, producer=(2, 5, n)))
        append(log, sent(1))
    assert [(entry.producer_id, entry.epoch, entry.last_sequence) for entry in log.producers()] == [
        (1, 0, 2),
        (2, 5, 2),
    ]


def test_truncation_brings_the_producers_back_to_where_they_were() -> None:
    """A follower that cut its end off, and then leads, must accept what the producer sends again."""
    log = new_log()
    config = CONFIG
    states = [log.producers()]
    for n in range(8):
        if n == 4:
            log.roll(T)
        append(log, sent(1, producer=(1 + n % 2, 0, n // 2)), config=config)
        states.append(log.producers())
    for end in range(7, -1, -1):
        assert log.truncate_to(end)
        assert log.producers() == states[end]
    append(log, sent(1, producer=(2, 0, 0)))


def test_a_duplicate_of_what_was_truncated_is_appended() -> None:
    """It is not in the log any more, so it is none."""
    log = new_log()
    batch = sent(2, producer=(1, 0, 0))
    append(log, batch)
    log.truncate_to(0)
    assert not append(log, batch).duplicate
    assert log.end_offset == 2


def test_followers_learn_producers_from_the_batches() -> None:
    """After an election the new leader judges duplicates as the old one did."""
    leader, follower = new_log(), new_log()
    batch = sent(2, producer=(1, 0, 0))
    append(leader, batch)
    append(leader, sent(2, producer=(1, 0, 2)))
    follower.append_as_follower(leader.batches_from(0), now=T)
    assert follower.producers() == leader.producers()
    assert append(follower, batch).duplicate


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    """producer.id.expiration.ms; who is forgotten may begin anew, an open transaction must be ended first."""
    log = new_log()
    append(log, sent(1, producer=(1, 0, 0), timestamp=T))
    append(log, sent(1, producer=(2, 0, 0), timestamp=T + 10))
    append(log, sent(1, producer=(3, 0, 0), timestamp=T, transactional=True))
    assert log.expire_producers(T + 99, 100) == 0
    assert log.expire_producers(T + 100, 100) == 1
    assert [entry.producer_id for entry in log.producers()] == [2, 3]
    append(log, sent(1, producer=(1, 0, 7)))


def test_a_write_outside_of_the_open_transaction_is_refused() -> None:
    """It would be neither committed nor aborted with the rest."""
    log = new_log()
    append(log, sent(1, producer=(1, 0, 0), transactional=True))
    assert refused(log, sent(1, producer=(1, 0, 1))) is ErrorCode.INVALID_TXN_STATE
    append(log, sent(1, producer=(1, 0, 1), transactional=True))


def test_markers_are_fenced_by_producer_epoch_and_coordinator_epoch() -> None:
    """A coordinator that was replaced must not decide transactions any more."""
    log = new_log()
    append(log, sent(1, producer=(1, 5, 0), transactional=True))
    stale = marker(log, 1, committed=True, epoch=4)
    assert isinstance(stale, AppendRefusal)
    assert stale.error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(marker(log, 1, committed=True, epoch=5, coordinator_epoch=3), Appended)
    zombie = marker(log, 1, committed=False, epoch=5, coordinator_epoch=2)
    assert isinstance(zombie, AppendRefusal)
    assert zombie.error_code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_markers_of_transaction_version_2_need_a_newer_epoch() -> None:
    """KIP-890: a late marker cannot hit the next transaction, and a repeated one may pass."""
    log = new_log()
    append(log, sent(1, producer=(1, 5, 0), transactional=True))
    same = marker(log, 1, committed=True, epoch=5, version=2)
    assert isinstance(same, AppendRefusal)
    assert same.error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(marker(log, 1, committed=True, epoch=6, version=2), Appended)
    assert isinstance(marker(log, 1, committed=True, epoch=6, version=2), Appended)
    assert (
        refused(log, sent(1, producer=(1, 6, 1), transactional=True))
        is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    append(log, sent(1, producer=(1, 6, 0), transactional=True))


def test_a_transaction_of_the_same_epoch_goes_on_in_sequence_after_its_marker() -> None:
    """Before KIP-890 the epoch stays, and so does the sequence."""
    log = new_log()
    append(log, sent(2, producer=(1, 0, 0), transactional=True))
    marker(log, 1, committed=True)
    assert (
        refused(log, sent(1, producer=(1, 0, 0), transactional=True))
        is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    append(log, sent(1, producer=(1, 0, 2), transactional=True))


def test_with_verification_a_transaction_begins_only_with_the_guard_of_this_time() -> None:
    """KIP-890: a write that was delayed past its abort must not open a transaction that nobody ends."""
    log = new_log()
    first = sent(1, producer=(1, 0, 0), transactional=True)
    assert refused(log, first, verify=True) is ErrorCode.INVALID_TXN_STATE
    guard = log.begin_verification(1, 0, 0)
    assert guard is not None
    marker(log, 1, committed=False)
    assert refused(log, first, verify=True, guard=guard) is ErrorCode.INVALID_TXN_STATE
    fresh = log.begin_verification(1, 0, 0)
    assert fresh is not None
    assert fresh is not guard
    done = log.append_as_leader(first, leader_epoch=0, now=T, verify=True, guard=fresh)
    assert isinstance(done, Appended)
    assert log.begin_verification(1, 0, 1) is None, "it is open: there is nothing to ask"
    more = log.append_as_leader(
        sent(1, producer=(1, 0, 1), transactional=True), leader_epoch=0, now=T, verify=True
    )
    assert isinstance(more, Appended)


def test_while_verifying_a_later_sequence_cannot_overtake() -> None:
    """The first batch failed to be verified and comes again; the second must wait for it."""
    log = new_log()
    guard = log.begin_verification(1, 0, 4)
    assert log.begin_verification(1, 0, 2) is guard
    late = sent(1, producer=(1, 0, 4), transactional=True)
    assert refused(log, late, verify=True, guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    early = sent(2, producer=(1, 0, 2), transactional=True)
    assert isinstance(log.append_as_leader(early, leader_epoch=0, now=T, verify=True, guard=guard), Appended)
    bumped = log.begin_verification(2, 1, 3, supports_epoch_bump=True)
    unborn = sent(1, producer=(2, 1, 3), transactional=True)
    assert refused(log, unborn, verify=True, guard=bumped) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_state_of_producers_survives_the_deletion_of_their_records() -> None:
    """Retention must not turn a retry into a second copy."""
    log = new_log()
    batch = sent(2, producer=(1, 0, 0))
    append(log, batch)
    log.delete_before(2)
    log.roll(T)
    assert log.retain(CONFIG, T, 2) == 1
    assert append(log, batch).duplicate
