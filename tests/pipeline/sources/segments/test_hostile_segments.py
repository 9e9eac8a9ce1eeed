"""Files that are broken, or made to do harm: never an exception, never without end, never without bound."""

import struct
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelpie.pipeline.decoding import segment as segments
from kelpie.pipeline.decoding.compiled import PAD
from kelpie.pipeline.decoding.entries import HOSTILE, REASONS, Walk
from kelpie.pipeline.decoding.group_records import group_metadata
from kelpie.wire.records import Codec, Record, write_batch
from kelpie.wire.records.header import crc32c
from tests.evidence import unpacked
from tests.pipeline.decoding.whole_segments import read_bytes
from tests.pipeline.sources.segments.segments import batches, commit

MIB = 1 << 20
mutations = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "repeat", "number"]),
        st.integers(0, 1 << 16),
        st.integers(1, 255),
    ),
    min_size=1,
    max_size=8,
)


@cache
def real() -> tuple[bytes, ...]:
    """Beginnings of segments that Kafka wrote."""
    names = ("kafka-0.9.0.1-coordinator-outage", "kafka-4.3.1-coordinator-outage")
    files = [file for name in names for file in sorted(unpacked(name).rglob("__consumer_offsets-*/*.log"))]
    return tuple(file.read_bytes()[:6000] for file in files if file.stat().st_size)


