"""The thin path: what is appended can be read, from any offset, and never further than allowed."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.broker.log import Appended, AppendRefusal, LogConfig, ReadResult, ReplicaLog, parse_batches
from kelpie.errors import ErrorCode
from kelpie.wire.records import Codec, Record, TimestampType, parse_header, read_all_records, write_batch
from tests.broker.log.writing import CONFIG, T, append, contents, keyed, new_log, read, refused, sent


def test_an_empty_log_reads_empty_at_its_start_and_nowhere_else() -> None:
    """A consumer of a new topic waits; one with an offset from elsewhere is told."""
    log = new_log(5)
    assert (log.start_offset, log.end_offset, log.size) == (5, 5, 0)
    assert read(log, 5).data == b""
    assert read(log, 5).next_offset == 5
    for offset in (4, 6):
        result = log.read(offset, 1000, upto=5)
        assert isinstance(result, AppendRefusal)
        assert result.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.batches_from(5) == []
    assert log.last_stable_offset(5) == 5


def test_appended_batches_get_their_place_and_keep_their_records() -> None:
    """Offsets and the leader's epoch lie outside of the checksum, so the bytes stay the producer's."""
    log = new_log()
    first = append(log, sent(3))
    second = append(log, sent(2, codec=Codec.GZIP), epoch=4)
    assert (first.first_offset, first.last_offset, second.first_offset, second.last_offset) == (0, 2, 3, 4)
    assert log.end_offset == 5
    assert log.last_epoch == 4
    data = read(log, 0).data
    assert [record.offset for record in read_all_records(data)] == [0, 1, 2, 3, 4]
    assert parse_header(read(log, 3).data).partition_leader_epoch == 4
    assert log.size == len(data) == first.size + second.size


def test_an_offset_in_the_middle_of_a_batch_reads_the_whole_batch() -> None:
    """Brokers do not look into batches; consumers skip what they have."""
    log = new_log()
    append(log, sent(5))
    append(log, sent(5))
    result = read(log, 7)
    assert (result.first_offset, result.next_offset) == (5, 10)


def test_a_read_at_the_end_is_empty_and_one_behind_it_is_refused() -> None:
    """The end is where a consumer waits. Behind it, its offset comes from a log that was lost."""
    log = new_log()
    append(log, sent(3))
    assert read(log, 3).data == b""
    assert isinstance(log.read(4, 1000, upto=3), AppendRefusal)


def test_a_log_can_begin_in_the_middle_of_a_batch() -> None:
    """DeleteRecords takes any offset; the batch around it stays whole."""
    log = new_log()
    append(log, sent(5))
    append(log, sent(5))
    assert log.delete_before(3)
    assert not log.delete_before(2)
    assert log.start_offset == 3
    assert isinstance(log.read(2, 1000, upto=10), AppendRefusal)
    assert read(log, 3).first_offset == 0
    assert log.retain(CONFIG, T, 10) == 0, "the segment is still in use"


def test_a_follower_of_a_log_that_begins_within_a_batch_begins_there_too() -> None:
    """An empty follower gets the batch around the leader's start, which begins below its own end."""
    leader = new_log()
    append(leader, sent(5))
    append(leader, sent(5))
    leader.delete_before(3)
    follower = new_log()
    follower.reset_to(3)
    follower.append_as_follower(leader.batches_from(3), now=T)
    assert (follower.start_offset, follower.end_offset) == (3, 10)
    assert read(follower, 3).data == read(leader, 3).data
    assert read(follower, 4).first_offset == 0


def test_the_first_batch_comes_even_if_it_is_too_large() -> None:
    """KIP-74: a consumer must get past a large batch. Only the first partition of a fetch has that right."""
    log = new_log()
    append(log, sent(50))
    append(log, sent(1))
    assert read(log, 0, 1).next_offset == 50
    result = log.read(0, 1, upto=51, at_least_one=False)
    assert isinstance(result, ReadResult)
    assert result.data == b""
    assert result.next_offset == 0


def test_an_old_fetch_is_cut_in_the_middle_of_a_batch() -> None:
    """Before Fetch 3 a piece of a message was how a consumer learned that its buffer is too small."""
    log = new_log()
    append(log, sent(50))
    append(log, sent(1))
    whole = read(log, 0).data
    for size in (0, 1, 100, log.size - 5, log.size, log.size + 9):
        result = log.read(0, size, upto=51, at_least_one=False, cut=True)
        assert isinstance(result, ReadResult)
        assert result.data == whole[:size]
        assert len(result.data) == min(size, len(whole))


