"""The compiled decoder of segments, judged by the codec, which reads the same bytes one by one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.pipeline.decoding.checksums import CRC32, CRC32C, checksum, checksum_of_batch
from kelpie.pipeline.decoding.compiled import PAD
from kelpie.pipeline.decoding.segment import Read, Reader
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import (
    Codec,
    ControlType,
    Record,
    read_batches,
    write_batch,
    write_control_batch,
    write_message_set,
)
from kelpie.wire.records.header import crc32c
from tests.evidence import unpacked
from tests.pipeline.decoding.whole_segments import read_bytes, read_segment

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
moments = st.integers(0, 1 << 42)
values = st.builds(
    OffsetCommitValue,
    offset=st.integers(0, 1 << 60),
    leader_epoch=st.integers(-1, 1 << 30),
    metadata=names,
    commit_timestamp=moments,
    expire_timestamp=moments,
)
keys = st.builds(OffsetCommitKey, group=names, topic=names, partition=st.integers(0, 1 << 20))
commits = st.tuples(keys, st.one_of(st.none(), st.tuples(values, st.integers(0, 4))))
codecs = st.sampled_from(list(Codec))


def record(offset: int, commit: tuple[Any, Any]) -> Record:
    key, value = commit
    encoded = None if value is None else offsets_topic.encode_value(*value)
    return Record(offset, 1000 + offset, key=offsets_topic.encode_key(key), value=encoded)


def segment(commits: Sequence[tuple[Any, Any]], sizes: Sequence[tuple[int, Codec]], magic: int) -> bytes:
    """The commits one after the other, in batches of these sizes and codecs."""
    data, at = b"", 0
    for size, codec in sizes:
        records = [record(at + place, commit) for place, commit in enumerate(commits[at : at + size])]
        if not records:
            break
        if magic == 2:
            data += write_batch(records, codec=codec)
        else:
            data += write_message_set(
                records, magic=magic, codec=Codec.NONE if codec is Codec.ZSTD else codec
            )
        at += len(records)
    return data


def seen(read: Read) -> list[tuple[Any, ...]]:
    columns = ("log_offset", "group", "topic", "partition", "offset", "metadata", "leader_epoch", "committed")
    return sorted(zip(*(read.commits[name].to_pylist() for name in columns), strict=True))


def expected(data: bytes) -> list[tuple[Any, ...]]:
    """By the codec."""
    rows: list[tuple[Any, ...]] = []
    batches = (batch for batch in read_batches(data) if not getattr(batch.header, "is_control", False))
    for each in (record for batch in batches for record in batch.records()):
        record_type, key = offsets_topic.decode_key(each.key)
        if record_type > 1:
            continue
        value = offsets_topic.decode_value(record_type, each.value)
        row = (each.offset, key.group, key.topic, key.partition)
        if value is None:
            rows.append((*row, None, None, None, None))
        else:
            epoch = None if value.leader_epoch < 0 else value.leader_epoch
            when = datetime.fromtimestamp(value.commit_timestamp // 1000, UTC)
            when = when.replace(microsecond=value.commit_timestamp % 1000 * 1000)
            rows.append((*row, value.offset, value.metadata, epoch, when))
    return sorted(rows)


def whole(data: bytes) -> Read:
    return read_bytes(data)


@given(st.binary(max_size=64))
def test_checksums_are_those_of_zlib_and_of_batches(data: bytes) -> None:
    """A wrong checksum would turn sound data away, or let broken data in."""
    array = np.frombuffer(data + bytes(PAD), np.uint8)
    begin = array.ctypes.data
    end = begin + len(data)
    assert checksum(begin, end, CRC32.ctypes.data) == crc32(data)
    assert checksum(begin, end, CRC32C.ctypes.data) == crc32c(memoryview(data))
    assert checksum_of_batch(begin, end, CRC32C.ctypes.data) == crc32c(memoryview(data))


@given(
    st.lists(commits, max_size=30),
    st.lists(st.tuples(st.integers(1, 9), codecs), max_size=30),
    st.integers(0, 2),
)
def test_reads_what_the_codec_reads(
    commits: list[tuple[Any, Any]], sizes: list[tuple[int, Codec]], magic: int
) -> None:
    """Every magic, codec and version of a value; tombstones; any name."""
    data = segment(commits, sizes, magic)
    read = whole(data)
    assert read.unread == ()
    assert seen(read) == expected(data)


@given(st.lists(commits, min_size=1, max_size=30), st.data())
def test_file_that_grows_is_read_on_from_where_it_ended(
    commits: list[tuple[Any, Any]], draw: st.DataObject
) -> None:
    """A broker writes on, also in the middle of a batch, which is then read the next time."""
    data = segment(commits, [(3, Codec.NONE)] * 10, 2)
    first = Reader(BytesIO(data[: draw.draw(st.integers(0, len(data)))]))
    earlier = [row for read in first for row in seen(read)]
    later = [row for read in Reader(BytesIO(data), min(first.end, first.tail)) for row in seen(read)]
    assert earlier + later == seen(whole(data))


@given(st.lists(commits, min_size=4, max_size=20), st.data())
def test_broken_bytes_cost_only_their_own_batch(commits: list[tuple[Any, Any]], draw: st.DataObject) -> None:
    """A flipped bit on a disk must not hide the rest of the file."""
    batches = [write_batch([record(number, commit)]) for number, commit in enumerate(commits)]
    hurt = draw.draw(st.integers(0, len(batches) - 1))
    place = draw.draw(st.integers(16, len(batches[hurt]) - 1))  # Offset and leader epoch have no checksum.
    broken = bytearray(batches[hurt])
    broken[place] ^= draw.draw(st.integers(1, 255))
    data = b"".join(batches[:hurt]) + bytes(broken) + b"".join(batches[hurt + 1 :])
    read = whole(data)
    others = b"".join(batches[:hurt]) + b"".join(batches[hurt + 1 :])
    assert seen(read) == expected(others)
    start = sum(map(len, batches[:hurt]))
    assert [(gap.position, gap.size) for gap in read.unread] == [(start, len(broken))]


@given(st.lists(commits, min_size=1, max_size=5), st.integers(1, 200))
def test_torn_tail_is_told(commits: list[tuple[Any, Any]], missing: int) -> None:
    """A broker that was killed leaves half a batch behind."""
    data = write_batch([record(number, commit) for number, commit in enumerate(commits)])
    torn = data[: max(1, len(data) - missing)]
    (gap,) = whole(data + torn).unread
    assert (gap.position, gap.size) == (len(data), len(torn))


def test_markers_and_other_records_are_kept() -> None:
    """Whether a transactional commit counts is known only by its marker; groups have records of their own."""
    offset = record(
        5,
        (
            OffsetCommitKey(group="g", topic="t", partition=0),
            (OffsetCommitValue(offset=9, metadata="", commit_timestamp=1), 3),
        ),
    )
    data = write_batch([offset], producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    data += write_control_batch(
        ControlType.ABORT, offset=6, timestamp=1, producer_id=7, producer_epoch=1, coordinator_epoch=0
    )
    data += write_batch([Record(7, 2, key=offsets_topic.encode_key(GroupMetadataKey(group="g")), value=None)])
    read = whole(data)
    assert read.commits["is_transactional"].to_pylist() == [True]
    assert read.markers.select(["log_offset", "producer_id", "is_commit"]).to_pylist() == [
        {"log_offset": 6, "producer_id": 7, "is_commit": False}
    ]
    assert read.others.select(["key_type", "value"]).to_pylist() == [{"key_type": 2, "value": None}]


@pytest.mark.parametrize("name", ["kafka-0.9.0.1-coordinator-outage", "kafka-4.3.1-coordinator-outage"])
def test_segments_of_real_brokers_are_read_whole(name: str) -> None:
    """What Kafka itself wrote, old and new, on disks of brokers that were killed."""
    files = sorted(unpacked(name).rglob("__consumer_offsets-*/*.log"))
    assert files
    for file in files:
        read = read_segment(file)
        assert read.unread == ()
        assert seen(read) == expected(file.read_bytes())
