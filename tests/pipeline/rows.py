"""Rows of tables for tests: what is not named is null, or what the column usually holds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kelpie.pipeline.tables import TABLES

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
_USUAL: dict[str, Any] = {
    "cluster": "c",
    "offsets_partition": 0,
    "is_transactional": False,
    "is_removal": False,
    "source": "s",
    "key_type": 2,
}


def at(seconds: float) -> datetime:
    """A moment, counted from noon."""
    return NOON + timedelta(seconds=seconds)


def frame(spark: SparkSession, table: str, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Through Arrow: Spark then knows how few rows they are, and plans without shuffles for joins."""
    schema = TABLES[table].spark_schema
    usual = {name: value for name, value in _USUAL.items() if name in schema.fieldNames()}
    columns = to_arrow_schema(schema, timezone="UTC")
    return spark.createDataFrame(pa.Table.from_pylist([{**usual, **row} for row in rows], columns), schema)


def commit(log_offset: int, offset: int | None, **more: Any) -> dict[str, Any]:
    usual = {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "committed": at(log_offset),
        "written": at(log_offset),
    }
    return {**usual, "log_offset": log_offset, "offset": offset, **more}


def marker(log_offset: int, producer_id: int, *, is_commit: bool) -> dict[str, Any]:
    return {"log_offset": log_offset, "producer_id": producer_id, "producer_epoch": 0, "is_commit": is_commit}


def generation(log_offset: int, number: int, *members: str, **more: Any) -> dict[str, Any]:
    return {
        "log_offset": log_offset,
        "group": "g",
        "generation": number,
        "written": at(log_offset),
        "members": [{"member_id": member, "client_id": f"client-{member}"} for member in members],
        **more,
    }
