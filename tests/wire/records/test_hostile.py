"""Bytes that were made to hurt: whatever they are, they read, or they are Malformed."""

import random
import struct
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.wire.malformed import Malformed
from kelpie.wire.records import Codec, Record, read_all_records, read_batches, write_batch, write_message_set
from kelpie.wire.records.compression import compress, inflate
from tests.wire.records.batch_bytes import kafkas_own, one_of_each, patched, plain, with_right_crc
from tests.wire.records.strategies import MAGICS_AND_CODECS, T

MIB = 1 << 20
MUTATIONS = 20_000


def drain(data: bytes, limit: int = MIB) -> str:
    """Read everything there is, and let nothing but Malformed pass."""
    outcome = "read"
    try:
        for batch in read_batches(data):
            try:
                for record in batch.records(inflated_limit=limit):
                    assert -(2**63) <= record.offset < 2**63
                    assert -(2**63) <= record.timestamp < 2**63
                list(batch.control_records(inflated_limit=limit))
            except Malformed:
                outcome = "malformed"
    except Malformed:
        outcome = "malformed"
    return outcome


def mutated(seed: bytes, chance: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data)) if chance.random() < 0.6 else chance.randrange(min(len(data), 80))
        match chance.randrange(6):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 3:
                data[at : at + 4] = struct.pack(">i", chance.choice((-1, 0, 1, 13, 2**31 - 1, -(2**31))))
            case 4:
                del data[at : at + chance.randrange(1, 20)]
            case _:
                data[at:at] = chance.randbytes(chance.randrange(1, 8))
        if not data:
            data = bytearray(b"\x00")
    if chance.random() < 0.7:
        # Most mutations would end at the checksum or the length; these get past both.
        if chance.random() < 0.8 and len(data) > 17:
            struct.pack_into(">i", data, 8, len(data) - 12)
        return with_right_crc(data)
    return bytes(data)


def test_mutated_batches_read_or_are_malformed() -> None:
    """Whatever a disk, a network or an attacker does to a batch, one error says so, and nothing hangs."""
    chance = random.Random(20_000)
    seeds = [data for data in (*one_of_each().values(), *kafkas_own().values()) if len(data) < 2000]
    assert len(seeds) > 30
    outcomes = [drain(mutated(chance.choice(seeds), chance)) for _ in range(MUTATIONS)]
    # Were all of them malformed, nothing behind the checksums would have been tried.
    assert 0.02 < outcomes.count("read") / MUTATIONS < 0.9


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_read_or_are_malformed(data: bytes) -> None:
    """Also what never was a batch."""
    drain(data)


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=150, deadline=None)
@given(payload=st.binary(max_size=120), count=st.integers(0, 20))
def test_any_payload_behind_a_right_checksum_reads_or_is_malformed(
    codec: Codec, payload: bytes, count: int
) -> None:
    """A checksum says that bytes arrived as they were sent, not that they make sense."""
    head = write_batch([], base_offset=0, last_offset=0, codec=codec)
    data = patched(head + payload, 57, ">i", count)
    drain(patched(data, 8, ">i", len(data) - 12))
    inside = patched(head + compress(codec, payload, magic=2), 57, ">i", count)
    drain(patched(inside, 8, ">i", len(inside) - 12))


@pytest.mark.parametrize(("magic", "codec"), [(m, c) for m, c in MAGICS_AND_CODECS if c])
def test_a_bomb_is_refused_before_it_takes_memory(magic: int, codec: Codec) -> None:
    """A few kilobytes that inflate to 64 MB: the limit holds, and memory with it."""
    bomb = [Record(0, T, value=bytes(64 * MIB))]
    batch = write_batch(bomb, codec=codec) if magic == 2 else None
    data = batch or write_message_set(bomb, magic=magic, codec=codec)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match=r"inflate to more than 1048576 bytes|claim to hold"):
            list(read_all_records(data, inflated_limit=MIB))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The value of a wrapper is copied once, and snappy's are 3 MB long.
    assert peak < 3 * MIB + 2 * len(data)