def test_a_read_ends_with_its_segment_and_the_next_goes_on_behind_it() -> None:
    """As in Kafka, a fetch is answered from one file."""
    log = new_log()
    config = LogConfig(segment_bytes=len(sent()) * 2)
    for _ in range(5):
        append(log, config=config)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert read(log, 0).next_offset == 2
    assert read(log, 2).next_offset == 4
    assert len(log.batches_from(0)) == 5
    assert [batch.last_offset for batch in log.batches_from(1)] == [1, 2, 3, 4]


def test_damaged_or_oversized_batches_are_refused() -> None:
    """What the log takes, it serves for ever."""
    log = new_log()
    good = bytearray(sent(3))
    good[-1] ^= 1
    assert refused(log, bytes(good)) is ErrorCode.CORRUPT_MESSAGE
    assert refused(log, sent(30), LogConfig(max_message_bytes=100)) is ErrorCode.MESSAGE_TOO_LARGE
    assert refused(log, sent(30), LogConfig(segment_bytes=100)) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert refused(log, sent(1) + sent(1)) is ErrorCode.INVALID_RECORD
    assert refused(log, b"") is ErrorCode.INVALID_RECORD
    assert (
        refused(log, sent(1, codec=Codec.ZSTD), produce_version=6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )


def test_a_compacted_topic_refuses_records_without_a_key() -> None:
    """The cleaner could only throw them away. The answer names each of them (KIP-467)."""
    log = new_log()
    config = LogConfig.of({"cleanup.policy": "compact"})
    data = sent(keyed((b"a", b"1"), (None, b"2"), (b"c", b"3"), (None, b"4")), codec=Codec.LZ4)
    refusal = log.append_as_leader(data, leader_epoch=0, now=T, config=config)
    assert isinstance(refusal, AppendRefusal)
    assert refusal.error_code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refusal.record_errors] == [1, 3]
    append(log, sent(3), config=config)


def test_timestamps_out_of_range_are_refused() -> None:
    """KIP-937: by default an hour ahead is the limit, and the past has none."""
    log = new_log()
    assert refused(log, sent(timestamp=T + 3_600_001)) is ErrorCode.INVALID_TIMESTAMP
    append(log, sent(timestamp=T + 3_600_000))
    append(log, sent(timestamp=0))
    append(log, sent([Record(0, -1, value=b"x")]))
    limited = LogConfig.of({"message.timestamp.before.max.ms": "1000"})
    assert refused(log, sent(timestamp=T - 1001), limited) is ErrorCode.INVALID_TIMESTAMP
    append(log, sent(timestamp=T - 1000), config=limited)


def test_log_append_time_replaces_what_the_producer_said() -> None:
    """The topic's setting decides whose clock counts."""
    log = new_log()
    config = LogConfig.of({"message.timestamp.type": "LogAppendTime"})
    appended = append(log, sent(2, timestamp=5), config=config, now=T + 7)
    assert appended.log_append_time_ms == T + 7
    records = list(read_all_records(read(log, 0).data))
    assert {record.timestamp for record in records} == {T + 7}
    assert {record.timestamp_type for record in records} == {TimestampType.LOG_APPEND}


def test_a_topic_with_a_codec_of_its_own_compresses_anew() -> None:
    """compression.type other than "producer"; sequence numbers and offsets stay."""
    log = new_log()
    config = LogConfig.of({"compression.type": "zstd"})
    append(log, sent(4, codec=Codec.GZIP, producer=(9, 0, 0)), config=config)
    append(log, sent(4, producer=(9, 0, 4)), config=config)
    for batch in log.batches_from(0):
        assert batch.header.codec is Codec.ZSTD
    assert [offset for offset, _, _ in contents(log)] == list(range(8))
    uncompressed = LogConfig.of({"compression.type": "uncompressed"})
    append(log, sent(4, codec=Codec.GZIP, producer=(9, 0, 8)), config=uncompressed)
    assert log.batches_from(8)[0].header.codec is Codec.NONE


def test_a_coordinator_may_write_what_a_client_may_not() -> None:
    """Offsets in a transaction have a producer and no sequence number; several batches may go together."""
    log = new_log()
    transactional = sent(2, producer=(7, 0, -1), transactional=True)
    assert refused(log, transactional) is ErrorCode.INVALID_RECORD
    appended = log.append_batch(transactional + sent(1), leader_epoch=0, now=T)
    assert isinstance(appended, Appended)
    assert (appended.first_offset, appended.last_offset) == (0, 2)
    assert log.first_open_transaction == 0
    assert len(log.batches_from(0)) == 2


