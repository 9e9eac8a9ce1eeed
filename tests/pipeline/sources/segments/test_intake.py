"""From the disks of brokers to bronze tables: what is found, and what is new."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kelpie.pipeline.sources.segments import intake as segments
from kelpie.pipeline.sources.segments.files import COMMITS, SegmentFile, SegmentTaskResult
from kelpie.pipeline.spark.spark_errors import ClusterFault
from kelpie.pipeline.storage.lake import Lake
from kelpie.wire.records import write_batch
from tests.evidence import unpacked
from tests.pipeline.sources.segments.segments import Here, batches, commit, ingest, offsets, rows, segment


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return tmp_path / "disk"


def test_many_files_are_read_once_by_several_tasks(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks know nothing of each other; a file larger than a task should be is one task."""
    monkeypatch.setattr(segments, "TASK_BYTES", 3 * len(batches(0, 1)))
    for partition in range(20):
        segment(tmp_path / "disk", batches(0, 1 + partition % 5), partition=partition)
    run = Here()
    assert ingest(lake, [tmp_path / "disk"], run).rows["offset_commit"] == 60
    assert 8 < run.tasks < 20
    assert len(run.ran) == len({file.path for file in run.ran}) == 20


def test_what_looks_like_a_batch_inside_a_batch_is_not_read(lake: Lake, disk: Path) -> None:
    """Metadata of a commit may be anything, also the bytes of a batch."""
    trap = write_batch([commit(40, 666)]).decode("latin-1")
    # As metadata it must be text; latin-1 letters above 127 would take two bytes, so the trap is put in raw.
    inner = commit(1, 10, metadata="x" * len(trap))
    assert inner.value is not None
    loaded = type(inner)(
        1, inner.timestamp, key=inner.key, value=inner.value.replace(b"x" * len(trap), trap.encode("latin-1"))
    )
    segment(disk, batches(0, 1) + write_batch([loaded]) + batches(2, 3))
    ingest(lake, [disk], Here())
    assert offsets(lake) == [0, 1, 2, 3, 4]


def test_damage_is_told_and_costs_one_batch(lake: Lake, disk: Path) -> None:
    """What is broken must not be swallowed, nor what follows it."""
    data = bytearray(batches(0, 30))
    size = len(batches(0, 1))
    hurt = 10 * size
    data[hurt + 30 : hurt + 40] = b"\xff" * 10
    segment(disk, bytes(data))
    ingest(lake, [disk], Here())
    assert offsets(lake) == [number for number in range(30) if number != 10]
    told = rows(lake, "quarantine")
    assert sum(row["size"] for row in told) == size
    assert min(row["position"] for row in told) == hurt


def test_file_that_grew_goes_on_where_it_was(lake: Lake, disk: Path) -> None:
    """A broker that is alive writes on; each run reads what is new."""
    segment(disk, batches(0, 5))
    ingest(lake, [disk], Here())
    segment(disk, batches(0, 8))
    run = Here()
    assert ingest(lake, [disk], run).rows["offset_commit"] == 3
    assert run.ran[0].start == len(batches(0, 5))
    assert offsets(lake) == list(range(8))


def test_nothing_new_makes_no_batch(lake: Lake, disk: Path) -> None:
    """A run over the same folder is free."""
    segment(disk, batches(0, 5))
    ingest(lake, [disk], Here())
    run = Here()
    assert ingest(lake, [disk], run).files == 0
    assert run.ran == []


def test_half_a_batch_is_read_once_it_is_whole(lake: Lake, disk: Path) -> None:
    """A torn tail is told; if its broker lives, the rest of it comes, and nothing is told any more."""
    data = batches(0, 3)
    segment(disk, data[:-7])
    ingest(lake, [disk], Here())
    assert offsets(lake) == [0, 1]
    (told,) = rows(lake, "quarantine")
    assert told["reason"] == "the file ends in the middle"
    segment(disk, data)
    ingest(lake, [disk], Here())
    assert offsets(lake) == [0, 1, 2]
    assert rows(lake, "quarantine") == []


def test_file_with_room_at_its_end_goes_on_there(lake: Lake, disk: Path) -> None:
    """Brokers can be told to make segments as long as they will be (log.preallocate): zeros, then records."""
    segment(disk, batches(0, 2) + bytes(9000))
    ingest(lake, [disk], Here())
    segment(disk, batches(0, 4) + bytes(9000 - len(batches(2, 2))))
    run = Here()
    ingest(lake, [disk], run)
    assert run.ran[0].start == len(batches(0, 2))
    assert offsets(lake) == [0, 1, 2, 3]
    (told,) = rows(lake, "quarantine")
    assert (told["position"], told["size"]) == (len(batches(0, 4)), 9000 - len(batches(2, 2)))


def test_compacted_file_is_read_anew(lake: Lake, disk: Path) -> None:
    """Compaction puts another file in its place, under the same name: old positions mean nothing there.

    What it has dropped stays in the tables, which are to know more than the disk.
    """
    segment(disk, batches(0, 6))
    ingest(lake, [disk], Here())
    segment(disk, batches(0, 1) + batches(4, 2) + batches(9, 4))
    run = Here()
    ingest(lake, [disk], run)
    assert run.ran[0].start == 0
    assert sorted(set(offsets(lake))) == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12]


def others(first: int, count: int) -> bytes:
    """Other records at the same offsets."""
    return b"".join(write_batch([commit(number, 7)]) for number in range(first, first + count))


