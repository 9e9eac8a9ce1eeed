"""A batch counts once, whenever its run is killed, and what killed runs leave behind is cleaned away."""

import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kelpie.pipeline.sources.segments.files import COMMITS, FILLED, SegmentFile
from kelpie.pipeline.sources.segments.intake import take_in
from kelpie.pipeline.storage.journal import Conflict, Journal
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import described
from kelpie.pipeline.tables import LakeTable
from kelpie.wire import offsets_topic
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey
from kelpie.wire.records import ControlType, Record, write_batch, write_control_batch
from tests.pipeline.sources.segments.segments import (
    CLUSTER,
    Here,
    batches,
    commit,
    ingest,
    offsets,
    rows,
    segment,
)

TWO_DAYS = timedelta(days=2)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Something for every table."""
    disk = tmp_path / "disk"
    marker = write_control_batch(
        ControlType.COMMIT, offset=3, timestamp=1, producer_id=7, producer_epoch=1, coordinator_epoch=0
    )
    group = write_batch([Record(4, 2, key=offsets_topic.encode_key(GroupMetadataKey(group="g")), value=None)])
    segment(disk, batches(0, 3) + marker + group + b"torn")
    return disk


def root(lake: Lake) -> Path:
    return Path(str(lake.root))


def commits(lake: Lake) -> Path:
    """The folder of the table."""
    return Path(str(lake.path(COMMITS)))


def everything(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    return {table.name: rows(lake, table.name) for table in FILLED}


def aged(path: Path) -> Path:
    old = time.time() - TWO_DAYS.total_seconds()
    os.utime(path, (old, old))
    return path


def test_run_killed_at_any_step_and_run_again_ends_with_the_same_tables(
    lake: Lake, disk: Path, tmp_path: Path
) -> None:
    """Between files and journal, between journal and tables, between tables: nothing is lost or doubled."""
    ingest(lake, [disk], Here())
    expected = everything(lake)
    assert all(expected.values())
    killed_at_every_step(expected, disk, tmp_path / "killed")


def test_run_that_replaces_rows_may_be_killed_too(lake: Lake, disk: Path, tmp_path: Path) -> None:
    """Between what goes and what comes: neither is lost, and nothing stays that is void."""
    ingest(lake, [disk], Here())
    begun = shutil.copytree(str(lake.root), tmp_path / "begun")
    segment(disk, batches(0, 1) + write_batch([commit(number, 7) for number in range(1, 5)]) + b"torn again")
    ingest(lake, [disk], Here())
    expected = everything(lake)
    assert sorted((row["log_offset"], row["offset"]) for row in expected["offset_commit"]) == [
        (0, 0),
        (0, 0),
        (1, 7),
        (2, 7),
        (3, 7),
        (4, 7),
    ]
    assert [row["bytes"] for row in expected["quarantine"]] == [b"torn again"]
    killed_at_every_step(expected, disk, tmp_path / "killed", begun)


def killed_at_every_step(expected: dict[str, Any], *folders: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.storage.killed_runs", *map(str, folders)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    steps = int(done.stdout)
    assert steps > 8
    for step in range(steps):
        assert everything(Lake(folders[1] / f"killed-at-{step}")) == expected, f"killed at step {step}"


def test_recorded_batch_is_finished_before_anything_else(
    lake: Lake, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page counts, not what the disk holds by now: else tables would hold halves of two inputs."""
    with monkeypatch.context() as broken:
        broken.setattr(Lake, "add", _refuse_records)
        with pytest.raises(OSError, match="full"):
            ingest(lake, [disk], Here())
    segment(disk, batches(0, 1))
    run = Here()
    ingest(lake, [disk], run)
    assert sorted(set(offsets(lake))) == [0, 1, 2]
    assert len(rows(lake, "transaction_marker")) == 1


_add = Lake.add


def _refuse_records(self: Lake, table: LakeTable, *rest: Any, **named: Any) -> bool:
    if table in FILLED:
        raise OSError("the disk is full")
    return _add(self, table, *rest, **named)


