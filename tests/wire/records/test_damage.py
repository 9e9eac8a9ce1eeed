"""Buffers that end too early, and buffers that are broken in the middle."""

import pytest

from kelpie.wire.malformed import Malformed
from kelpie.wire.records import (
    Record,
    TornBatch,
    read_all_records,
    read_batches,
    write_batch,
)
from tests.evidence import unpacked
from tests.wire.records.batch_bytes import one_of_each, patched, plain
from tests.wire.records.strategies import T

NEW, OLD = "kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"
EACH = one_of_each()


def small_segment(name: str) -> bytes:
    smallest = min(unpacked(name).glob("segments/*/*/*.log"), key=lambda path: path.stat().st_size)
    return smallest.read_bytes()


@pytest.mark.parametrize("name", [OLD, NEW])
def test_a_segment_torn_at_any_byte_yields_all_whole_batches_and_says_where_it_ends(name: str) -> None:
    """A broker that dies leaves its last write half done."""
    data = small_segment(name)[:2500]
    whole = read_batches(data)
    starts = [batch.position for batch in whole]
    ends = starts[1:] + ([len(data)] if whole.torn is None else [whole.torn.position])
    for cut in range(len(data) + 1):
        batches = read_batches(data[:cut])
        found = [batch.position for batch in batches]
        assert found == [start for start, end in zip(starts, ends, strict=True) if end <= cut]
        last = max((end for end in ends if end <= cut), default=0)
        if last == cut:
            assert batches.torn is None
        else:
            assert batches.torn is not None
            assert (batches.torn.position, batches.torn.size) == (last, cut - last)


def test_a_torn_batch_says_how_long_it_wants_to_be() -> None:
    """A fetch that was too small for one batch can be made again with the right size."""
    data = write_batch(plain(3))
    batches = read_batches(data[:-1])
    assert list(batches) == []
    assert batches.torn == TornBatch(
        0, len(data) - 1, len(data), f"{len(data) - 1} of {len(data)} bytes are there"
    )
    batches = read_batches(data[:10])
    assert list(batches) == []
    assert batches.torn is not None
    assert batches.torn.needed is None


def test_space_that_was_never_written_is_a_torn_end() -> None:
    """Preallocated segments, and pages lost with the power, are zeros to the end."""
    data = write_batch(plain(3))
    batches = read_batches(data + bytes(5_000_000))
    assert len(list(batches)) == 1
    assert batches.torn is not None
    assert (batches.torn.position, batches.torn.size) == (len(data), 5_000_000)


@pytest.mark.parametrize("name", EACH)
def test_a_flipped_bit_anywhere_behind_the_length_is_found_out(name: str) -> None:
    """The checksum covers what follows it; the checksum itself and the magic speak for themselves."""
    data = EACH[name]
    first = next(read_batches(data)).size
    outside = range(12, 16) if data[16] == 2 else range(0)  # the leader epoch of magic 2
    for position in range(12, first):
        if position in outside:
            continue
        for bit in range(8):
            broken = bytearray(data)
            broken[position] ^= 1 << bit
            with pytest.raises(Malformed):
                list(read_batches(broken))


def test_a_broken_batch_ends_the_reading_where_it_begins() -> None:
    """The batches before it are read, and the error names its first byte."""
    one, two, three = (write_batch(plain(3, first)) for first in (0, 3, 6))
    broken = bytearray(two)
    broken[-1] ^= 1
    batches = read_batches(one + broken + three)
    assert next(batches).position == 0
    with pytest.raises(Malformed) as raised:
        next(batches)
    assert (raised.value.offset, raised.value.path) == (len(one), "crc")
    assert batches.torn is None


def test_checksums_can_be_left_alone() -> None:
    """Whoever has checked a batch already need not pay for it again."""
    data = bytearray(write_batch([Record(0, T, value=b"abcd")]))
    data[-2] ^= 1
    (batch,) = read_batches(data, crc=False)
    (record,) = batch.records()
    assert record.value != b"abcd"


@pytest.mark.parametrize("count", [-1, 0x7FFFFFFF, 6, 4])
def test_a_count_that_the_records_do_not_bear_out_is_malformed(count: int) -> None:
    """Too few would drop records silently; too many must not be believed before they are seen."""
    data = patched(write_batch(plain(5)), 57, ">i", count)
    with pytest.raises(Malformed):
        list(read_all_records(data))


def test_a_batch_broken_half_way_yields_what_comes_before() -> None:
    """What can still be read is worth having in an outage."""
    made = [Record(i, T, value=b"v" * 10) for i in range(10)]
    data = bytearray(write_batch(made))
    size = (len(data) - 61) // 10
    data[61 + 7 * size] = 0x7E  # the length of the eighth record
    readable: list[Record] = []
    with pytest.raises(Malformed) as raised:
        readable.extend(read_all_records(patched(bytes(data), 57, ">i", 10)))
    assert readable == made[:7]
    assert raised.value.path == "records[7]"
    assert raised.value.offset == 61 + 7 * size
