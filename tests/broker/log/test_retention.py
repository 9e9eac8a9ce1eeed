"""What is too old, or too much, leaves the log segment by segment."""

from kelpie.broker.log import LogConfig, ReplicaLog
from kelpie.wire.records import Record
from tests.broker.log.writing import T, append, marker, new_log, read, sent

ONE = len(sent())


def log_of(count: int, per_segment: int = 2, step: int = 10) -> ReplicaLog:
    log = new_log()
    for n in range(count):
        append(log, sent(timestamp=T + n * step), config=LogConfig(segment_bytes=per_segment * ONE))
    return log


def test_segments_go_by_age_and_the_log_begins_behind_them() -> None:
    """retention.ms counts from the largest timestamp of a segment."""
    log = log_of(6)  # segments end at T+10, T+30, T+50
    config = LogConfig(retention_ms=100)
    assert log.retain(config, T + 110, 6) == 0
    assert log.retain(config, T + 131, 6) == 2
    assert (log.start_offset, log.size) == (4, 2 * ONE)
    assert read(log, 4).first_offset == 4


def test_when_all_is_too_old_the_log_is_empty_and_goes_on() -> None:
    """The active segment goes too; offsets are never given twice."""
    log = log_of(5)
    assert log.retain(LogConfig(retention_ms=100), T + 10_000, 5) == 3
    assert (log.start_offset, log.end_offset, log.size) == (5, 5, 0)
    assert read(log, 5).data == b""
    assert log.retain(LogConfig(retention_ms=100), T + 10_000, 5) == 0
    assert append(log).first_offset == 5


def test_segments_go_by_size_but_not_below_the_limit() -> None:
    """retention.bytes: a segment goes only if enough is left without it."""
    log = log_of(7)
    assert log.retain(LogConfig(retention_bytes=4 * ONE, retention_ms=-1), T, 7) == 1
    assert log.start_offset == 2
    assert log.retain(LogConfig(retention_bytes=3 * ONE, retention_ms=-1), T, 7) == 1
    assert log.start_offset == 4


def test_nothing_goes_from_the_high_watermark_on() -> None:
    """What is not committed is not old: the log must not begin above the high watermark."""
    log = log_of(6)
    assert log.retain(LogConfig(retention_ms=0), T + 1000, 3) == 1
    assert log.start_offset == 2


def test_without_limits_only_deleted_records_go() -> None:
    """retention -1, or a policy of compact alone; DeleteRecords still frees segments."""
    for config in (
        LogConfig(retention_ms=-1),
        LogConfig.of({"cleanup.policy": "compact", "retention.ms": "1"}),
    ):
        log = log_of(6)
        assert log.retain(config, T + 10**12, 6) == 0
        log.delete_before(3)
        assert log.retain(config, T, 6) == 1
        assert (log.start_offset, log.segments[0].base_offset) == (3, 2)


def test_records_without_timestamps_age_by_the_clock() -> None:
    """Messages of magic 0 have none; Kafka then goes by the file's time."""
    log = new_log()
    append(log, sent([Record(0, -1, value=b"x")]), now=T)
    log.roll(T)
    config = LogConfig(retention_ms=100)
    assert log.retain(config, T + 100, 1) == 0
    assert log.retain(config, T + 101, 1) == 1


def test_aborted_transactions_are_forgotten_with_their_records() -> None:
    """Nobody can read there any more."""
    log = new_log()
    append(log, sent(producer=(1, 0, 0), transactional=True))
    marker(log, 1, committed=False)
    append(log)
    assert log.aborted_between(0, 3) == [(1, 0)]
    log.delete_before(2)
    assert log.aborted_between(0, 3) == []


def test_an_empty_active_segment_is_not_rolled() -> None:
    """Or a quiet topic would gather segments without end."""
    log = new_log()
    assert not log.roll(T)
    append(log)
    assert log.roll(T)
    assert not log.roll(T)
    assert len(log.segments) == 2
