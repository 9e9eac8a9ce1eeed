"""Bytes that Kafka itself has written, read and written again."""

import pytest

from kelpie.wire.records import (
    BatchHeader,
    Codec,
    ControlType,
    Record,
    TimestampType,
    read_all_records,
    read_batches,
    write_batch,
    write_control_batch,
    write_message_set,
)
from tests.wire.records.batch_bytes import kafkas_own
from tests.wire.records.strategies import MAGICS_AND_CODECS, T

KAFKAS = kafkas_own()
APPENDED = T + 999


def few(magic: int, first: int = 1000, append_time: bool = False) -> list[Record]:
    """What WriteBatches.java puts into most batches."""
    timestamps = (-1,) * 4 if magic == 0 else (APPENDED,) * 4 if append_time else (T, T + 5, T + 3, T + 10)
    kind = (
        TimestampType.NONE
        if magic == 0
        else TimestampType.LOG_APPEND
        if append_time
        else TimestampType.CREATE
    )
    pairs = [(b"k1", b"v1"), (None, b"only a value"), (b"tombstone", None), (b"", b"")]
    return [
        Record(first + i, timestamp, kind, key, value)
        for i, (timestamp, (key, value)) in enumerate(zip(timestamps, pairs, strict=True))
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"v", "1fecd70a 00 00 00000001 6b 00000001 76"),
        (None, "908204f6 00 00 00000001 6b ffffffff"),
    ],
    ids=["record", "tombstone"],
)
def test_messages_of_kafka_0_9_are_written_and_read_with_their_checksum(
    value: bytes | None, message: str
) -> None:
    """These bytes came out of the jar of 0.9; the checksum is among them."""
    body = bytes.fromhex(message)
    entry = (7).to_bytes(8, "big") + len(body).to_bytes(4, "big") + body
    record = Record(7, -1, TimestampType.NONE, b"k", value)
    assert write_message_set([record], magic=0) == entry
    assert list(read_all_records(entry)) == [record]


@pytest.mark.parametrize(("magic", "codec"), MAGICS_AND_CODECS)
def test_kafkas_own_batches_are_read_in_every_magic_and_codec(magic: int, codec: Codec) -> None:
    """Kafka is the judge: its compressors, wrappers and relative offsets, and its odd LZ4 of magic 0."""
    name = f"magic-{magic}-{codec.name.lower()}"
    assert list(read_all_records(KAFKAS[name])) == few(magic)


@pytest.mark.parametrize(("magic", "codec"), [(m, c) for m, c in MAGICS_AND_CODECS if m > 0])
def test_under_log_append_time_records_have_the_time_of_their_batch(magic: int, codec: Codec) -> None:
    """The broker stamps the batch or the wrapper, and leaves what is inside as it came."""
    name = f"magic-{magic}-{codec.name.lower()}-append-time"
    assert list(read_all_records(KAFKAS[name])) == few(magic, append_time=True)


@pytest.mark.parametrize(("magic", "codec"), [(m, c) for m, c in MAGICS_AND_CODECS if c])
def test_batches_of_many_compressed_blocks_are_read(magic: int, codec: Codec) -> None:
    """Xerial's snappy starts a new block after 32 kB, LZ4 after 64 kB."""
    found = list(read_all_records(KAFKAS[f"magic-{magic}-{codec.name.lower()}-large"]))
    assert [record.offset for record in found] == [7, 8, 9]
    assert [record.key for record in found] == [b"large-0", b"large-1", b"large-2"]
    assert {record.value for record in found} == {b"0123456789" * 4000}


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_batches_are_written_byte_for_byte_as_kafka_does(magic: int) -> None:
    """Without a codec there is only one way to write a batch."""
    if magic == 2:
        assert write_batch(few(2)) == KAFKAS["magic-2-none"]
    else:
        assert write_message_set(few(magic), magic=magic) == KAFKAS[f"magic-{magic}-none"]


