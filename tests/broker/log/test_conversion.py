"""Message formats: old producers, old consumers, and a broker that passes for Kafka 0.9."""

import pytest

from kelpie.broker.log import Appended, AppendRefusal, LogConfig, ReplicaLog, down_convert, parse_batches
from kelpie.errors import ErrorCode
from kelpie.wire.records import (
    Codec,
    MessageHeader,
    Record,
    TimestampType,
    read_all_records,
    read_batches,
    write_message_set,
)
from tests.broker.log.writing import T, append, contents, keyed, marker, new_log, read, refused, sent

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
MAGIC_0 = LogConfig.of({}, message_format=0)
PAIRS = [(0, b"a", b"1"), (1, None, b"2"), (2, b"c", None)]


def message_set(magic: int, codec: Codec = Codec.NONE) -> bytes:
    return write_message_set(keyed((b"a", b"1"), (None, b"2"), (b"c", None)), magic=magic, codec=codec)


def shifted(by: int) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(offset + by, key, value) for offset, key, value in PAIRS]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_one_batch_of_magic_2(magic: int, codec: Codec) -> None:
    """Produce 0 to 2: the codec stays, timestamps stay where there are any."""
    log = new_log()
    append(log)
    appended = append(log, message_set(magic, codec), produce_version=2)
    assert (appended.first_offset, appended.last_offset) == (1, 3)
    (batch,) = log.batches_from(1)
    assert batch.header.magic == 2
    assert batch.header.codec is codec
    assert batch.leader_epoch == 0
    assert contents(log)[1:] == shifted(1)
    assert {record.timestamp for record in batch.records()} == {T if magic else -1}


def test_old_messages_are_checked_as_new_ones_are() -> None:
    """Checksums, sizes, timestamps, keys, and what belongs together."""
    log = new_log()
    broken = bytearray(message_set(1))
    broken[-1] ^= 1
    assert refused(log, bytes(broken), produce_version=2) is ErrorCode.CORRUPT_MESSAGE
    small = LogConfig(max_message_bytes=30)
    assert refused(log, message_set(1), small, produce_version=2) is ErrorCode.MESSAGE_TOO_LARGE
    two = message_set(1, Codec.GZIP) * 2
    assert refused(log, two, produce_version=2) is ErrorCode.INVALID_RECORD
    assert refused(log, message_set(1) + message_set(0), produce_version=2) is ErrorCode.INVALID_RECORD
    compacted = LogConfig.of({"cleanup.policy": "compact"})
    assert refused(log, message_set(0), compacted, produce_version=1) is ErrorCode.INVALID_RECORD
    late = write_message_set(keyed((b"a", b"1"), timestamp=T + 10**10), magic=1)
    assert refused(log, late, produce_version=2) is ErrorCode.INVALID_TIMESTAMP
    claims = write_message_set(keyed((b"a", b"1")), magic=1, log_append_time_ms=T)
    assert refused(log, claims, produce_version=2) is ErrorCode.INVALID_TIMESTAMP
    assert refused(log, message_set(1), produce_version=3) is ErrorCode.INVALID_RECORD


def test_an_old_request_may_be_empty() -> None:
    """Versions 0 to 2 answer without an error, and without an offset."""
    log = new_log()
    assert append(log, b"", produce_version=2).first_offset == -1
    assert append(log, message_set(0)[:20], produce_version=2).first_offset == -1
    assert log.end_offset == 0


def test_an_old_request_may_hold_a_new_batch() -> None:
    """Nothing forbids it, and brokers take it."""
    log = new_log()
    append(log, sent(3), produce_version=2)
    assert log.end_offset == 3


def test_old_messages_get_log_append_time_where_the_topic_has_it() -> None:
    """Even those of magic 0, which had no time at all."""
    log = new_log()
    config = LogConfig.of({"message.timestamp.type": "LogAppendTime"})
    append(log, message_set(0), config=config, produce_version=0, now=T + 5)
    assert {record.timestamp for record in read_all_records(read(log, 0).data)} == {T + 5}


def test_kafka_09_numbers_single_messages_in_place() -> None:
    """Magic 0 without a codec: nothing but the offset changes, and each message stands for itself."""
    log = ReplicaLog(new_log().partition, 100)
    data = message_set(0)
    appended = append(log, data, config=MAGIC_0, produce_version=0, epoch=-1)
    assert (appended.first_offset, appended.last_offset) == (100, 102)
    assert contents(log) == shifted(100)
    stored = read(log, 100).data
    assert len(stored) == len(data)
    assert [batch.data[8:] for batch in read_batches(stored)] == [
        batch.data[8:] for batch in read_batches(data)
    ]
    assert read(log, 102).first_offset == 102
    assert log.epochs == [], "0.9 knows no epochs"
    assert log.end_offset_for_epoch(0) == (-1, -1)