def test_a_new_segment_begins_by_size_and_by_time() -> None:
    """segment.bytes and segment.ms: time is told by the records, and by the clock where they have none."""
    log = new_log()
    config = LogConfig(segment_ms=1000)
    append(log, sent(timestamp=T), config=config)
    append(log, sent(timestamp=T + 1000), config=config, now=T + 5000)
    assert len(log.segments) == 1
    append(log, sent(timestamp=T + 1001), config=config)
    assert len(log.segments) == 2
    untimed = new_log()
    append(untimed, sent([Record(0, -1, value=b"x")]), config=config, now=T)
    append(untimed, sent([Record(0, -1, value=b"x")]), config=config, now=T + 1001)
    assert len(untimed.segments) == 2


def test_followers_share_the_leaders_bytes_and_refuse_what_does_not_follow() -> None:
    """Nothing is copied between replicas of a lab, and a gap in the fabric's logic must not go unnoticed."""
    leader, follower = new_log(), new_log()
    append(leader, sent(3))
    append(leader, sent(3), epoch=2)
    assert follower.append_as_follower(leader.batches_from(0), now=T, leader_epoch=1) == len(sent(3))
    follower.append_as_follower(leader.batches_from(3), now=T)
    assert all(
        one.data is other.data
        for one, other in zip(leader.batches_from(0), follower.batches_from(0), strict=True)
    )
    with pytest.raises(ValueError, match="ends at 6"):
        follower.append_as_follower(leader.batches_from(0), now=T)


def test_batches_parsed_from_bytes_are_what_was_stored() -> None:
    """A fetch over a real connection brings bytes; they make the same batches."""
    log = new_log()
    append(log, sent(3, codec=Codec.SNAPPY))
    append(log, sent(2))
    assert parse_batches(read(log, 0).data) == log.batches_from(0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=25),
    st.integers(150, 900),
    st.integers(0, 40),
    st.data(),
)
def test_a_read_begins_with_the_batch_around_its_offset_and_never_passes_its_bound(
    counts: list[int], segment_bytes: int, deleted: int, data: st.DataObject
) -> None:
    """What is above the high watermark may still be lost, and must not be seen."""
    log = new_log()
    config = LogConfig(segment_bytes=segment_bytes)
    for count in counts:
        append(log, sent(count), config=config)
    log.delete_before(min(deleted, log.end_offset))
    offset = data.draw(st.integers(log.start_offset, log.end_offset))
    upto = data.draw(st.integers(log.start_offset, log.end_offset))
    max_bytes = data.draw(st.integers(0, 1500))
    result = read(log, offset, max_bytes, upto=upto)
    batches = result.batches
    assert result.data == b"".join(batch.data for batch in batches)
    assert all(batch.last_offset < upto for batch in batches)
    if batches:
        assert batches[0].base_offset <= offset <= batches[0].last_offset
        assert len(batches) == 1 or len(result.data) <= max_bytes
        for one, other in pairwise(batches):
            assert other.base_offset == one.next_offset
    else:
        around = [batch for batch in log.batches_from(offset) if batch.last_offset < upto]
        assert not around, "at least one batch comes, if there is one"
    follower = new_log()
    follower.reset_to(log.start_offset)
    follower.append_as_follower(log.batches_from(log.start_offset), now=T, config=config)
    assert contents(follower) == contents(log)


def test_reading_through_a_log_finds_every_record_once() -> None:
    """A consumer that follows next_offset misses nothing, across segments."""
    log = new_log()
    config = LogConfig(segment_bytes=400)
    for count in (3, 1, 4, 1, 5, 9, 2, 6):
        append(log, sent(count), config=config)
    offset, found = 0, []
    while offset < log.end_offset:
        result = read(log, offset, 300)
        found += [record.offset for record in read_all_records(result.data)]
        offset = result.next_offset
    assert found == list(range(31))


def test_the_partition_names_the_log_in_refusals() -> None:
    """An operator must see which log it was, and what it holds."""
    log = ReplicaLog(new_log().partition, 7)
    refusal = log.read(3, 10, upto=7)
    assert isinstance(refusal, AppendRefusal)
    assert "orders-0 has 7 to 7" in refusal.reason


def test_a_batch_longer_than_the_request_is_dropped_as_torn() -> None:
    """A whole batch, followed by the beginning of another: Kafka keeps the first."""
    log = new_log()
    append(log, sent(2) + write_batch(keyed((b"a", b"b")))[:30])
    assert log.end_offset == 2