def test_log_append_time_is_written_byte_for_byte_as_kafka_does() -> None:
    """The bit and the time are in the messages of magic 1 themselves."""
    assert (
        write_message_set(few(1), magic=1, log_append_time_ms=APPENDED) == KAFKAS["magic-1-none-append-time"]
    )


def test_headers_may_be_empty_null_or_beyond_ascii() -> None:
    """A header's value may be missing; its key may not, and is UTF-8."""
    headers = (("trace", b"abc"), ("empty", b""), ("null", None), ("ü你", "好".encode()))
    record = Record(0, T, key=b"k", value=b"v", headers=headers)
    assert list(read_all_records(KAFKAS["headers"])) == [record]
    assert write_batch([record]) == KAFKAS["headers"]


def test_a_transactional_batch_is_written_byte_for_byte_as_kafka_does() -> None:
    """Producer, epoch, sequence and leader epoch; the sequence numbers run over their end."""
    written = write_batch(
        few(2, first=40),
        leader_epoch=12,
        producer_id=4711,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        transactional=True,
    )
    assert written == KAFKAS["transactional"]
    (batch,) = read_batches(written)
    header = batch.header
    assert isinstance(header, BatchHeader)
    assert (header.is_transactional, header.is_control, header.has_producer_id) == (True, False, True)
    assert (header.producer_id, header.producer_epoch, header.partition_leader_epoch) == (4711, 3, 12)
    assert (header.base_sequence, header.last_sequence) == (2**31 - 2, 1)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 43, 44)


@pytest.mark.parametrize(
    ("name", "kind", "offset"), [("commit", ControlType.COMMIT, 44), ("abort", ControlType.ABORT, 45)]
)
def test_transaction_markers_are_written_and_read_as_kafka_does(
    name: str, kind: ControlType, offset: int
) -> None:
    """They end a transaction, and must never be taken for records: their keys look like offset commits."""
    written = write_control_batch(
        kind,
        offset=offset,
        timestamp=T,
        producer_id=4711,
        producer_epoch=3,
        coordinator_epoch=9,
        leader_epoch=12,
    )
    assert written == KAFKAS[name]
    (batch,) = read_batches(written)
    (marker,) = batch.control_records()
    assert (marker.type, marker.coordinator_epoch, marker.version) == (kind, 9, 0)
    assert (marker.offset, marker.timestamp) == (offset, T)
    assert list(batch.records()) == []
    assert list(read_all_records(written)) == []


def test_a_compacted_batch_keeps_its_range_of_offsets() -> None:
    """The records between are gone; the next batch still begins after the last offset."""
    (batch,) = read_batches(KAFKAS["gaps"])
    assert [(record.offset, record.timestamp) for record in batch.records()] == [(102, T + 7), (109, T + 2)]
    assert isinstance(batch.header, BatchHeader)
    assert (batch.header.base_offset, batch.header.next_offset) == (100, 110)
    kept = [Record(102, T + 7, key=b"a", value=b"1"), Record(109, T + 2, key=b"b", value=b"2")]
    assert write_batch(kept, base_offset=100) == KAFKAS["gaps"]


def test_a_batch_that_compaction_has_emptied_has_no_records() -> None:
    """It is kept to remember the producer's sequence number by."""
    (batch,) = read_batches(KAFKAS["empty"])
    assert list(batch.records()) == []
    assert isinstance(batch.header, BatchHeader)
    assert (batch.header.last_offset, batch.header.last_sequence) == (209, 26)
    emptied = write_batch([], codec=Codec.GZIP, base_offset=200, last_offset=209)
    assert list(read_all_records(emptied)) == []


def test_a_delete_horizon_does_not_move_the_timestamps() -> None:
    """It takes the base timestamp's place, and the deltas are counted from it."""
    (batch,) = read_batches(KAFKAS["delete-horizon"])
    assert isinstance(batch.header, BatchHeader)
    assert batch.header.delete_horizon_ms == T + 65_000
    assert list(batch.records()) == few(2)[2:]
