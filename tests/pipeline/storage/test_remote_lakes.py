"""Tables on real HDFS and on a real S3 server: a batch counts once, as it does in a folder."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hdfs_native import Client

from kelpie.pipeline.sources.segments.files import COMMITS, FILLED
from kelpie.pipeline.storage.journal import Conflict, Journal
from kelpie.pipeline.storage.lake import Lake
from kelpie.places import RemotePath
from tests.pipeline.sources.segments.segments import CLUSTER, Here, batches, ingest, segment
from tests.pipeline.storage.test_floors import LAG, age, days, filled, looks

pytestmark = pytest.mark.real
_STORES = ["s3", pytest.param("hdfs", marks=pytest.mark.wide)]
_LONG = pytest.mark.long
_ALL_LONG = [pytest.param(name, marks=_LONG) for name in ("s3", "hdfs")]


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> RemotePath:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RemotePath)
    return found


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    disk = tmp_path / "disk"
    segment(disk, batches(0, 3) + b"torn")
    return disk


def _rows(lake: Lake) -> dict[str, list[str]]:
    """Of every bronze table that segments fill."""
    return {table.name: sorted(map(repr, lake.rows(table, CLUSTER).to_pylist())) for table in FILLED}


@pytest.mark.parametrize("folder", _STORES, indirect=True)
def test_segments_are_taken_in_once_and_read_on(folder: RemotePath, disk: Path, tmp_path: Path) -> None:
    """The rows are those of tables in a folder, after each step."""
    there, here = Lake(folder / "tables"), Lake(tmp_path / "tables")
    for data in (batches(0, 3) + b"torn", batches(0, 3) + b"torn", batches(0, 5)):
        segment(disk, data)
        for lake in (there, here):
            ingest(lake, [disk], Here())
        assert _rows(there) == _rows(here)
    there.compact(COMMITS, CLUSTER)
    assert _rows(there) == _rows(here)
    assert there.sweep(replaced=timedelta())
    assert _rows(there) == _rows(here)


@pytest.mark.parametrize("folder", _STORES, indirect=True)
def test_two_runs_at_once_do_not_both_count(folder: RemotePath, disk: Path) -> None:
    """The second to write its page is told, and its files belong to no table."""
    lake = Lake(folder)

    class Overtaken(Here):
        def __call__(self, tasks, folders):  # type: ignore[no-untyped-def]
            outcomes = super().__call__(tasks, folders)
            ingest(lake, [disk], Here())
            return outcomes

    with pytest.raises(Conflict, match="another run"):
        ingest(lake, [disk], Overtaken())
    assert lake.count(COMMITS, CLUSTER) == 3


@pytest.mark.parametrize("folder", _ALL_LONG, indirect=True)
def test_writers_at_the_same_time_do_not_lose_rows(folder: RemotePath) -> None:
    """Four applications write batches to one table; what each commits is there, once."""
    row: dict[str, Any] = {
        "cluster": CLUSTER,
        "offsets_partition": 0,
        "source": "s",
        "group": "g",
        "topic": "t",
        "partition": 0,
        "is_transactional": False,
    }

    def write(application: int) -> None:
        lake = Lake(folder)
        for version in range(1, 6):
            rows = [{**row, "offsets_partition": 0, "log_offset": 100 * application + version}]
            for _ in range(2):  # The second time it is there already.
                lake.append_rows(COMMITS, CLUSTER, rows, application=f"writer {application}", version=version)

    Lake(folder).open(COMMITS)
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(4)))
    found = Lake(folder).rows(COMMITS, CLUSTER, columns=["log_offset"])["log_offset"].to_pylist()
    assert sorted(found) == [
        100 * application + version for application in range(4) for version in range(1, 6)
    ]


@pytest.mark.parametrize("folder", _ALL_LONG, indirect=True)
def test_run_killed_at_any_step_and_run_again_ends_with_the_same_tables(
    folder: RemotePath, disk: Path, tmp_path: Path
) -> None:
    """Between files and journal, between journal and tables, between tables: nothing is lost or doubled."""
    lake = Lake(tmp_path / "tables")
    ingest(lake, [disk], Here())
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.storage.killed_remote_runs", str(disk), str(folder)],
        check=True,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    steps = int(done.stdout)
    assert steps > 8
    for step in range(steps):
        assert _rows(Lake(folder / f"killed-at-{step}")) == _rows(lake), f"killed at step {step}"


@pytest.mark.parametrize("folder", _STORES, indirect=True)
def test_old_rows_go_in_one_commit_of_which_one_writer_gets_the_number(folder: RemotePath) -> None:
    """Others add rows meanwhile: none of these is lost, and none of the old ones is left."""
    lake = filled(Lake(folder / "tables"))
    before = lake.state_of(LAG)
    with ThreadPoolExecutor(3) as pool:
        adding = [
            pool.submit(lake.append_rows, LAG, CLUSTER, looks(6 + each), application=f"a{each}", version=0)
            for each in range(2)
        ]
        aging = pool.submit(age, lake)
    assert [each.result() for each in adding] == [1, 1]
    aging.result()
    assert lake.state_of(LAG) == before + 3
    assert days(lake) == [3, 4, 5, 6, 7]
    lake.append_rows(LAG, CLUSTER, looks(0, 2, 8), application="a", version=3)
    assert lake.sweep(replaced=timedelta())
    assert days(lake) == [3, 4, 5, 6, 7, 8]


@pytest.mark.wide
def test_drafts_that_killed_writers_left_on_hdfs_are_swept(hdfs: RemotePath, disk: Path) -> None:
    """deltalake removes none of its own, and a stream commits for months."""
    lake = Lake(hdfs)
    ingest(lake, [disk], Here())
    before = _rows(lake)
    drafts = [
        lake.path(COMMITS) / "_delta_log" / ".00000000000000000007.json.tmp.3",
        lake.path(COMMITS) / "_delta_log" / ".kelpie-00000000000000000008.json.1e",
        next((hdfs / "_batches").iterdir()) / ".kelpie-00000000000000000009.json.0f",
    ]
    for draft in drafts:
        draft.write_bytes(b"{")
    assert not set(drafts) & set(lake.sweep())
    two_days_ago = int((time.time() - 2 * 86_400) * 1000)
    for draft in drafts:
        assert isinstance(draft, RemotePath)
        Client(f"hdfs://{draft.authority}").set_times(f"/{draft.key}", two_days_ago, two_days_ago)
    assert set(drafts) <= set(lake.sweep())
    assert not any(draft.exists() for draft in drafts)
    assert _rows(lake) == before
    assert Journal(lake, f"kelpie evidence of {CLUSTER}").newest() is not None
