"""Control records that are not plain commit and abort markers."""

import struct

import pytest

from kelpie.wire.malformed import Malformed, Unencodable
from kelpie.wire.records import (
    ControlType,
    Record,
    parse_control_record,
    read_batches,
    write_batch,
    write_control_batch,
)
from tests.wire.records.strategies import T


def key(version: int, kind: int) -> bytes:
    return struct.pack(">hh", version, kind)


@pytest.mark.parametrize(
    "kind", [ControlType.LEADER_CHANGE, ControlType.SNAPSHOT_HEADER, ControlType.KRAFT_VOTERS]
)
def test_control_records_of_kraft_keep_their_value(kind: ControlType) -> None:
    """They are in metadata logs, and their values have schemas of their own."""
    data = write_batch([Record(4, T, key=key(0, kind), value=b"\x00\x01abc")], control=True)
    (batch,) = read_batches(data)
    (record,) = batch.control_records()
    assert (record.type, record.coordinator_epoch, record.value) == (kind, None, b"\x00\x01abc")


def test_a_type_of_a_newer_kafka_is_unknown_and_not_an_error() -> None:
    """Kafka itself skips what it does not know."""
    record = parse_control_record(Record(0, T, key=key(0, 99), value=None))
    assert (record.type, record.type_id) == (ControlType.UNKNOWN, 99)


def test_newer_versions_of_a_marker_are_read_as_far_as_they_are_known() -> None:
    """Fields are only ever appended."""
    value = struct.pack(">hi", 1, 12) + b"more"
    record = parse_control_record(Record(0, T, key=key(1, 1) + b"more", value=value))
    assert (record.type, record.version, record.coordinator_epoch) == (ControlType.COMMIT, 1, 12)


@pytest.mark.parametrize(
    ("key_", "value"),
    [
        (None, b"\x00\x00\x00\x00\x00\x01"),
        (b"\x00\x00\x00", b"\x00\x00\x00\x00\x00\x01"),
        (key(-1, 1), b"\x00\x00\x00\x00\x00\x01"),
        (key(0, 1), None),
        (key(0, 0), b"\x00\x00\x00\x00\x00"),
        (key(0, 0), b"\xff\xff\x00\x00\x00\x01"),
    ],
)
def test_a_broken_control_record_is_malformed(key_: bytes | None, value: bytes | None) -> None:
    """A marker that cannot be read must not end a transaction."""
    data = write_batch([Record(0, T, key=key_, value=value)], control=True)
    (batch,) = read_batches(data)
    with pytest.raises(Malformed):
        list(batch.control_records())


def test_only_commit_and_abort_end_a_transaction() -> None:
    """The other types have other values."""
    with pytest.raises(Unencodable):
        write_control_batch(
            ControlType.LEADER_CHANGE,
            offset=0,
            timestamp=T,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
        )
