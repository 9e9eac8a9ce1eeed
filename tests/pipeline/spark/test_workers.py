"""Processes of tasks do not look at their modules again and again."""

import gc

from pyspark.sql import SparkSession

from kelpie.pipeline.spark.workers import spare_modules


def _objects_to_collect(_: int) -> list[int]:
    import numba  # noqa: F401 - what a task imports has many objects.

    spare_modules()
    return [len(gc.get_objects())]


def test_what_a_task_has_imported_is_not_looked_at_again(spark: SparkSession) -> None:
    """PySpark collects garbage after every task."""
    (rest,) = spark.sparkContext.parallelize([1], 1).flatMap(_objects_to_collect).collect()
    assert rest < 20_000
