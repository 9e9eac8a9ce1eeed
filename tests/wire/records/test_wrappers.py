"""Offsets and timestamps of messages inside a wrapper."""

import struct

import pytest

from kelpie.wire.malformed import Malformed
from kelpie.wire.records import Codec, Record, TimestampType, read_all_records, write_message_set
from kelpie.wire.records.compression import compress
from tests.wire.records.batch_bytes import with_right_crc
from tests.wire.records.strategies import T


def wrapper(inside: bytes, magic: int, offset: int, attributes: int = 1, timestamp: int = T + 50) -> bytes:
    made = write_message_set(
        [Record(offset, timestamp, value=compress(Codec.GZIP, inside, magic=magic))], magic=magic
    )
    return with_right_crc(made[:17] + bytes([attributes]) + made[18:])


def messages(magic: int, *offsets: int) -> bytes:
    return write_message_set([Record(offset, T + offset, value=b"v") for offset in offsets], magic=magic)


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in read_all_records(data)]


def test_in_magic_0_the_messages_inside_have_their_own_offsets() -> None:
    """A broker of 0.9 compresses anew to write them."""
    assert offsets(wrapper(messages(0, 40, 41, 47), 0, 47)) == [40, 41, 47]


def test_in_magic_1_they_are_counted_back_from_the_wrapper() -> None:
    """Compaction leaves gaps inside: the last one is the wrapper's own."""
    assert offsets(wrapper(messages(1, 0, 1, 7), 1, 1007)) == [1000, 1001, 1007]


def test_a_wrapper_at_offset_0_leaves_them_as_they_are() -> None:
    """Some versions of librdkafka send it so, and Kafka allows for it."""
    assert offsets(wrapper(messages(1, 0, 1, 2), 1, 0)) == [0, 1, 2]


def test_a_wrapper_with_a_smaller_offset_than_its_messages_is_malformed() -> None:
    """Offsets would be negative; Kafka refuses it too."""
    with pytest.raises(Malformed, match="a wrapper at offset 1 "):
        offsets(wrapper(messages(1, 0, 1, 2), 1, 1))


def test_under_log_append_time_the_wrapper_gives_the_time() -> None:
    """The broker stamps only the wrapper."""
    found = list(read_all_records(wrapper(messages(1, 0, 1), 1, 11, attributes=1 | 8)))
    assert [(r.timestamp, r.timestamp_type) for r in found] == [(T + 50, TimestampType.LOG_APPEND)] * 2


def test_messages_of_magic_0_inside_a_wrapper_of_magic_1_have_no_time() -> None:
    """Converted topics hold them."""
    (found,) = read_all_records(wrapper(messages(0, 0), 1, 11))
    assert (found.offset, found.timestamp, found.timestamp_type) == (11, -1, TimestampType.NONE)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(wrapper(b"", 1, 5), id="nothing inside"),
        pytest.param(wrapper(messages(1, 0, 1)[:-1], 1, 5), id="cut short inside"),
        pytest.param(wrapper(messages(1, 0)[:16] + b"\x02" + messages(1, 0)[17:], 1, 5), id="magic 2 inside"),
        pytest.param(wrapper(messages(1, 0)[:-1] + b"?", 1, 5), id="checksum inside"),
        pytest.param(wrapper(messages(1, 2**62, -(2**62)), 1, 2**62), id="offsets beyond 63 bits"),
        pytest.param(wrapper(messages(1, 0), 1, 5, attributes=4), id="zstd"),
        pytest.param(wrapper(messages(1, 0), 1, 5, attributes=6), id="unknown codec"),
        pytest.param(
            with_right_crc(
                write_message_set([Record(5, T)], magic=1)[:17] + b"\x01" + struct.pack(">qii", T, -1, -1)
            ),
            id="no value",
        ),
    ],
)
def test_a_wrapper_that_holds_no_messages_is_malformed(data: bytes) -> None:
    """The wrapper's checksum is right, so only a look inside can tell."""
    with pytest.raises(Malformed):
        offsets(data)
