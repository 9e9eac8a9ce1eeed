"""Repairs that take offsets from tables of the pipeline."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kelpie.cli import main
from kelpie.lab import SyncCluster
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import write_rows
from kelpie.pipeline.tables import TABLES
from tests.repair.scene import GROUP, committed, strike

LATELY = datetime(2026, 11, 16, 2, 18, 3, tzinfo=UTC)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Of one cluster; the group had committed twice."""
    lake = Lake(tmp_path / "tables")
    told = {
        "evidence_file": [{"source": "disk", "path": "disk", "size": 1, "kinds": ["segment"], "batch": 1}],
        "commit_timeline": [
            {"group": GROUP, "topic": "orders", "partition": partition, "offsets_partition": 3}
            | {"log_offset": place, "committed": LATELY, "offset": offset, "is_transactional": False}
            for place, (partition, offset) in enumerate([(0, 1), (1, 7), (0, 4)])
        ],
        "cluster_snapshot": [],
    }
    for name, rows in told.items():
        table = TABLES[name]
        lake.open(table)
        lake.replace(table, "c", write_rows(table, lake.path(table), "c", rows), made_of=0)
    return Path(str(lake.root))


def test_rehome_takes_offsets_from_tables(
    cluster: SyncCluster, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else knows them any more: the coordinator is gone, and so are the disks."""
    strike(cluster, GROUP, tmp_path / "disks")
    options = ["-b", cluster.bootstrap_servers, "--offsets-from", str(tables), "--json"]
    assert main(["rehome", *options, "--apply", GROUP]) == 0
    done = json.loads(capsys.readouterr().out)
    assert committed(cluster, done["details"]["new_name"]) == {0: 4, 1: 7}


def test_reset_takes_offsets_from_tables(cluster: SyncCluster, tables: Path) -> None:
    """A group that the cluster has forgotten."""
    told = "tables-only"
    table = TABLES["commit_timeline"]
    lake = Lake(tables)
    rows = [row | {"group": told} for row in lake.rows(table, "c").to_pylist()]
    lake.replace(table, "c", write_rows(table, lake.path(table), "c", rows), made_of=0)
    options = ["-b", cluster.bootstrap_servers, "--to-last-known", str(tables)]
    assert main(["reset", *options, "--apply", told]) == 0
    assert committed(cluster, told) == {0: 4, 1: 7}