@pytest.mark.parametrize("codec", OLD_CODECS[1:])
def test_kafka_09_wraps_compressed_messages_anew_with_absolute_offsets(codec: Codec) -> None:
    """Several wrappers of a request become one; it bears the offset of its last message."""
    log = ReplicaLog(new_log().partition, 50)
    append(log, message_set(0, codec) * 2, config=MAGIC_0, produce_version=1, epoch=-1)
    (batch,) = log.batches_from(50)
    assert isinstance(batch.header, MessageHeader)
    assert (batch.header.magic, batch.header.codec, batch.header.offset) == (0, codec, 55)
    assert (batch.base_offset, batch.last_offset) == (50, 55)
    assert contents(log) == shifted(50) + shifted(53)
    assert parse_batches(read(log, 53).data) == [batch]


def test_kafka_09_refuses_keyless_messages_of_a_compacted_topic_as_invalid() -> None:
    """InvalidMessageException was code 2 then."""
    config = LogConfig.of({"cleanup.policy": "compact"}, message_format=0)
    assert refused(new_log(), message_set(0), config, produce_version=0) is ErrorCode.CORRUPT_MESSAGE


def test_kafka_09_keeps_its_own_records_as_magic_0() -> None:
    """The coordinator writes batches; the offsets topic of 0.9 holds messages."""
    log = ReplicaLog(new_log().partition)
    appended = log.append_batch(
        sent(keyed((b"g", b"1"), (b"g", None))), leader_epoch=-1, now=T, config=MAGIC_0
    )
    assert isinstance(appended, Appended)
    assert [batch.header.magic for batch in log.batches_from(0)] == [0, 0]
    assert contents(log) == [(0, b"g", b"1"), (1, b"g", None)]
    assert log.append_batch(
        write_message_set(keyed((b"g", b"2")), magic=0), leader_epoch=-1, now=T, config=MAGIC_0
    ) == Appended(2, 2, -1, 0, log.batches_from(2)[0].size)


def test_magic_1_comes_down_to_0_in_a_log_of_kafka_09() -> None:
    """A client that is too new for the broker it talks to."""
    log = ReplicaLog(new_log().partition)
    append(log, message_set(1), config=MAGIC_0, produce_version=1, epoch=-1)
    assert {batch.header.magic for batch in log.batches_from(0)} == {0}
    assert contents(log) == PAIRS


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_consumers_get_messages_they_can_read(magic: int, codec: Codec) -> None:
    """Fetch 0 and 1 know magic 0, Fetch 2 and 3 magic 1. Offsets, keys and values are the same."""
    log = new_log()
    append(log, sent(keyed(*((key, value) for _, key, value in PAIRS)), codec=codec))
    append(log, sent(2))
    data = down_convert(read(log, 0).data, magic)
    assert isinstance(data, bytes)
    assert {batch.header.magic for batch in read_batches(data)} == {magic}
    records = list(read_all_records(data))
    assert [(record.offset, record.key, record.value) for record in records] == contents(log)
    assert {record.timestamp for record in records} == {T if magic else -1}


def test_down_conversion_leaves_out_markers_and_what_comes_before() -> None:
    """An old consumer would take a marker for a record. What it has read already need not be sent."""
    log = new_log()
    append(log, sent(3, producer=(1, 0, 0), transactional=True))
    marker(log, 1, committed=True)
    append(log, sent(3, codec=Codec.GZIP))
    data = down_convert(read(log, 1).data, 1, first_offset=1)
    assert isinstance(data, bytes)
    assert [record.offset for record in read_all_records(data)] == [1, 2, 4, 5, 6]


def test_down_conversion_drops_headers_and_keeps_log_append_time() -> None:
    """Headers came with magic 2; the bit for log-append time is in magic 1 too."""
    log = new_log()
    config = LogConfig.of({"message.timestamp.type": "LogAppendTime"})
    append(log, sent([Record(0, T, value=b"x", headers=(("h", b"1"),))]), config=config, now=T + 3)
    data = down_convert(read(log, 0).data, 1)
    assert isinstance(data, bytes)
    (record,) = read_all_records(data)
    assert (record.timestamp, record.timestamp_type) == (T + 3, TimestampType.LOG_APPEND)


def test_zstd_cannot_be_converted_down_but_what_comes_before_can() -> None:
    """Old consumers have no zstd."""
    log = new_log()
    append(log, sent(1))
    append(log, sent(1, codec=Codec.ZSTD))
    data = down_convert(read(log, 0).data, 1)
    assert isinstance(data, bytes)
    assert [record.offset for record in read_all_records(data)] == [0]
    refusal = down_convert(read(log, 1).data, 1)
    assert isinstance(refusal, AppendRefusal)
    assert refusal.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_messages_that_are_old_already_pass_unchanged() -> None:
    """A fetch from a log of Kafka 0.9."""
    log = ReplicaLog(new_log().partition)
    append(log, message_set(0), config=MAGIC_0, produce_version=0, epoch=-1)
    assert down_convert(read(log, 0).data, 0) == read(log, 0).data
