"""Little input on one machine is read and judged by the driver itself: tables are those that tasks make."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kelpie.pipeline.run import run
from kelpie.pipeline.spark import tasks
from kelpie.pipeline.spark.tasks import run_tasks
from kelpie.pipeline.storage.frames import Rows
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.bronze import BRONZE
from tests.collect import months
from tests.evidence import unpacked
from tests.pipeline.sources.segments.segments import batches, segment
from tests.pipeline.test_intake import LOG


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """Something for each table that tasks may fill."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broker-0.log").write_text(LOG)
    (folder / "odd.prom").write_bytes((unpacked("kop-3.2-scrapes") / "07_odd_names.prom").read_bytes())
    months.write(folder / "surveys", hours=2)
    whole = sorted((folder / "surveys").iterdir())
    whole[0].write_bytes(whole[0].read_bytes()[:-20])
    disk = folder / "broker-1"
    segment(disk, batches(0, 4))
    (disk / "orders-0").mkdir()
    (disk / "orders-0" / "00000000000000000000.log").write_bytes(batches(0, 5))
    return folder


def _sorted(rows: Rows) -> list[str]:
    plain = [row.asDict(recursive=True) for row in rows.collect()] if isinstance(rows, DataFrame) else rows
    return sorted(repr(sorted(row.items())) for row in plain)


def _taken_in(spark: SparkSession, lake: Lake, evidence: Path) -> dict[str, list[str]]:
    run(spark, lake, [evidence], cluster="c", only_bronze=True)
    return {table.name: _sorted(lake.rows(table, "c").to_pylist()) for table in BRONZE}


def test_driver_and_tasks_read_the_same_rows(
    spark: SparkSession, tmp_path: Path, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments, logs, scrapes, surveys, ends of logs."""
    here = _taken_in(spark, Lake(tmp_path / "here"), evidence)
    monkeypatch.setattr(tasks, "SMALL_BYTES", -1)
    there = _taken_in(spark, Lake(tmp_path / "there"), evidence)
    wanted = {"offset_commit", "log_event", "metric_sample", "traffic_sample", "cluster_snapshot"}
    assert all(here[name] for name in wanted | {"quarantine"})
    assert here == there


@pytest.mark.long
def test_driver_and_tasks_judge_the_same(
    spark: SparkSession, tmp_path: Path, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings, open questions and the health of groups."""
    names = ("findings", "open_question", "group_health")
    here, there = Lake(tmp_path / "here"), Lake(tmp_path / "there")
    run(spark, here, [evidence], cluster="c")
    monkeypatch.setattr(tasks, "SMALL_BYTES", -1)
    run(spark, there, [evidence], cluster="c")
    for name in names:
        rows = _sorted(here.rows(TABLES[name], "c").to_pylist())
        assert rows
        assert rows == _sorted(there.rows(TABLES[name], "c").to_pylist())


def test_results_come_in_the_order_of_inputs(spark: SparkSession) -> None:
    """One task of Spark may have several inputs."""
    inputs: list[Any] = list(range(7))
    for size in (0, tasks.SMALL_BYTES + 1):
        assert run_tasks(spark.sparkContext, str, inputs, size=size, slices=3) == list(map(str, inputs))
    assert run_tasks(spark.sparkContext, str, [], size=tasks.SMALL_BYTES + 1) == []
