"""Segment files of real brokers, read by us and by kafka-python."""

from pathlib import Path

import pytest

from kelpie.wire.records import ControlType, Record, read_all_records, read_batches
from tests.evidence import unpacked
from tests.wire.records import oracle

OLD, NEW = "kafka-0.9.0.1-coordinator-outage", "kafka-4.3.1-coordinator-outage"


def segments(name: str) -> list[Path]:
    return sorted(unpacked(name).glob("segments/*/*/*.log"))


@pytest.mark.parametrize(("name", "files", "magic"), [(OLD, 20, 0), (NEW, 22, 2)])
def test_every_segment_of_a_recording_reads_as_kafka_python_reads_it(
    name: str, files: int, magic: int
) -> None:
    """Real disks are what this is for: every record, its offset, timestamp, key and value."""
    assert len(segments(name)) == files
    total = 0
    for segment in segments(name):
        data = segment.read_bytes()
        batches = read_batches(data)
        found: list[Record] = []
        for batch in batches:
            assert batch.header.magic == magic
            assert bytes(batch.data) == data[batch.position : batch.position + batch.size]
            found += batch.records()
            found += (
                Record(c.offset, c.timestamp, key=b"\x00\x00" + c.type_id.to_bytes(2, "big"), value=c.value)
                for c in batch.control_records()
            )
        assert (batches.torn, batches.position) == (None, len(data))
        assert found == oracle.read(data)
        total += len(found)
    assert total == {OLD: 29_172, NEW: 2_163}[name]


def test_the_transactions_of_a_recording_show_as_markers() -> None:
    """Offsets were committed in one transaction and aborted in another, on both replicas."""
    seen = []
    for segment in segments(NEW):
        markers = [
            (batch.header.producer_id, marker)
            for batch in read_batches(segment.read_bytes())
            for marker in batch.control_records()
        ]
        if markers:
            assert segment.parent.name == "__consumer_offsets-49"
            seen.append([marker.type for _, marker in markers])
            assert len({producer for producer, _ in markers}) == 1
    assert seen == [[ControlType.COMMIT, ControlType.ABORT]] * 2


def test_offsets_grow_along_every_segment() -> None:
    """Whoever replays a segment relies on it."""
    for name in (OLD, NEW):
        for segment in segments(name):
            offsets = [record.offset for record in read_all_records(segment.read_bytes())]
            assert offsets == sorted(set(offsets))


def test_a_segment_can_be_read_where_it_lies(tmp_path: Path) -> None:
    """A gigabyte of segment is mapped, not loaded."""
    import mmap

    segment = max(segments(NEW), key=lambda path: path.stat().st_size)
    with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        batches = read_batches(mapped)
        found = [record for batch in batches for record in batch.records()]
        assert found == list(read_all_records(segment.read_bytes()))
        del batches
