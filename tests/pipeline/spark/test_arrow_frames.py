"""Rows in memory reach Spark, all of them, however the table in memory is cut into batches."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kelpie.pipeline
from kelpie.pipeline.ordering import is_of
from kelpie.pipeline.spark.arrow_frames import frame_of_arrow
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.pipeline.rows import NOON

_SOURCE = Path(kelpie.pipeline.__file__).parent
_OF_LISTS = {"sources/snapshots/surveys.py", "sources/scrapes/intake.py"}
"""They make frames of lists of names, which have no batches."""


@pytest.mark.parametrize(
    "sizes", [(), (0,), (3,), (3, 0), (0, 3), (3, 0, 4), (0, 0, 3), (5, 1, 0, 2), (2, 0, 0, 2), (1, 1, 1)]
)
def test_no_row_is_lost_behind_an_empty_batch(spark: SparkSession, sizes: Sequence[int]) -> None:
    times = pa.list_(pa.struct({"at": pa.timestamp("us", "UTC")}))
    schema = pa.schema({"number": pa.int64(), "text": pa.string(), "times": times})
    rows = [
        {"number": number, "text": str(number), "times": [{"at": NOON}] * number}
        for number in range(sum(sizes))
    ]
    ends = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    parts = [pa.Table.from_pylist(rows[begin:end], schema) for begin, end in pairwise(ends)]
    table = pa.concat_tables([schema.empty_table(), *parts])
    assert frame_of_arrow(spark, table).toArrow().to_pylist() == rows


def test_files_without_rows_of_a_group_do_not_hide_those_of_the_next_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Files are read in the order of their names, which are random: some have nothing of the group."""
    lake = Lake(tmp_path)
    table = TABLES["group_metadata"]
    for number in range(8):
        group = "billing" if number % 3 == 0 else "audit"
        row = {"cluster": "c", "group": group, "offsets_partition": 0, "log_offset": number, "written": NOON}
        row |= {"key_type": 2, "is_removal": True, "source": "disk"}
        lake.append_rows(table, "c", [row], application="a", version=number)
    tables = ClusterTables(spark, lake, "c")
    columns = ["group", "log_offset"]
    found = tables.columns_of(table.name, tables.files_now(table.name), columns, is_of(["billing"]))
    assert sorted(frame_of_arrow(spark, found).toArrow()["log_offset"].to_pylist()) == [0, 3, 6]


def test_frames_of_rows_in_memory_are_made_in_one_place() -> None:
    """Whoever calls Spark directly may lose rows, and no error tells."""
    direct = {
        str(path.relative_to(_SOURCE))
        for path in _SOURCE.rglob("*.py")
        if "createDataFrame(" in path.read_text()
    }
    assert direct == {"spark/arrow_frames.py", *_OF_LISTS}
