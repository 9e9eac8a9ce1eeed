"""Which records count: what the driver finds of few rows is what Spark finds."""

import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.standing import counted, once
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.transforms import commits
from tests.pipeline.rounds.histories import COMMITS, MARKERS, RECORDS, cut

_OF_THE_COPY = {"cluster", "source", "replica", "log_epoch"}
"""Which of several copies counts is left open."""


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"cluster": "c", **row} for row in rows], TABLES[name].schema)


def contents(rows: pa.Table) -> list[str]:
    plain = rows.select([name for name in rows.column_names if name not in _OF_THE_COPY])
    return sorted(set(map(repr, plain.to_pylist())))


@pytest.mark.parametrize("seed", range(3))
def test_driver_and_spark_find_the_same_records(spark: SparkSession, seed: int) -> None:
    """Dead leaders, copies, open and aborted transactions, and tombstones amid them."""
    arrivals = cut(random.Random(seed), records=300, rounds=1)
    of, frames = {}, {}
    for name in (COMMITS, MARKERS, RECORDS):
        of[name] = table(name, [row for arrival in arrivals for row in arrival.rows[name]])
        frames[name] = spark.createDataFrame(of[name], TABLES[name].spark_schema)
    found = counted(of[COMMITS], of[MARKERS])
    expected = commits.counted(frames[COMMITS], frames[MARKERS]).toArrow().cast(TABLES[COMMITS].schema)
    assert contents(found) == contents(expected)
    assert 0 < sum(found["is_transactional"].to_pylist()) < sum(of[COMMITS]["is_transactional"].to_pylist())
    assert once(found).num_rows == expected.num_rows < found.num_rows
    for name in (MARKERS, RECORDS):
        expected = commits.once(frames[name]).toArrow().cast(TABLES[name].schema)
        assert contents(once(of[name])) == contents(expected)
        assert once(of[name]).num_rows == expected.num_rows


def test_no_record_is_no_record() -> None:
    assert counted(table(COMMITS, []), table(MARKERS, [])).num_rows == once(table(RECORDS, [])).num_rows == 0
