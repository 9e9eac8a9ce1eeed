"""`kelpie.run_pipeline`: what `kelpie pipeline run` does, for programs."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kelpie
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.pipeline.sources.segments.segments import batches, segment


def test_a_program_makes_tables_and_says_for_how_long_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    """The commits are of 1970. Of the old ones, the last of the position stays: later rows depend on it."""
    segment(tmp_path / "disk", batches(0, 3))
    summary = kelpie.run_pipeline(
        tmp_path / "disk",
        tmp_path / "tables",
        cluster="c",
        spark=spark,
        keep={"bronze": timedelta(days=30)},
    )
    assert (summary.cluster, summary.files) == ("c", 1)
    rows = Lake(tmp_path / "tables").rows(TABLES["offset_commit"], "c")
    assert rows["log_offset"].to_pylist() == [2]
    assert summary.tables["offset_commit"] == 1


def test_a_layer_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """Before Spark is started, and before anything is written."""
    with pytest.raises(kelpie.KelpieError, match="no layer 'diamond'"):
        kelpie.run_pipeline(tmp_path, tmp_path / "tables", keep={"diamond": timedelta(days=1)})
    assert not (tmp_path / "tables").exists()
