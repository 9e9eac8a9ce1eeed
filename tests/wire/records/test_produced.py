"""The produce path: what is refused, and what a batch looks like once it has its place in the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.errors import ErrorCode
from kelpie.wire.records import (
    BatchHeader,
    Codec,
    Produced,
    Record,
    RecordsRefused,
    TimestampType,
    examine_produced,
    parse_header,
    read_all_records,
    read_batches,
    stamp,
    write_batch,
    write_message_set,
)
from tests.wire.records.batch_bytes import patched, plain, with_right_crc
from tests.wire.records.strategies import T, records

GOOD = write_batch(plain(3))


def accepted(data: bytes, **settings_: object) -> Produced:
    produced = examine_produced(data, **settings_)  # type: ignore[arg-type]
    assert isinstance(produced, Produced)
    return produced


@pytest.mark.parametrize("codec", Codec)
def test_a_flipped_bit_anywhere_under_the_checksum_is_refused(codec: Codec) -> None:
    """What has been damaged on the way must not be stored, and sent to every consumer."""
    batch = write_batch(plain(4), codec=codec)
    for position in range(17, len(batch)):
        for bit in range(8):
            broken = bytearray(batch)
            broken[position] ^= 1 << bit
            assert isinstance(examine_produced(broken), RecordsRefused), (position, bit)


@settings(max_examples=80, deadline=None)
@given(
    records(gaps=False),
    st.sampled_from(Codec),
    st.integers(0, 2**60),
    st.integers(0, 2**31 - 1),
    st.none() | st.integers(0, 2**60),
)
def test_a_stamped_batch_reads_back_equal_with_new_offsets_and_epoch(
    made: list[Record], codec: Codec, base_offset: int, leader_epoch: int, append_time: int | None
) -> None:
    """The log gives a batch its place; what the producer sent stays."""
    sent = [record._replace(offset=i) for i, record in enumerate(made)]
    data = write_batch(sent, codec=codec)
    stamped = stamp(
        data,
        accepted(data),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        log_append_time_ms=append_time,
    )
    placed = [record._replace(offset=base_offset + record.offset) for record in sent]
    if append_time is not None:
        placed = [r._replace(timestamp=append_time, timestamp_type=TimestampType.LOG_APPEND) for r in placed]
    assert list(read_all_records(stamped)) == placed
    header = parse_header(stamped)
    assert (header.base_offset, header.partition_leader_epoch) == (base_offset, leader_epoch)


@pytest.mark.parametrize("codec", Codec)
def test_stamping_touches_nothing_but_offset_and_epoch(codec: Codec) -> None:
    """They lie before the checksum; the records are not even looked at."""
    data = write_batch(plain(5), codec=codec)
    stamped = stamp(data, accepted(data), base_offset=77, leader_epoch=5)
    assert stamped[:8] == (77).to_bytes(8, "big")
    assert stamped[12:16] == (5).to_bytes(4, "big")
    assert (stamped[8:12], stamped[16:]) == (data[8:12], data[16:])


def test_records_that_no_reader_could_read_are_appended_all_the_same() -> None:
    """The path touches only the header: an unreadable payload is the consumers' to find."""
    data = with_right_crc(GOOD[:61] + b"\xff" * (len(GOOD) - 61))
    assert accepted(data).record_count == 3


def test_several_batches_follow_each_other_in_the_log() -> None:
    """Brokers of their own accord append more than one at a time."""
    data = write_batch(plain(3)) + write_batch(plain(2), codec=Codec.LZ4)
    produced = accepted(data, several=True)
    assert (produced.record_count, produced.size) == (5, len(data))
    stamped = stamp(data, produced, base_offset=100, leader_epoch=9)
    headers = [batch.header for batch in read_batches(stamped)]
    assert all(isinstance(header, BatchHeader) and header.partition_leader_epoch == 9 for header in headers)
    assert [record.offset for record in read_all_records(stamped)] == [100, 101, 102, 103, 104]


def test_a_batch_cut_short_at_the_end_is_dropped() -> None:
    """Kafka trims it; the whole batch before it counts."""
    data = GOOD + GOOD[:-1]
    produced = accepted(data)
    assert stamp(data, produced, base_offset=0, leader_epoch=-1) == GOOD


