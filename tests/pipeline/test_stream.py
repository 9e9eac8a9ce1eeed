"""The stream, killed at a random moment, ends with the tables of a batch; `make soak` does so for minutes."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.soak import soak

pytestmark = pytest.mark.long


def test_stream_that_was_killed_ends_with_the_tables_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A live lab with a broker that dies; each input counts once, and none is missing."""
    counts = soak(spark, tmp_path, seconds=25, kills=1, seed=3, tell=print)
    for name in (
        "offset_commit",
        "group_metadata",
        "cluster_snapshot",
        "commit_timeline",
        "group_health",
        "lag",
    ):
        assert counts[name], name
