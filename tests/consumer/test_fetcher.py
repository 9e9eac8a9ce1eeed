"""Fetching: what is asked, what is handed out, what follows from errors."""

from typing import Any

import pytest

from kelpie.consumer.completed_fetch import CompletedFetch
from kelpie.consumer.config import IsolationLevel
from kelpie.consumer.effects import ProblemKind, RecordsDelivered
from kelpie.consumer.positions.reset_policy import LATEST, NONE
from kelpie.errors import ErrorCode
from kelpie.questions.fetch import AskRecords, FetchAnswer, FetchedPartition
from kelpie.questions.list_offsets import AskOffsets
from kelpie.questions.metadata import AskMetadata
from kelpie.wire.malformed import Malformed
from kelpie.wire.records import (
    Codec,
    ControlType,
    Record,
    write_batch,
    write_control_batch,
    write_message_set,
)
from tests.consumer.positions.test_fetch_positions import by_hand, offsets
from tests.consumer.stand import Stand
from tests.consumer.world import GONE, T0, T1

_E = ErrorCode
ERRORS = [code for code in ErrorCode if code != _E.NONE]
_ELSEWHERE = {
    _E.UNKNOWN_TOPIC_OR_PARTITION,
    _E.LEADER_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER,
    _E.REPLICA_NOT_AVAILABLE,
    _E.KAFKA_STORAGE_ERROR,
    _E.FENCED_LEADER_EPOCH,
    _E.OFFSET_NOT_AVAILABLE,
    _E.UNKNOWN_TOPIC_ID,
    _E.INCONSISTENT_TOPIC_ID,
}
_LATER = {_E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_SERVER_ERROR}


def fetching(**config: Any) -> Stand:
    stand = by_hand(**{"group_id": None, **config})
    stand.reach(AskRecords)
    return stand


def _both(row: FetchedPartition) -> FetchAnswer:
    return FetchAnswer(0, {T0: row, T1: FetchedPartition(0, 10, 10, 0)})


def test_records_move_the_position_when_they_are_handed_out() -> None:
    """What was fetched and not handed out is not consumed: a commit must not cover it."""
    stand = fetching(max_poll_records=2)
    stand.end_poll()
    stand.run()
    assert offsets(stand) == {T0: 0, T1: 0}
    stand.poll()
    assert [(record.partition, record.offset) for record in stand.records()] == [(0, 0), (0, 1)]
    assert offsets(stand) == {T0: 2, T1: 0}


def test_all_records_come_once_and_in_order() -> None:
    """Whatever the size of polls and fetches."""
    stand = fetching(max_poll_records=4)
    seen: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(20):
        stand.run_for(100)
        for record in stand.records():
            assert record.value == b"%d" % record.offset
            seen[record.partition].append(record.offset)
        if seen[0] == seen[1] == list(range(10)):
            break
        stand.poll()
    assert seen == {0: list(range(10)), 1: list(range(10))}


def test_one_fetch_a_leader_is_under_way() -> None:
    """And none for partitions that still have records waiting."""
    stand = fetching()
    stand.wait(10_000)
    assert len(stand.all_asked(AskRecords)) == 1


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_fetch(error: ErrorCode) -> None:
    """Elsewhere, later, reset, or raised."""
    stand = fetching()
    learned = stand.consumer.metadata.answers
    stand.give(AskRecords, _both(FetchedPartition(error)))
    if error == _E.OFFSET_OUT_OF_RANGE:
        assert set(stand.question(AskOffsets).wanted) == {T0}
    elif error in _ELSEWHERE | _LATER:
        assert set(stand.question(AskRecords).wanted) == {T1}, "the other one goes on"
        stand.run_for(250, AskRecords)
        assert (stand.consumer.metadata.answers > learned) == (error in _ELSEWHERE)
        stand.give(AskRecords, _both(FetchedPartition(0)))
        assert T0 in stand.question(AskRecords).wanted
    else:
        problem = stand.problem()
        assert (problem.error, problem.partitions) == (error, (T0,))
        expected = {
            _E.TOPIC_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
            _E.CORRUPT_MESSAGE: ProblemKind.CORRUPT,
        }.get(error, ProblemKind.UNEXPECTED)
        assert problem.kind is expected


def test_offset_out_of_range_without_a_policy_is_raised() -> None:
    """Nobody but the application may decide what to skip."""
    stand = by_hand(auto_offset_reset=NONE)
    stand._do(stand.consumer.seek(T0, 99, stand.now))
    stand._do(stand.consumer.seek(T1, 0, stand.now))
    stand.reach(AskRecords)
    stand.run()
    problem = stand.problem()
    assert (problem.kind, problem.partitions) == (ProblemKind.OUT_OF_RANGE, (T0,))


def test_out_of_range_for_an_offset_left_behind_is_ignored() -> None:
    """The answer is about where it stood before it was sought elsewhere."""
    stand = fetching(auto_offset_reset=LATEST)
    stand._do(stand.consumer.seek(T0, 3, stand.now))
    stand.give(AskRecords, _both(FetchedPartition(_E.OFFSET_OUT_OF_RANGE)))
    assert offsets(stand)[T0] == 3


def test_lost_connection_is_fetched_again() -> None:
    """With new metadata: another broker may lead by now."""
    stand = fetching()
    stand.give(AskRecords, GONE)
    stand.run(AskMetadata)
    stand.run_for(1_000, AskRecords)
    assert stand.has_asked(AskRecords)


