"""What has changed in a table since a version: new rows are told, and old ones never look new."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kelpie.pipeline.storage.changes import Changes, changes
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.places import Place

TABLE, CLUSTER = TABLES["quarantine"], "c"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    add(lake, 0, 0, 1)
    return lake


def add(lake: Lake, version: int, *positions: int, cluster: str = CLUSTER) -> None:
    rows = [
        {"cluster": cluster, "source": "s", "position": position, "size": 1, "reason": "torn"}
        for position in positions
    ]
    lake.append_rows(TABLE, cluster, rows, application=f"of {cluster}", version=version)


def since(lake: Lake, version: int) -> Changes:
    changed = changes(lake, TABLE, CLUSTER, since=version, until=lake.state_of(TABLE))
    assert changed is not None
    return changed


def positions(files: tuple[Place, ...]) -> Counter[int]:
    return Counter(
        position
        for file in files
        for position in pq.read_table(file, partitioning=None)["position"].to_pylist()
    )


def difference(changed: Changes) -> tuple[Counter[int], Counter[int]]:
    """Positions that are new, and positions that are gone."""
    came, went = positions(changed.came), positions(changed.went)
    return came - went, went - came


def test_rows_that_were_added_are_new(lake: Lake) -> None:
    """Those of other clusters are not."""
    before = lake.state_of(TABLE)
    add(lake, 1, 2)
    add(lake, 0, 9, cluster="another")
    changed = since(lake, before)
    assert difference(changed) == (Counter([2]), Counter())
    assert not changed.went
    assert not since(lake, lake.state_of(TABLE))


def test_compaction_is_no_news(lake: Lake) -> None:
    """It writes all rows into new files, also rows that no round has read yet."""
    add(lake, 1, 2)
    before = lake.state_of(TABLE)
    add(lake, 2, 3)
    lake.compact(TABLE, CLUSTER)
    assert len(lake.files(TABLE, CLUSTER)) == 1
    assert difference(since(lake, before)) == (Counter([3]), Counter())
    assert not since(lake, lake.state_of(TABLE))


def test_deleted_rows_are_gone_and_the_others_of_their_file_stay(lake: Lake) -> None:
    """The file is written anew without them; also one that compaction has just made of old and new rows."""
    before = lake.state_of(TABLE)
    add(lake, 1, 2, 3)
    lake.compact(TABLE, CLUSTER)
    lake.delete(TABLE, CLUSTER, "position IN (1, 2)")
    assert difference(since(lake, before)) == (Counter([3]), Counter([1]))


def test_table_that_no_longer_knows_says_so(lake: Lake) -> None:
    """Its log is kept for a day, and replaced files for an hour."""
    before = lake.state_of(TABLE)
    lake.delete(TABLE, CLUSTER, "position = 1")
    changed = since(lake, before)
    changed.went[0].unlink()
    now = lake.state_of(TABLE)
    assert changes(lake, TABLE, CLUSTER, since=before, until=now) is None
    (lake.path(TABLE) / "_delta_log" / f"{now:020}.json").unlink()
    assert changes(lake, TABLE, CLUSTER, since=before, until=now) is None
