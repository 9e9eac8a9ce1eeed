"""A stream that is killed while it takes in files ends with the tables of a batch; `make soak` kills more."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.soak import soak
from tests.pipeline.soak_moments import LISTED

pytestmark = pytest.mark.long


def test_stream_that_was_killed_ends_with_the_tables_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A live lab with a broker that dies; each input counts once, and none is missing.

    The kill leaves a batch of files that was begun and not ended, and the files grow until the next start.
    """
    counts = soak(spark, tmp_path, seconds=25, kills=1, seed=3, tell=print, moments=(LISTED,))
    for name in (
        "offset_commit",
        "group_metadata",
        "cluster_snapshot",
        "commit_timeline",
        "group_health",
        "lag",
    ):
        assert counts[name], name