def mutated(data: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    for kind, place, byte in changes:
        at = place % max(1, len(data))
        if kind == "flip":
            data = data[:at] + bytes([data[at] ^ byte]) + data[at + 1 :] if data else data
        elif kind == "cut":
            data = data[:at] + data[at + byte :]
        elif kind == "insert":
            data = data[:at] + bytes([byte]) * byte + data[at:]
        elif kind == "repeat":
            data = data[:at] + data[max(0, at - 4 * byte) : at] + data[at:]
        else:
            data = data[:at] + struct.pack(">i", (1 << 31) - byte) + data[at + 4 :]
    return data


def sealed(batch: bytes | bytearray) -> bytes:
    """With the checksum that it should have."""
    return bytes(batch[:17]) + struct.pack(">I", crc32c(memoryview(batch)[21:])) + bytes(batch[21:])


def covered(data: bytes) -> int:
    """Bytes that are in an entry or in a gap."""
    walk, total = Walk(0, len(data), len(data)), 0
    padded = np.frombuffer(data + bytes(PAD), np.uint8)
    while walk.at < walk.stop:
        entries, gaps = walk.step(padded[walk.at :], len(data) - walk.at)
        total += int(entries["size"].sum()) + int(gaps["size"].sum())
    return total


@given(st.integers(0, 1 << 10), mutations)
def test_mutated_segment_is_read_as_far_as_it_is_sound(which: int, changes: list[Any]) -> None:
    """Every byte is in an entry or told as a gap; nothing raises."""
    data = mutated(real()[which % len(real())], changes)
    assert covered(data) == len(data)
    read = read_bytes(data)
    group_metadata(read.others)


@given(st.integers(0, 1 << 10), st.integers(61, 4000), st.binary(min_size=1, max_size=12))
def test_records_that_lie_behind_a_right_checksum_are_told(which: int, place: int, junk: bytes) -> None:
    """A writer that errs: the batch sums up, and what is in it makes no sense."""
    data = real()[which % len(real())]
    size = 12 + struct.unpack_from(">i", data, 8)[0]
    batch = bytearray(data[:size])
    if batch[16] == 2 and len(batch) > 61:
        at = 61 + place % (len(batch) - 61)
        batch[at : at + len(junk)] = junk[: len(batch) - at]
        read = read_bytes(sealed(batch) + batches(1_000_000, 1))
        group_metadata(read.others)
        assert 1_000_000 in read.commits["log_offset"].to_pylist()


@given(st.binary(max_size=400))
def test_junk_is_one_gap_or_several(data: bytes) -> None:
    """Anything may lie in a folder."""
    assert covered(data) == len(data)
    read_bytes(data)


@given(
    st.one_of(st.none(), st.binary(max_size=60)),
    st.one_of(st.none(), st.binary(max_size=120)),
    st.integers(2, 24),
)
def test_records_of_groups_may_hold_anything(key: bytes | None, value: bytes | None, kind: int) -> None:
    """What cannot be read is told, and never raises."""
    record = Record(0, 0, key=struct.pack(">h", kind) + (key or b""), value=value)
    read = read_bytes(write_batch([record]))
    rows, unread = group_metadata(read.others)
    assert rows.num_rows + len(unread) >= 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_claimed_count_reserves_no_memory(codec: Codec) -> None:
    """A header of sixty bytes may claim two thousand million records."""
    batch = bytearray(write_batch([commit(0, 1)], codec=codec))
    struct.pack_into(">i", batch, 23, (1 << 31) - 2)
    struct.pack_into(">i", batch, 57, (1 << 31) - 1)
    read_bytes(sealed(batch))
    tracemalloc.start()
    read = read_bytes(sealed(batch))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * MIB
    assert len(read.unread) == 1


def test_compressed_batches_are_inflated_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a few kilobytes can inflate to gigabytes; it never does so at once."""
    monkeypatch.setattr(segments, "PIECE_BYTES", 64 * 1024)
    packed = write_batch([Record(0, 0, key=b"\0\1", value=bytes(MIB))], codec=Codec.ZSTD)
    read_bytes(packed)
    tracemalloc.start()
    read = read_bytes(packed * 40)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(packed) < 4096
    assert peak < 12 * MIB
    assert len(read.unread) == 40


def test_batch_that_inflates_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch has a limit of its own."""
    monkeypatch.setattr(segments, "INFLATED_LIMIT", MIB)
    bomb = write_batch([Record(0, 0, key=b"\0\1", value=bytes(2 * MIB))], codec=Codec.ZSTD)
    read = read_bytes(bomb + batches(1, 2))
    assert read.commits.num_rows == 2
    assert "inflate to more than" in read.unread[0].reason


def test_search_has_a_budget() -> None:
    """Headers everywhere, each claiming the rest of the file, would cost the square of its size."""
    header = bytearray(write_batch([], base_offset=0, last_offset=0))
    size = 8 * MIB
    struct.pack_into(">i", header, 8, size // 2)
    data = (bytes(header) * (size // len(header) + 1))[:size]
    read = read_bytes(data)
    assert [gap.reason for gap in read.unread] == [REASONS[HOSTILE]]
    assert read.unread[0].size == size
    assert len(read.unread[0].head) == segments.QUOTED_BYTES


def test_quotes_of_broken_records_are_bounded() -> None:
    """One big batch of broken records quotes each record, and not each time the whole batch."""
    broken = [Record(number, 0, key=b"\0\1??", value=b"!") for number in range(5000)]
    read = read_bytes(write_batch(broken))
    assert len(read.unread) == 5000
    assert {gap.head for gap in read.unread} == {b"\0\1??!"}


def test_time_that_nothing_could_show_is_none() -> None:
    """A year above 9999 breaks every reader of the table."""
    late = write_batch([Record(0, 1 << 60, key=commit(0, 5).key, value=commit(0, 5).value)])
    assert read_bytes(late).commits["written"].to_pylist() == [None]


def test_more_rows_than_one_piece_come_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are bounded as well as bytes, and nothing is lost where one piece ends."""
    monkeypatch.setattr(segments, "PIECE_ROWS", 7)
    data = write_batch([commit(number, number, group=f"g{number % 5}") for number in range(100)])
    read = read_bytes(data)
    assert read.commits["offset"].to_pylist() == list(range(100))
    assert read.commits["group"].to_pylist() == [f"g{number % 5}" for number in range(100)]


def test_entry_longer_than_a_piece_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may be bigger than what is read at a time."""
    monkeypatch.setattr(segments, "PIECE_BYTES", 200)
    data = batches(0, 2) + write_batch([commit(number, number) for number in range(2, 60)]) + batches(60, 3)
    assert read_bytes(data).commits["log_offset"].to_pylist() == list(range(63))


def test_file_that_is_cut_while_it_is_read_ends_there(tmp_path: Path) -> None:
    """A broker truncates its log when it learns that it had diverged."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batches(0, 10))
    with path.open("rb") as file:
        reader = segments.Reader(file)
        path.write_bytes(batches(0, 4))
        assert sum(piece.commits.num_rows for piece in reader) == 4


def test_key_of_a_negative_type_keeps_its_row() -> None:
    """The column is never null, whatever a writer made of the key."""
    read = read_bytes(write_batch([Record(0, 1000, key=struct.pack(">h", -5) + b"key", value=b"")]))
    assert read.others["key_type"].to_pylist() == [-1]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=60))
@settings(max_examples=20)
def test_names_that_are_not_utf8_are_read_as_java_reads_them(names: list[bytes]) -> None:
    """Kafka takes any bytes for a name: the row shows replacement characters, also if a name comes again."""
    names += names[:5]
    records = [
        Record(
            number,
            1000,
            key=struct.pack(">hh", 1, len(name)) + name + struct.pack(">h1si", 1, b"t", 0),
            value=struct.pack(">hqh", 0, 5, len(name)) + name + struct.pack(">q", 1000),
        )
        for number, name in enumerate(names)
    ]
    commits = read_bytes(write_batch(records)).commits
    expected = [name.decode("utf-8", "replace") for name in names]
    assert commits["group"].to_pylist() == commits["metadata"].to_pylist() == expected
