"""Segments as a source of Spark's: rows of bronze tables, in queries of one's own."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kelpie.pipeline import OffsetsSegments
from kelpie.pipeline.sources.segments.data_source import NAME
from kelpie.pipeline.sources.segments.files import FILLED
from kelpie.pipeline.storage.lake import Lake
from tests.evidence import unpacked
from tests.pipeline.sources.segments.segments import CLUSTER, Here, batches, ingest, rows, segment

RECORDINGS = (
    "kafka-0.9.0.1-coordinator-outage",
    pytest.param("kafka-4.3.1-coordinator-outage", marks=pytest.mark.long),
)


def load(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    spark.dataSource.register(OffsetsSegments)
    return spark.read.format(NAME).options(**{"cluster": CLUSTER, **options}).load(str(folder))


def told(found: list[dict[str, Any]]) -> list[str]:
    """Spark's times have no zone, and its maps are dictionaries."""
    return sorted(str([_plain(value) for _, value in sorted(row.items())]) for row in found)


def _plain(value: Any) -> Any:
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize("name", RECORDINGS)
def test_rows_of_recordings_are_those_that_a_run_takes_in(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    lake = Lake(tmp_path / "lake")
    ingest(lake, [unpacked(name)], Here())
    counts = {}
    for table in FILLED:
        found = [it.asDict(recursive=True) for it in load(spark, unpacked(name), table=table.name).collect()]
        assert told(found) == told(rows(lake, table.name)), table.name
        counts[table.name] = len(found)
    assert counts["offset_commit"] > 0
    assert counts["group_metadata"] > 0


def test_files_are_spread_over_tasks_and_columns_can_be_asked_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in range(4):
        segment(tmp_path, batches(0, 10), partition=partition)
    found = load(spark, tmp_path).where("offsets_partition = 2").agg({"offset": "max"}).collect()
    assert found[0][0] == 90
    monkeypatch.setattr("kelpie.pipeline.sources.segments.data_source._OF_A_TASK", 1)
    reader = OffsetsSegments({"path": str(tmp_path)}).reader(None)  # type: ignore[arg-type]
    assert len(reader.partitions()) == 4


def test_what_is_torn_is_in_quarantine_only(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path, batches(0, 3)[:-5])
    assert load(spark, tmp_path).count() == 2
    (row,) = load(spark, tmp_path, table="quarantine").collect()
    assert row["position"] > 0


def test_folder_without_segments_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here\n")
    segment(tmp_path, b"")
    assert load(spark, tmp_path).collect() == []


@pytest.mark.parametrize(
    ("folder", "options", "words"),
    [
        (".", {"table": "offset_commits"}, "Segments hold no table 'offset_commits'; there are"),
        ("nowhere", {}, "nowhere: give a folder with the data of brokers"),
    ],
)
def test_bad_options_are_told(
    spark: SparkSession, tmp_path: Path, folder: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AnalysisException, match=words):
        load(spark, tmp_path / folder, **options).collect()


def test_without_a_folder_it_says_what_to_give(spark: SparkSession) -> None:
    spark.dataSource.register(OffsetsSegments)
    with pytest.raises(AnalysisException, match=r"give load\(\) a folder"):
        spark.read.format(NAME).load().collect()


def test_file_that_goes_away_ends_the_query(tmp_path: Path) -> None:
    """It would lack rows, and nobody would know."""
    file = segment(tmp_path, batches(0, 3))
    reader = OffsetsSegments({"path": str(tmp_path)}).reader(None)  # type: ignore[arg-type]
    (part,) = reader.partitions()
    file.unlink()
    with pytest.raises(FileNotFoundError, match=file.name):
        list(reader.read(part))