def test_records_of_a_partition_taken_away_are_dropped() -> None:
    """Another member reads them now."""
    stand = fetching()
    stand.end_poll()
    stand.run()
    stand.consumer.assignment.assign((T1,))
    stand.poll()
    assert {record.partition for record in stand.records()} == {1}


def test_records_of_a_paused_partition_wait() -> None:
    """They come when it is resumed."""
    stand = fetching()
    stand.end_poll()
    stand.run()
    stand._do(stand.consumer.pause([T0], stand.now))
    stand.poll()
    assert {record.partition for record in stand.records()} == {1}
    stand._do(stand.consumer.pause([T0], stand.now, paused=False))
    stand.poll()
    assert {record.partition for record in stand.records()} == {0}


def test_record_larger_than_asked_for_is_raised() -> None:
    """Brokers before 0.10.1 send its beginning only, and it would never arrive."""
    stand = fetching()
    cut = write_message_set([Record(0, value=b"x" * 1000)], magic=0)[:500]
    stand.give(AskRecords, _both(FetchedPartition(0, 1, records=cut)))
    assert stand.problem().kind is ProblemKind.TOO_LARGE


def test_broken_records_are_raised_after_those_before_them() -> None:
    """Nothing is skipped in silence."""
    good = write_batch([Record(0, 0, value=b"a"), Record(1, 0, value=b"b")])
    bad = bytearray(write_batch([Record(2, 0, value=b"c")]))
    bad[-1] ^= 0xFF
    stand = fetching()
    stand.give(AskRecords, _both(FetchedPartition(0, 3, records=good + bytes(bad))))
    assert [record.offset for record in stand.records()] == [0, 1]
    stand.poll()
    problem = stand.problem()
    assert problem.kind is ProblemKind.CORRUPT
    assert "from offset 2 on" in problem.text
    assert offsets(stand)[T0] == 2


def test_nothing_new_ends_no_poll() -> None:
    """A poll waits for records until its time is up."""
    stand = fetching()
    stand.give(AskRecords, FetchAnswer(0, {T0: FetchedPartition(0, 0), T1: FetchedPartition(0, 0)}))
    assert stand.told(RecordsDelivered) == []
    assert stand.has_asked(AskRecords)


# Unpacking.


def _unpack(
    blob: bytes, start: int = 0, aborted: tuple[tuple[int, int], ...] = (), level: int = 0
) -> CompletedFetch:
    fetched = FetchedPartition(0, 100, 100, 0, aborted, blob)
    return CompletedFetch(T0, fetched, start, only_committed=bool(level))


def _values(unpacking: CompletedFetch) -> list[bytes | None]:
    return [record.value for record in unpacking.take(1000)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
def test_old_message_sets_are_read(magic: int, codec: Codec) -> None:
    """Kafka 0.9 and 0.10; the wrapper may begin before the offset asked for."""
    rows = [Record(offset, value=b"%d" % offset) for offset in range(5)]
    unpacking = _unpack(write_message_set(rows, magic=magic, codec=codec), start=2)
    assert _values(unpacking) == [b"2", b"3", b"4"]
    assert unpacking.next_offset == 5
    assert unpacking.epoch is None


def test_batch_whose_last_records_were_compacted_away_is_passed() -> None:
    """Otherwise the same batch would be fetched for ever."""
    unpacking = _unpack(write_batch([Record(0, 0, value=b"a")], last_offset=9, leader_epoch=3))
    assert _values(unpacking) == [b"a"]
    assert (unpacking.next_offset, unpacking.epoch) == (10, 3)


def _transaction(first: int, producer_id: int, value: bytes) -> bytes:
    return write_batch(
        [Record(first, 0, value=value)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def _marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return write_control_batch(
        ControlType.COMMIT if commit else ControlType.ABORT,
        offset=offset,
        timestamp=0,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
    )


def test_aborted_records_are_passed_over_by_readers_of_committed_ones() -> None:
    """From the transaction's first offset to its marker, and no further."""
    blob = b"".join(
        (
            _transaction(0, 7, b"aborted"),
            _transaction(1, 8, b"committed"),
            _marker(2, 7, commit=False),
            _marker(3, 8, commit=True),
            _transaction(4, 7, b"another"),
            _marker(5, 7, commit=True),
        )
    )
    aborted = ((7, 0),)
    assert _values(_unpack(blob, aborted=aborted, level=1)) == [b"committed", b"another"]
    everything = _unpack(blob, aborted=aborted)
    assert _values(everything) == [b"aborted", b"committed", b"another"]
    assert everything.next_offset == 6, "markers take offsets, too"


def test_isolation_level_is_asked_for() -> None:
    """The broker lists aborted transactions only then."""
    stand = fetching(isolation_level=IsolationLevel.READ_COMMITTED)
    assert stand.question(AskRecords).isolation_level == 1


def test_broken_batch_is_met_again() -> None:
    """A generator that has raised is at its end: it must not look as if there were no more."""
    good = write_batch([Record(0, 0, value=b"a")])
    unpacking = _unpack(good + good[:17] + b"\0\0\0\0" + good[21:])
    assert _values(unpacking) == [b"a"]
    for _ in range(2):
        with pytest.raises(Malformed):
            unpacking.take(10)
    assert unpacking.next_offset == 1