def test_a_producer_cannot_keep_log_append_time_on_a_topic_with_create_time() -> None:
    """Kafka takes the bit away again, and so the checksum changes."""
    data = patched(GOOD, 21, ">h", 0x08)
    stamped = stamp(data, accepted(data), base_offset=0, leader_epoch=-1)
    assert stamped == GOOD


INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"", INVALID, id="nothing"),
        pytest.param(GOOD[:-1], INVALID, id="cut short"),
        pytest.param(GOOD + GOOD, INVALID, id="two batches"),
        pytest.param(write_message_set(plain(1), magic=0), INVALID, id="magic 0"),
        pytest.param(write_message_set(plain(1), magic=1), INVALID, id="magic 1"),
        pytest.param(patched(GOOD, 16, ">b", 3), CORRUPT, id="magic 3"),
        pytest.param(patched(GOOD, 8, ">i", 0), CORRUPT, id="no length"),
        pytest.param(patched(GOOD, 8, ">i", -5), CORRUPT, id="negative length"),
        pytest.param(patched(GOOD, 8, ">i", 48), CORRUPT, id="length below the header's"),
        pytest.param(GOOD[:-1] + b"?", CORRUPT, id="checksum"),
        pytest.param(patched(GOOD, 0, ">q", 5), INVALID, id="base offset"),
        pytest.param(patched(GOOD, 57, ">i", 2), INVALID, id="count below the range"),
        pytest.param(patched(GOOD, 57, ">i", 4), INVALID, id="count above the range"),
        pytest.param(patched(patched(GOOD, 57, ">i", 0), 23, ">i", -1), INVALID, id="no records"),
        pytest.param(patched(GOOD, 23, ">i", -1), INVALID, id="negative range"),
        pytest.param(
            patched(patched(GOOD, 57, ">i", 2**31 - 1), 23, ">i", 2**31 - 2),
            INVALID,
            id="billions of offsets",
        ),
        pytest.param(patched(GOOD, 21, ">h", 0x20), INVALID, id="control batch"),
        pytest.param(patched(GOOD, 43, ">q", 5), INVALID, id="producer without a sequence"),
        pytest.param(
            patched(GOOD, 21, ">h", 0x05), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="unknown codec"
        ),
    ],
)
def test_what_kafka_refuses_is_refused_with_kafkas_code(data: bytes, code: ErrorCode) -> None:
    """Clients act on the code: a corrupt message is sent again, an invalid record is not."""
    refused = examine_produced(data)
    assert isinstance(refused, RecordsRefused)
    assert refused.error_code is code


def test_a_batch_above_the_limit_is_refused() -> None:
    """message.max.bytes counts the batch as it is sent, compressed."""
    assert accepted(GOOD, largest_batch=len(GOOD))
    refused = examine_produced(GOOD, largest_batch=len(GOOD) - 1)
    assert isinstance(refused, RecordsRefused)
    assert refused.error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_is_refused_from_clients_that_speak_an_older_version() -> None:
    """Their topic may be read by clients that have never heard of zstd."""
    refused = examine_produced(write_batch(plain(3), codec=Codec.ZSTD), zstd=False)
    assert isinstance(refused, RecordsRefused)
    assert refused.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_producer_may_not_set_log_append_time_itself() -> None:
    """On a topic with log-append time the time is the broker's word."""
    refused = examine_produced(patched(GOOD, 21, ">h", 0x08), timestamp_type=TimestampType.LOG_APPEND)
    assert isinstance(refused, RecordsRefused)
    assert refused.error_code is ErrorCode.INVALID_TIMESTAMP


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: GOOD[:60] + tail))
def test_any_bytes_are_accepted_or_refused(data: bytes) -> None:
    """No request may make the append path raise."""
    outcome = examine_produced(data, several=True)
    assert isinstance(outcome, Produced | RecordsRefused)
    if isinstance(outcome, Produced):
        assert len(stamp(data, outcome, base_offset=T, leader_epoch=0)) == outcome.size
