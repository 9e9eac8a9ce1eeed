"""Commits by which outputs of tools are dated."""

from pyspark.sql import SparkSession

from kelpie.pipeline.diagnosis.history import changes
from tests.pipeline.rows import commit, frame


def test_only_commits_that_tell_when_something_was_shown_are_handed_out(spark: SparkSession) -> None:
    """Where a position came to the offset, where it left it, and where it began; not what lies between."""
    offsets = [1, 1, 2, 3, 3, 3, 4, 5, None, 3, 3]
    rows = [commit(place, offset) for place, offset in enumerate(offsets)]
    rows += [commit(20, 3, group="h"), commit(21, 9, partition=1)]
    shown = spark.createDataFrame(
        [("g", "t", 0, 3), ("g", "t", 1, 7)], "group string, topic string, partition int, offset bigint"
    )
    found = changes(frame(spark, "offset_commit", rows), shown).orderBy("log_offset").collect()
    assert [(row["log_offset"], row["offset"]) for row in found] == [(0, 1), (3, 3), (6, 4), (9, 3), (21, 9)]
