"""Files of all kinds into bronze tables, once, also when a run is killed on the way."""

import tarfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.logs.hints import NO_HINTS
from kelpie.observations.encoding import loads
from kelpie.pipeline.intake import Intake
from kelpie.pipeline.run import run
from kelpie.pipeline.sources.inventory import FileBatch, take_inventory
from kelpie.pipeline.sources.snapshots import outputs as snapshots
from kelpie.pipeline.spark.spark_errors import ClusterFault, SeveralClusters
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.summary import Summary
from tests.evidence import unpacked
from tests.pipeline.sources.segments.segments import batches, segment

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
    summary = run(spark, Lake(tmp_path / "tables"), [archive], cluster="kop", only_bronze=True)
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
            run(spark, Lake(tables), [folder], cluster="c", only_bronze=True)
    assert len(rows(tables, "bronze/log_event")) == 1
    assert rows(tables, "bronze/cluster_snapshot") == []
    summary = run(spark, Lake(tables), [folder], cluster="c", only_bronze=True)
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
    assert run(spark, Lake(tables), [folder], cluster="c", only_bronze=True).new_files == 0


def ends(tables: Path) -> list[tuple[str, int, int, int]]:
    """Topic, partition, beginning and end, of the newest batch."""
    told = [row for row in rows(tables, "bronze/cluster_snapshot") if row["kind"] == "ends"]
    newest = max(row["snapshot"] for row in told)
    bodies = [loads("ends", row["body"]) for row in told if row["snapshot"] == newest]
    return sorted((it.topic, it.partition, it.earliest, it.latest) for it in bodies)


def test_a_disk_that_grows_is_read_on_and_its_logs_begin_where_they_did(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also when only the newest segment of a log has changed."""
    disk, tables = tmp_path / "broker-1", tmp_path / "tables"
    orders = disk / "orders-0"
    orders.mkdir(parents=True)
    (orders / "00000000000000000000.log").write_bytes(batches(0, 5))
    (orders / "00000000000000000005.log").write_bytes(batches(5, 1))
    segment(disk, batches(0, 4))
    segment(disk, batches(4, 1), base_offset=4)
    assert run(spark, Lake(tables), [disk], cluster="c", only_bronze=True).written["offset_commit"] == 5
    assert ends(tables) == [("__consumer_offsets", 0, 0, 5), ("orders", 0, 0, 6)]
    (orders / "00000000000000000005.log").write_bytes(batches(5, 3))
    segment(disk, batches(4, 3), base_offset=4)
    assert run(spark, Lake(tables), [disk], cluster="c", only_bronze=True).written["offset_commit"] == 2
    assert ends(tables) == [("__consumer_offsets", 0, 0, 7), ("orders", 0, 0, 8)]
    assert sorted(row["log_offset"] for row in rows(tables, "bronze/offset_commit")) == list(range(7))


def test_disks_of_two_clusters_do_not_go_in_under_one_name(spark: SparkSession, tmp_path: Path) -> None:
    """Their records have the same places, and would be taken for copies of each other."""
    for name in ("one", "other"):
        segment(tmp_path / "in" / name, batches(0, 1))
        (tmp_path / "in" / name / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={name}\n")
    with pytest.raises(SeveralClusters, match="is of one, other/meta"):
        run(spark, Lake(tmp_path / "tables"), [tmp_path / "in"], cluster="c", only_bronze=True)


@pytest.mark.parametrize(("master", "refused"), [("spark://there:7077", True), ("local[2]", False)])
def test_what_only_an_executor_does_not_see_is_not_told_as_unreadable(
    tmp_path: Path, master: str, refused: bool
) -> None:
    """It may have joined late, and lack the file system. Here, a file that comes and goes is no fault."""
    (tmp_path / "broker-0.log").write_text(LOG)
    room = tmp_path / "room"
    inventory = take_inventory([tmp_path], Search(room, Budget()), room)
    batch = FileBatch("a", 1, tuple(inventory.items))
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    tables = ClusterTables(session, Lake(tmp_path / "t"), "c")
    intake = Intake(tables, batch, hints=NO_HINTS, announce=lambda _: None, summary=Summary())
    with pytest.raises(ClusterFault, match="this machine can: No such file") if refused else nullcontext():
        intake._require_seen([("broker-0.log", "It cannot be read: No such file or directory.")])
    intake._require_seen([("gone.log", "It cannot be read: No such file or directory.")])


class _Killed(Exception):
    pass


def _killed(*_: Any, **__: Any) -> Any:
    raise _Killed