def committed(lake: Lake) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row in rows(lake, "offset_commit"):
        found.setdefault(row["log_offset"], set()).add(row["offset"])
    return found


def test_rows_of_a_log_that_was_cut_go_once_it_says_otherwise(lake: Lake, disk: Path) -> None:
    """A broker that learns that it had diverged cuts its log, and writes what the leader has in its place."""
    segment(disk, batches(0, 6))
    segment(disk, batches(0, 6), partition=1)
    ingest(lake, [disk], Here())
    segment(disk, batches(0, 3))
    ingest(lake, [disk], Here())
    assert committed(lake) == {number: {10 * number} for number in range(6)}
    segment(disk, batches(0, 3) + others(3, 1))
    ingest(lake, [disk], Here())
    own = [row for row in rows(lake, "offset_commit") if row["offsets_partition"] == 0]
    assert {row["log_offset"]: row["offset"] for row in own} == {0: 0, 1: 10, 2: 20, 3: 7}
    assert len(rows(lake, "offset_commit")) - len(own) == 6


def test_rows_of_another_log_in_the_same_place_go(lake: Lake, disk: Path) -> None:
    """A cluster that was made anew has folders with the same names."""
    segment(disk, batches(0, 6))
    ingest(lake, [disk], Here())
    segment(disk, others(0, 3))
    ingest(lake, [disk], Here())
    assert committed(lake) == {0: {7}, 1: {7}, 2: {7}}


def test_touched_file_is_not_read_again(lake: Lake, disk: Path) -> None:
    """A copy of a disk may have other times, and be the same."""
    path = segment(disk, batches(0, 3))
    ingest(lake, [disk], Here())
    os.utime(path, (1, 1))
    run = Here()
    assert ingest(lake, [disk], run).rows == {}
    assert run.ran == []


def test_offset_that_cannot_be_in_the_file_is_not_believed(lake: Lake, disk: Path) -> None:
    """No checksum covers a batch's offset: a bit that flips there would make an old commit the newest."""
    data = bytearray(batches(100, 3))
    data[len(batches(100, 1))] = 0x40
    segment(disk, bytes(data), base_offset=100)
    ingest(lake, [disk], Here())
    assert offsets(lake) == [100, 102]
    assert [row["reason"] for row in rows(lake, "quarantine")] == ["its offset cannot be in this file"]


def test_file_that_cannot_be_read_is_told(lake: Lake, disk: Path) -> None:
    """A broker deletes segments while we look: the others are read all the same."""
    segment(disk, batches(0, 2))
    gone = segment(disk, batches(0, 2), partition=1)

    class Late(Here):
        def __call__(self, tasks, folders):  # type: ignore[no-untyped-def]
            gone.unlink()
            return super().__call__(tasks, folders)

    ingest(lake, [disk], Late())
    assert offsets(lake) == [0, 1]
    (told,) = rows(lake, "quarantine")
    assert told["reason"].startswith("not readable:")


@dataclass
class Blind(Here):
    """Sees no file the first few times."""

    blind: int = 1

    def __call__(
        self, tasks: Sequence[Sequence[SegmentFile]], folders: Mapping[str, str]
    ) -> Iterable[SegmentTaskResult]:
        self.blind -= 1
        if self.blind < 0:
            return super().__call__(tasks, folders)
        elsewhere = [[replace(file, path=f"/nowhere{file.path}") for file in files] for files in tasks]
        results = super().__call__(elsewhere, folders)
        return [
            replace(
                result,
                read=[replace(read, file=file) for read, file in zip(result.read, files, strict=True)],
            )
            for result, files in zip(results, tasks, strict=True)
        ]


def test_file_that_one_executor_does_not_see_is_read_by_another(lake: Lake, disk: Path) -> None:
    """It may have joined late, and lack the file system: nothing is told as unreadable that can be read."""
    segment(disk, batches(0, 3))
    ingest(lake, [disk], Blind())
    assert offsets(lake) == [0, 1, 2]
    assert rows(lake, "quarantine") == []
    assert len(list(Path(str(lake.path(COMMITS))).rglob("*.parquet"))) == 1


def test_file_that_no_executor_sees_ends_the_run(lake: Lake, disk: Path) -> None:
    """The next one takes it up."""
    segment(disk, batches(0, 3))
    with pytest.raises(ClusterFault, match="this machine can: No such file or directory, on "):
        ingest(lake, [disk], Blind(blind=99))
    ingest(lake, [disk], Here())
    assert offsets(lake) == [0, 1, 2]


def test_small_files_share_tasks_and_files(lake: Lake, disk: Path) -> None:
    """A thousand partitions with little in them must not become a thousand Parquet files."""
    for partition in range(40):
        segment(disk, batches(0, 2), partition=partition)
    ingest(lake, [disk], Here())
    assert len(list(Path(str(lake.root)).rglob("offset_commit/*/*.parquet"))) == 1
    assert len(rows(lake, "offset_commit")) == 80


@pytest.mark.parametrize("name", ["kafka-0.9.0.1-coordinator-outage", "kafka-4.3.1-coordinator-outage"])
def test_disks_of_real_brokers_leave_nothing_unread(lake: Lake, name: str) -> None:
    """What Kafka itself wrote, old and new; every copy has the broker that it was on."""
    done = ingest(lake, [unpacked(name)], Here())
    assert done.rows["offset_commit"] > 100
    assert done.rows["group_metadata"] > 0
    assert done.rows["quarantine"] == 0
    assert len({row["replica"] for row in rows(lake, "offset_commit")}) > 1
