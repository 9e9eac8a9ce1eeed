"""Histories of groups without Spark: the same rows as those of the transforms."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kelpie.pipeline.plain_groups import group_rows
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.standing import once
from kelpie.pipeline.storage.frames import empty
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.transforms.generations import generations, memberships
from kelpie.pipeline.transforms.rebalances import rebalances
from tests.pipeline.rounds.histories import EVENTS, RECORDS, cut

NAMES = ("group_generation", "membership_interval", "rebalance")


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"cluster": "c", **row} for row in rows], TABLES[name].schema)


def _texts(name: str, rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.select(TABLES[name].schema.names).cast(TABLES[name].schema).to_pylist()))


def _of_spark(spark: SparkSession, records: pa.Table, events: pa.Table) -> dict[str, pa.Table]:
    def frame(name: str, rows: pa.Table) -> DataFrame:
        return frame_of_arrow(spark, rows, TABLES[name].spark_schema).coalesce(1)

    lines = frame(EVENTS, events)
    known = generations(
        frame(RECORDS, records),
        empty(spark, TABLES["offset_commit"].spark_schema),
        empty(spark, TABLES["cluster_snapshot"].spark_schema),
    )
    made = dict(zip(NAMES, (known, memberships(known, lines), rebalances(known, lines)), strict=True))
    found = {}
    for name, rows in made.items():
        columns = [field for field in TABLES[name].spark_schema if field.name in rows.columns]
        of_table = rows.select(*(rows[field.name].cast(field.dataType) for field in columns)).toArrow()
        if name == "rebalance":  # Groups that Kafka keeps never give up.
            of_table = of_table.append_column("gave_up", pa.nulls(len(of_table), pa.list_(pa.string())))
        found[name] = of_table
    return found


def _plain(records: pa.Table, events: pa.Table) -> dict[str, pa.Table]:
    lines = [{**row, "assignor": dict(row["details"] or ()).get("assignor")} for row in events.to_pylist()]
    order = once(records).sort_by([("offsets_partition", "ascending"), ("log_offset", "ascending")])
    rows = order.to_pylist()
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    for group in {row["group"] for row in (*rows, *lines) if row["group"] is not None}:
        of_group = group_rows(
            [row for row in rows if row["group"] == group],
            [row for row in lines if row["group"] == group],
            {},
        )
        parts = (of_group.generations, of_group.memberships, of_group.rebalances)
        for name, part in zip(NAMES, parts, strict=True):
            made[name] += [{"cluster": "c", "group": group, **row} for row in part]
    return {name: pa.Table.from_pylist(rows, TABLES[name].schema) for name, rows in made.items()}


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_random_histories_are_those_of_the_transforms(spark: SparkSession, seed: int) -> None:
    """Groups that are removed and come again, members that come back, lines of logs, KIP-848."""
    arrivals = cut(random.Random(seed), records=150, rounds=1)
    records = _table(RECORDS, [row for each in arrivals for row in each.rows[RECORDS]])
    events = _table(EVENTS, [row for each in arrivals for row in each.rows[EVENTS]])
    expected, found = _of_spark(spark, records, events), _plain(records, events)
    for name in NAMES:
        here, there = _texts(name, found[name]), _texts(name, expected[name])
        assert here == there, (name, list((here - there).items())[:3], list((there - here).items())[:3])
        assert here
