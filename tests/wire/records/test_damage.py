"""Buffers that end too early, and buffers that are broken in the middle."""

import random

import pytest

from kelpie.wire.malformed import Malformed
from kelpie.wire.records import (
    Corrupt,
    Record,
    TornBatch,
    read_all_records,
    read_batches,
    write_batch,
    write_message_set,
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
        assert batches.corrupt == []


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


def test_a_broken_batch_is_skipped_on_request_and_the_others_are_read() -> None:
    """One bad sector must not hide the rest of a segment."""
    one, two, three = (write_batch(plain(3, first)) for first in (0, 3, 6))
    broken = bytearray(two)
    broken[-1] ^= 1
    data = one + broken + three
    with pytest.raises(Malformed) as raised:
        list(read_batches(data))
    assert (raised.value.offset, raised.value.path) == (len(one), "crc")
    batches = read_batches(data, skip_corrupt=True)
    assert [batch.position for batch in batches] == [0, len(one) + len(two)]
    assert batches.corrupt == [Corrupt(len(one), len(two), raised.value.reason)]
    assert batches.torn is None


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("length", [-1, 0, 13, 30, 100_000, 2**31 - 1])
def test_a_broken_length_does_not_hide_the_batches_behind_it(magic: int, length: int) -> None:
    """Nothing says then where the next one begins, but its own checksum."""

    def made(first: int) -> bytes:
        return write_batch(plain(2, first)) if magic == 2 else write_message_set(plain(1, first), magic=magic)

    one, two, three = made(0), made(2), made(4)
    broken = two[:8] + length.to_bytes(4, "big", signed=True) + two[12:]
    batches = read_batches(one + broken + three, skip_corrupt=True)
    assert [batch.position for batch in batches] == [0, len(one) + len(two)]
    assert [(c.position, c.size) for c in batches.corrupt] == [(len(one), len(two))]
    assert batches.torn is None


def test_a_lost_page_is_skipped_and_reported_as_one_stretch() -> None:
    """A page of zeros, or of another file, may begin and end in the middle of batches."""
    data = b"".join(write_batch(plain(4, first)) for first in range(0, 400, 4))
    for filling in (bytes(4096), random.Random(7).randbytes(4096)):
        broken = data[:5000] + filling + data[9096:]
        batches = read_batches(broken, skip_corrupt=True)
        found = [record.offset for batch in batches for record in batch.records()]
        lost = sorted(set(range(400)) - set(found))
        assert lost == list(range(lost[0], lost[-1] + 1))
        (corrupt,) = batches.corrupt
        assert corrupt.position <= 5000
        assert corrupt.position + corrupt.size >= 9096
        assert batches.torn is None


@pytest.mark.parametrize("name", [OLD, NEW])
def test_damage_costs_no_batch_that_it_did_not_touch(name: str) -> None:
    """Recovery is judged by what it loses. Bits flip, sectors become zeros or something else."""
    data = small_segment(name)
    whole = [(batch.position, batch.position + batch.size) for batch in read_batches(data)]
    chance = random.Random(11)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(chance.choice((1, 3))):
            at, size = chance.randrange(len(data) - 200), chance.choice((1, 16, 200))
            broken[at : at + size] = chance.choice((bytes(size), chance.randbytes(size)))
        batches = read_batches(broken, skip_corrupt=True)
        found = {batch.position for batch in batches}
        assert {start for start, end in whole if broken[start:end] == data[start:end]} <= found
        covered = found | {c.position for c in batches.corrupt}
        assert (batches.torn is not None) or min(covered) == 0


def test_damage_before_a_torn_end_leaves_both_reported() -> None:
    """The end of the file is still where a broker would go on writing."""
    one, two = write_batch(plain(3)), write_batch(plain(3, 3))
    broken = bytearray(one)
    broken[30] ^= 1
    batches = read_batches(bytes(broken) + two + one[:40], skip_corrupt=True)
    assert [batch.position for batch in batches] == [len(one)]
    assert [c.position for c in batches.corrupt] == [0]
    assert batches.torn is not None
    assert (batches.torn.position, batches.torn.size) == (len(one) + len(two), 40)


def test_a_batch_inside_a_torn_record_is_not_taken_for_one_of_the_log() -> None:
    """Records may hold batches, as those of a mirror do; their offsets give them away."""
    inner = write_batch(plain(3, 5))
    first, second = write_batch(plain(3, 90)), write_batch([Record(100, T, value=inner + b"y" * 100)])
    batches = read_batches(first + second[:-10], skip_corrupt=True)
    assert [batch.position for batch in batches] == [0]
    assert batches.corrupt == []
    assert batches.torn is not None
    assert batches.torn.position == len(first)


def test_the_search_behind_damage_ends_even_where_every_byte_claims_a_batch() -> None:
    """Hostile bytes must not cost the square of their number."""
    claim = bytes(8) + (100_000).to_bytes(4, "big") + bytes(4) + b"\x00\x00"
    batches = read_batches(b"\xff" * 20 + claim * 20_000, skip_corrupt=True)
    assert list(batches) == []
    (corrupt,) = batches.corrupt
    assert corrupt.size == 20 + len(claim) * 20_000


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
