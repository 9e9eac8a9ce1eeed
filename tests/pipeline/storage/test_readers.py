"""Whoever knows Delta reads the tables, and all read the same; and Spark's tasks write what is true."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from bench.fleet_segments import ROUNDS_A_DAY, START_MS, Fleet, name, topic
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.pipeline.sources.segments.files import COMMITS, FILLED, GROUPS
from kelpie.pipeline.sources.segments.intake import Ingested, on_spark
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import LakeTable
from tests.pipeline.sources.segments.segments import CLUSTER, ingest

FLEET = Fleet(groups=60, partitions=3, days=20 / ROUNDS_A_DAY)
PLAIN = ("cluster", "log_offset", "group", "topic", "partition", "offset", "metadata", "committed")


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Ingested]:
    """A small fleet, read by Spark's tasks."""
    folder = tmp_path_factory.mktemp("fleet")
    FLEET.write(folder / "broker-1")
    lake = Lake(folder / "lake")
    return lake, ingest(lake, [folder / "broker-1"], on_spark(spark.sparkContext))


def by_spark(path: str, spark: SparkSession) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(path).select(*PLAIN).toArrow().to_pylist()
    return [tuple(row.values()) for row in rows]


def by_deltalake(path: str, _: SparkSession) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in DeltaTable(path).to_pyarrow_table(columns=list(PLAIN)).to_pylist()]


def by_duckdb(path: str, _: SparkSession) -> list[tuple[Any, ...]]:
    """Its own extension for Delta must be fetched from its makers' site; so through deltalake's dataset."""
    table = DeltaTable(path).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("commits", table)
        columns = ", ".join(f'"{column}"' for column in PLAIN)
        found = connection.sql(f"select {columns} from commits").to_arrow_table()
        return [tuple(row.values()) for row in found.to_pylist()]


def by_polars(path: str, _: SparkSession) -> list[tuple[Any, ...]]:
    return polars.read_delta(path).select(PLAIN).rows()


def test_all_readers_see_the_same_rows(spark: SparkSession, done: tuple[Lake, Ingested]) -> None:
    """Spark, deltalake, DuckDB and Polars: also names in dictionaries, differences, nulls and times."""
    path = str(done[0].path(COMMITS))
    seen = [sorted(read(path, spark), key=str) for read in (by_spark, by_deltalake, by_duckdb, by_polars)]
    assert len(seen[0]) == FLEET.commits
    for other in seen[1:]:
        assert [_comparable(row) for row in other] == [_comparable(row) for row in seen[0]]


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Zones have several classes."""
    return tuple(it.astimezone(UTC) if isinstance(it, datetime) else it for it in row)


def test_files_of_tasks_have_the_declared_columns(spark: SparkSession, done: tuple[Lake, Ingested]) -> None:
    """What tasks write themselves must be what Spark and Delta think it is, nested columns too."""
    for table in FILLED:
        found = spark.read.format("delta").load(str(done[0].path(table)))
        assert found.schema == table.spark_schema
        assert found.toArrow().num_rows == done[1].rows[table.name]


def test_fleet_comes_out_as_it_is(spark: SparkSession, done: tuple[Lake, Ingested]) -> None:
    """Every commit, marker and rebalance, and the last offset of each position."""
    lake, counts = done
    assert dict(counts.rows) == {
        "offset_commit": FLEET.commits,
        "transaction_marker": FLEET.markers,
        "group_metadata": FLEET.rebalances,
        "quarantine": 0,
    }
    rows = DeltaTable(str(lake.path(COMMITS))).to_pyarrow_table().to_pylist()
    last: dict[tuple[str, str, int], int] = {}
    for row in sorted(rows, key=lambda row: row["log_offset"]):
        last[row["group"], row["topic"], row["partition"]] = row["offset"]
    assert last == {
        (name(group), topic(group, partition), partition): FLEET.last_offset(group, partition)
        for group in range(FLEET.groups)
        for partition in range(FLEET.partitions)
    }
    assert {row["cluster"] for row in rows} == {CLUSTER}
    assert {row["replica"] for row in rows} == {1}
    assert min(row["committed"] for row in rows) == datetime.fromtimestamp(START_MS / 1000, UTC)
    (members,) = {
        len(row["members"]) for row in DeltaTable(str(lake.path(GROUPS))).to_pyarrow_table().to_pylist()
    }
    assert members == 3


def test_files_that_a_question_does_not_need_are_skipped(done: tuple[Lake, Ingested]) -> None:
    """Delta knows the least and the greatest of what tables are searched by."""
    adds = DeltaTable(str(done[0].path(COMMITS))).get_add_actions(flatten=True)
    columns = set(adds.schema.names)
    assert {"min.log_offset", "max.log_offset", "min.committed", "max.offsets_partition"} <= columns
    assert {"partition.cluster", "num_records"} <= columns


def test_condition_finds_its_rows_whatever_columns_have_bounds(done: tuple[Lake, Ingested]) -> None:
    """deltalake takes a column without bounds for one without values, unless told which columns have any."""
    table = DeltaTable(str(done[0].path(COMMITS)))
    some = table.to_pyarrow_table(filters=[("group", "=", name(7))])
    assert some.num_rows
    assert set(some["group"].to_pylist()) == {name(7)}
    of_cluster = table.to_pyarrow_table(filters=[("cluster", "=", CLUSTER)])
    assert of_cluster.num_rows == FLEET.commits


def test_table_of_an_older_release_gets_new_columns(tmp_path: Path) -> None:
    """Columns are added at the end; what is there stays readable."""
    older = LakeTable(COMMITS.name, COMMITS.layer, COMMITS.meaning, COMMITS.columns[:-1], COMMITS.key)
    lake = Lake(tmp_path)
    lake.open(older)
    assert [field.name for field in lake.open(COMMITS).schema().fields] == COMMITS.schema.names
