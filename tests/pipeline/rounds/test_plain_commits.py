"""Commits in order and outside of transactions: the driver makes the rows that Spark makes."""

import random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kelpie.pipeline.rounds.plain_commits import made, special
from kelpie.pipeline.rounds.seen import Seen
from kelpie.pipeline.storage.frames import stored_names
from kelpie.pipeline.tables import STORED, TABLES
from kelpie.pipeline.tables.state import WHY
from kelpie.pipeline.transforms.commits import SETTLED, Epochs, carried_commits, timeline
from tests.pipeline.rows import at, commit

COMMITS, CARRIED, TIMELINE = TABLES["offset_commit"], STORED["carried_commit"], TABLES["commit_timeline"]
MARKERS = TABLES["transaction_marker"]


def record(place: int, offset: int | None, **more: Any) -> dict[str, Any]:
    own = {"log_epoch": 1, "source": "s", "offsets_partition": 0, "is_transactional": False}
    return {"cluster": "c", **commit(place, offset), **own, **more}


def new_rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), COMMITS.schema).select(stored_names("offset_commit"))


def carried_rows(*given: dict[str, Any]) -> pa.Table:
    rows = pa.Table.from_pylist([{WHY: SETTLED, **row} for row in given], CARRIED.schema)
    return rows.select(stored_names("carried_commit"))


def test_rows_are_those_that_spark_makes(spark: SparkSession) -> None:
    """Copies, removals, several groups, old clients without epochs and times."""
    chance = random.Random(7)
    carried = [
        record(place, place * 10, group=f"g{place % 3}", partition=place, leader_epoch=2)
        for place in range(4)
    ]
    new = []
    for place in range(10, 60):
        row = record(
            place,
            chance.choice([None, place, place + 5, 3]),
            group=f"g{chance.randrange(4)}",
            partition=chance.randrange(4),
            leader_epoch=chance.choice([None, 3]),
            expires=chance.choice([None, at(place + 900)]),
            committed=chance.choice([None, at(place)]),
        )
        new += [row] * chance.choice([1, 1, 2])
    found = made(new_rows(*new), carried_rows(*carried))
    markers = spark.createDataFrame([], MARKERS.spark_schema)
    both = spark.createDataFrame(pa.Table.from_pylist([*carried, *new], COMMITS.schema), COMMITS.spark_schema)
    of_spark = timeline(both, markers).where("log_offset >= 10")
    names = [name for name in TIMELINE.schema.names if name != "cluster"]
    assert _sorted(found.timeline.select(names)) == _sorted(of_spark.select(*names).toArrow())
    kept = carried_commits(both, markers, Epochs(), WHY)
    names = stored_names("carried_commit")
    assert _sorted(found.carried.select(names)) == _sorted(kept.select(*names).toArrow())


def test_partitions_that_are_not_as_plain_as_that_are_named() -> None:
    before = Seen(dict.fromkeys(range(8), 9), {number: {1: 0} for number in range(8)})
    new = new_rows(
        record(10, 1, offsets_partition=0),
        record(10, 1, offsets_partition=1, is_transactional=True),
        record(9, 1, offsets_partition=2),
        # The newer leader's log begins before the older one's last record.
        record(10, 1, offsets_partition=3, log_epoch=2),
        record(11, 1, offsets_partition=3, log_epoch=1),
        # Here it goes on behind it.
        record(10, 1, offsets_partition=4, log_epoch=1),
        record(11, 1, offsets_partition=4, log_epoch=2),
        record(10, 1, offsets_partition=5, log_epoch=None),
    )
    waiting = carried_rows(record(5, 1, offsets_partition=6, **{WHY: "pending"}))
    marker = pa.table({"offsets_partition": pa.array([7], pa.int32())})
    assert special(new, waiting, [marker], before=before, after=before.with_rows(new)) == {1, 2, 3, 6, 7}


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))
