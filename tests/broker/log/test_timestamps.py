"""Offsets by time, as ListOffsets asks for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.log import FoundOffset, LogConfig, SpecialTimestamp
from kelpie.wire.records import Codec, Record
from tests.broker.log.writing import T, append, marker, new_log, sent


def stamped(*timestamps: int) -> list[Record]:
    return [Record(offset, timestamp, value=b"v") for offset, timestamp in enumerate(timestamps)]


def test_the_special_timestamps_of_an_empty_log() -> None:
    """Earliest and latest always have an answer; the largest timestamp needs a record."""
    log = new_log(5)
    assert log.offset_for_timestamp(SpecialTimestamp.EARLIEST, 5) == FoundOffset(-1, 5, 0)
    assert log.offset_for_timestamp(SpecialTimestamp.LATEST, 5) == FoundOffset(-1, 5, 0)
    assert log.offset_for_timestamp(SpecialTimestamp.MAX, 5) is None
    assert log.offset_for_timestamp(0, 5) is None
    assert log.offset_for_timestamp(SpecialTimestamp.MAX, log.end_offset) is None


def test_the_special_timestamps_of_a_log() -> None:
    """-1 and -2 since the beginning, -3 since 3.0, and those of tiered storage, which there is none of."""
    log = new_log()
    append(log, sent(stamped(T, T + 9, T + 9, T + 1)))
    append(log, sent(stamped(T + 2)), epoch=3)
    log.delete_before(1)
    assert log.offset_for_timestamp(-2, 4) == FoundOffset(-1, 1, 0)
    assert log.offset_for_timestamp(-4, 4) == FoundOffset(-1, 1, 0)
    assert log.offset_for_timestamp(-1, 4) == FoundOffset(-1, 4, 3), "the latest is what the asker may see"
    assert log.offset_for_timestamp(-3, 5) == FoundOffset(T + 9, 1, 0), "of several, the first"
    assert log.offset_for_timestamp(-3, 1) is None, "not above what the asker may see"
    assert log.offset_for_timestamp(SpecialTimestamp.MAX, log.end_offset) == FoundOffset(T + 9, 1, 0)
    for tiered in (-5, -6):
        assert log.offset_for_timestamp(tiered, 5) == FoundOffset(-1, -1, -1)


@pytest.mark.parametrize("codec", Codec)
def test_a_timestamp_finds_the_first_record_that_is_not_older(codec: Codec) -> None:
    """Inside a batch, compressed or not."""
    log = new_log()
    append(log, sent(stamped(T, T + 2, T + 1, T + 5), codec=codec))
    append(log, sent(stamped(T + 7), codec=codec), epoch=2)
    assert log.offset_for_timestamp(0, 5) == FoundOffset(T, 0, 0)
    assert log.offset_for_timestamp(T + 1, 5) == FoundOffset(T + 2, 1, 0)
    assert log.offset_for_timestamp(T + 3, 5) == FoundOffset(T + 5, 3, 0)
    assert log.offset_for_timestamp(T + 6, 5) == FoundOffset(T + 7, 4, 2)
    assert log.offset_for_timestamp(T + 6, 4) is None
    assert log.offset_for_timestamp(T + 8, 5) is None


def test_log_append_time_finds_the_first_record_of_the_batch() -> None:
    """All records of a batch were appended at once."""
    log = new_log()
    config = LogConfig.of({"message.timestamp.type": "LogAppendTime"})
    append(log, sent(3), config=config, now=T + 100)
    append(log, sent(3), config=config, now=T + 200)
    assert log.offset_for_timestamp(T + 101, 6) == FoundOffset(T + 200, 3, 0)
    assert log.offset_for_timestamp(SpecialTimestamp.MAX, log.end_offset) == FoundOffset(T + 200, 3, 0)


def test_markers_count_as_records_of_their_time() -> None:
    """Kafka's search does not tell them apart; the consumer then skips the marker."""
    log = new_log()
    append(log, sent(stamped(T - 10), producer=(1, 0, 0), transactional=True))
    marker(log, 1, committed=True)
    assert log.offset_for_timestamp(T - 9, 2) == FoundOffset(T, 1, 0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4), min_size=1, max_size=12),
    st.integers(0, 21),
    st.integers(0, 10),
)
def test_the_search_agrees_with_a_look_at_every_record(
    batches: list[list[int]], wanted: int, start: int
) -> None:
    """Segments and batches are passed over by their largest timestamp; none may be missed by that."""
    log = new_log()
    config = LogConfig(segment_bytes=250)
    for batch in batches:
        append(log, sent(stamped(*batch)), config=config)
    start = min(start, log.end_offset)
    log.delete_before(start)
    flat = [timestamp for batch in batches for timestamp in batch]
    found = log.offset_for_timestamp(wanted, log.end_offset)
    expected = next(
        (
            (timestamp, offset)
            for offset, timestamp in enumerate(flat)
            if offset >= start and timestamp >= wanted
        ),
        None,
    )
    assert (found and found[:2]) == expected
    assert (log.offset_for_timestamp(SpecialTimestamp.MAX, log.end_offset) or ())[:2] == (
        max(flat),
        flat.index(max(flat)),
    )
