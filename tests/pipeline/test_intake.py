"""Files of all kinds into bronze tables, once, also when a run is killed on the way."""

import tarfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.pipeline.lake import Lake
from kelpie.pipeline.run import take_in
from kelpie.pipeline.sources import snapshots
from tests.evidence import unpacked

LOG = (
    "[2026-11-15 18:24:52,001] INFO [GroupCoordinator 0]: Stabilized group g generation 1 "
    "(__consumer_offsets-4) (kafka.coordinator.GroupCoordinator)\n"
)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    path = folder / table
    if not path.exists():
        return []
    found: list[dict[str, Any]] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return found


def test_scrapes_become_samples_and_their_broken_lines_are_told(spark: SparkSession, tmp_path: Path) -> None:
    """KoP writes names of groups as they are; nothing of the rest is lost over it. In an archive, too."""
    archive = tmp_path / "case.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(unpacked("kop-3.2-scrapes") / "07_odd_names.prom", "07_odd_names.prom")
    summary = take_in(spark, Lake(tmp_path / "tables"), [archive], cluster="kop")
    samples = rows(tmp_path / "tables", "bronze/metric_sample")
    told = rows(tmp_path / "tables", "bronze/quarantine")
    assert len(samples) == summary.written["metric_sample"] > 4000
    assert {row["source"] for row in samples + told} == {"case.tar/07_odd_names.prom"}
    assert len(told) == 24
    assert all(row["reason"].startswith("It is no line of the text format") for row in told)
    assert {dict(row["labels"])["cluster"] for row in samples if row["name"].startswith("kop_")} == {"test"}


def test_a_killed_run_goes_on_where_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had written is not written again, and what it had not is."""
    folder, tables = tmp_path / "in", tmp_path / "tables"
    folder.mkdir()
    (folder / "broker-0.log").write_text(LOG)
    (folder / "notes.txt").write_text("nothing that anybody knows\n")
    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "rows", _killed)
        with pytest.raises(_Killed):
            take_in(spark, Lake(tables), [folder], cluster="c")
    assert len(rows(tables, "bronze/log_event")) == 1
    assert rows(tables, "bronze/cluster_snapshot") == []
    summary = take_in(spark, Lake(tables), [folder], cluster="c")
    assert summary.unusable == [("notes.txt", "It is a text, and there is nothing in it that Kelpie knows.")]
    (event,) = rows(tables, "bronze/log_event")
    assert (event["kind"], event["group"], event["source"], event["line"]) == (
        "broker: generation-joined",
        "g",
        "broker-0.log",
        1,
    )
    assert [row["source"] for row in rows(tables, "bronze/quarantine")] == ["notes.txt"]
    assert len(rows(tables, "bronze/cluster_snapshot")) > 0
    assert take_in(spark, Lake(tables), [folder], cluster="c").new_files == 0


class _Killed(Exception):
    pass


def _killed(*_: Any, **__: Any) -> Any:
    raise _Killed