def test_two_runs_at_once_do_not_both_count(lake: Lake, disk: Path) -> None:
    """The second to write its page is told, and its files belong to no table."""

    class Overtaken(Here):
        def __call__(self, tasks, folders):  # type: ignore[no-untyped-def]
            outcomes = super().__call__(tasks, folders)
            ingest(lake, [disk], Here())
            return outcomes

    with pytest.raises(Conflict, match="another run"):
        ingest(lake, [disk], Overtaken())
    assert offsets(lake) == [0, 1, 2]


def test_page_of_a_batch_is_whole_or_not_there(lake: Lake) -> None:
    """Drafts of killed runs are no pages."""
    journal = Journal(lake, "an application")
    journal.record(0, {}, {"a": 1})
    (folder,) = (root(lake) / "_batches").iterdir()
    (folder / "draft-of-a-killed-run").write_text("{")
    page = journal.newest()
    assert page is not None
    assert (page.number, page.progress) == (0, {"a": 1})


def test_batch_with_a_number_of_its_own_is_taken_in_once(lake: Lake, disk: Path) -> None:
    """Who numbers the batch may call as often as he likes."""
    run = Here()
    (path,) = disk.rglob("*.log")
    for version in (3, 3, 4):
        file = SegmentFile(str(path), CLUSTER, 0, None, path.stat().st_size)
        done = take_in(lake, [file], run, cores=1, application="evidence of a/b", version=version)
        assert done.rows.get("offset_commit", 0) == (3 if version == 3 else 0)
    assert offsets(lake) == [0, 1, 2]


def test_files_that_no_table_knows_are_swept_when_they_are_old(lake: Lake, disk: Path) -> None:
    """Killed tasks leave files; a run that goes on has some too, so only old ones go."""
    ingest(lake, [disk], Here())
    before = everything(lake)
    folder = commits(lake)
    (known,) = folder.rglob("*.parquet")
    old = [
        aged(_copy(known, known.with_name(name)))
        for name in ("part-a.zstd.parquet", "part-b.zstd.unfinished")
    ]
    young = _copy(known, known.with_name("part-c.zstd.parquet"))
    aged(known)
    assert sorted(map(str, lake.sweep())) == sorted(map(str, old))
    assert known.exists()
    assert young.exists()
    assert everything(lake) == before


def test_files_that_were_replaced_are_swept_sooner(lake: Lake, disk: Path) -> None:
    """A stream replaces tables again and again: a day's worth of them would fill any disk."""
    ingest(lake, [disk], Here())
    before = everything(lake)
    (known,) = commits(lake).rglob("*.parquet")
    copy, folder = _copy(known, known.with_name("part-b.zstd.parquet")), commits(lake)
    lake.replace(
        COMMITS, CLUSTER, [described(COMMITS, copy, path=copy, folder=folder, cluster=CLUSTER)], made_of=0
    )
    assert lake.sweep() == []
    assert lake.sweep(replaced=timedelta()) == [known]
    assert everything(lake) == before


def test_folders_that_spark_was_writing_into_are_swept_when_they_are_old(lake: Lake, disk: Path) -> None:
    """Readers of Delta pass them by, and so does Delta's own broom."""
    ingest(lake, [disk], Here())
    left = [commits(lake) / "_written-by-a-killed-run", root(lake) / "_staging" / "logs-7"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"half")
    draft = next((root(lake) / "_batches").iterdir()) / "draft-of-a-killed-run"
    draft.write_text("{")
    assert lake.sweep() == []
    left.append(draft)
    assert sorted(map(str, map(aged, left))) == sorted(map(str, lake.sweep()))
    assert not any(path.exists() for path in left)


def _copy(source: Path, target: Path) -> Path:
    target.write_bytes(source.read_bytes())
    return target


def test_old_pages_go_and_the_newest_stays(lake: Lake, disk: Path) -> None:
    """A job that runs for months must not collect files."""
    for count in range(1, 15):
        segment(disk, batches(0, count))
        ingest(lake, [disk], Here())
    (folder,) = (root(lake) / "_batches").iterdir()
    assert len(list(folder.iterdir())) == 10
    assert offsets(lake) == list(range(14))