def test_many_records_in_few_bytes_do_not_take_memory_at_once() -> None:
    """A megabyte of empty records would be 30 MB of objects; they come one by one."""
    data = write_batch([Record(i, 0) for i in range(150_000)], codec=Codec.ZSTD)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_all_records(data)) == 150_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * MIB


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_the_limit_is_exact(codec: Codec) -> None:
    """What just fits is read, and one byte more is not."""
    size = len(write_batch(plain(200))) - 61
    data = write_batch(plain(200), codec=codec)
    assert len(list(read_all_records(data, inflated_limit=size))) == 200
    with pytest.raises(Malformed):
        list(read_all_records(data, inflated_limit=size - 1))


def test_a_snappy_block_that_claims_gigabytes_is_refused_unread() -> None:
    """Its length comes first, and the library would make room for it."""
    claim = memoryview(b"\xff\xff\xff\xff\x0f" + b"\x00" * 20)
    with pytest.raises(Malformed):
        inflate(Codec.SNAPPY, claim, magic=2, limit=MIB, where=0)
    with pytest.raises(Malformed, match="claim to hold"):
        inflate(Codec.SNAPPY, memoryview(b"\x80\x80\x20" + bytes(20)), magic=2, limit=MIB, where=0)


def test_a_wrapper_whose_messages_do_not_advance_is_malformed() -> None:
    """A length of -12 leads back to where it stands; aiokafka's own reader never returns from it."""
    inner = bytearray(write_message_set([Record(0, T, value=b"v")], magic=1))
    struct.pack_into(">i", inner, 8, -12)
    wrapper = write_message_set([Record(5, T, value=compress(Codec.GZIP, bytes(inner), magic=1))], magic=1)
    data = with_right_crc(wrapper[:17] + b"\x01" + wrapper[18:])
    with pytest.raises(Malformed):
        list(read_all_records(data))


def test_a_wrapper_inside_a_wrapper_is_malformed() -> None:
    """One level is all that Kafka ever wrote; more would be a way to inflate without a limit."""
    inner = write_message_set(plain(2), magic=1, codec=Codec.GZIP)
    wrapper = write_message_set([Record(5, T, value=compress(Codec.GZIP, inner, magic=1))], magic=1)
    with pytest.raises(Malformed, match="inside a compressed message"):
        list(read_all_records(with_right_crc(wrapper[:17] + b"\x01" + wrapper[18:])))


def test_a_gzip_stream_of_thousands_of_members_is_read_in_time() -> None:
    """What one leaves over must not be copied for each of the others."""
    member = compress(Codec.GZIP, b"x", magic=2)
    many = memoryview(member * 50_000)
    assert inflate(Codec.GZIP, many, magic=2, limit=MIB, where=0) == b"x" * 50_000


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_compressed_stream_that_is_cut_or_continued_is_malformed(codec: Codec) -> None:
    """Half a stream may inflate to half of the records, without an error."""
    whole = compress(codec, b"some records " * 100, magic=2)
    assert bytes(inflate(codec, memoryview(whole), magic=2, limit=MIB, where=0)) == b"some records " * 100
    for broken in (whole[:-1], whole[:-5], whole[:3], whole + b"\x01\x02\x03\x04\x05"):
        with pytest.raises(Malformed):
            inflate(codec, memoryview(broken), magic=2, limit=MIB, where=0)


def test_snappy_without_xerials_framing_is_read() -> None:
    """librdkafka and others write plain snappy."""
    raw = bytes(cramjam.snappy.compress_raw(b"abc" * 1000))
    assert bytes(inflate(Codec.SNAPPY, memoryview(raw), magic=2, limit=MIB, where=0)) == b"abc" * 1000


def test_joined_snappy_streams_and_odd_version_numbers_are_read() -> None:
    """Xerial's reader allows the first; some writers get the byte order of the version wrong."""
    one = bytearray(compress(Codec.SNAPPY, b"abc" * 1000, magic=2))
    one[8:16] = struct.pack("<ii", 1, 1)
    assert bytes(inflate(Codec.SNAPPY, memoryview(one + one), magic=2, limit=MIB, where=0)) == b"abc" * 2000


def test_checksums_of_gzip_are_looked_at() -> None:
    """A flipped bit in the trailer is a flipped bit."""
    whole = bytearray(compress(Codec.GZIP, b"abc" * 100, magic=2))
    whole[-6] ^= 1
    assert zlib.decompressobj(31)
    with pytest.raises(Malformed, match="gzip"):
        inflate(Codec.GZIP, memoryview(whole), magic=2, limit=MIB, where=0)
