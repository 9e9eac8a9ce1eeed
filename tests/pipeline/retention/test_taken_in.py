"""What was taken in and has gone is not taken in again from files that are still there."""

from datetime import date
from pathlib import Path

from kelpie.pipeline.storage.exchange import exchange
from kelpie.pipeline.storage.floors import aged_files, kept_mark, rewritten
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.lifetimes import is_young
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.offset_commit import OffsetCommitKey, OffsetCommitValue
from kelpie.wire.records import Record, write_batch
from tests.pipeline.sources.segments.segments import CLUSTER, Here, batches, ingest, offsets, segment

COMMITS = TABLES["offset_commit"]
SINCE, LATER_MS = date(1970, 1, 5), 10 * 86_400_000
"""Other commits of these tests are of the first of January 1970."""


def later(log_offset: int) -> bytes:
    value = OffsetCommitValue(offset=7, metadata="", commit_timestamp=LATER_MS)
    key = offsets_topic.encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
    record = Record(log_offset, LATER_MS, key=key, value=offsets_topic.encode_value(value, 3))
    return write_batch([record], leader_epoch=0)


def age(lake: Lake) -> None:
    delta, folder = lake.open(COMMITS), lake.path(COMMITS)
    files = aged_files(delta, folder, COMMITS, CLUSTER, SINCE)
    young = is_young(COMMITS, SINCE)
    stay = [
        new
        for file in files
        for new in rewritten(COMMITS, folder, file.path, cluster=CLUSTER, within={}, where=young)
    ]
    mark = kept_mark(CLUSTER, SINCE)
    exchange(delta, folder, remove=[file.path for file in files], add=stay, marks=[mark], aged=True)


def test_old_records_do_not_come_back(tmp_path: Path) -> None:
    """Neither from a segment as it was, nor from one that has grown, or was compacted and is read anew."""
    lake, disk = Lake(tmp_path / "tables"), tmp_path / "disk"
    segment(disk, batches(0, 3) + later(3))
    ingest(lake, [disk], Here())
    assert offsets(lake) == [0, 1, 2, 3]
    age(lake)
    assert offsets(lake) == [3]
    ingest(lake, [disk], Here())
    assert offsets(lake) == [3]
    segment(disk, batches(0, 3) + later(3) + later(4))
    ingest(lake, [disk], Here())
    assert offsets(lake) == [3, 4]
    segment(disk, batches(2, 1) + later(3) + later(4) + later(5))
    reading = Here()
    ingest(lake, [disk], reading)
    assert [file.start for file in reading.ran] == [0], "it is read anew"
    assert set(offsets(lake)) == {3, 4, 5}
    segment(tmp_path / "another disk", batches(0, 3) + later(3))
    ingest(lake, [tmp_path / "another disk"], Here())
    assert set(offsets(lake)) == {3, 4, 5}
