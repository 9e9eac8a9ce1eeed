"""Files of tables that a task writes."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kelpie.pipeline.storage.parquet import write_parts
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.types import MOMENT
from tests.pipeline.rows import NOON, commit


def test_parts_go_into_one_file(tmp_path: Path) -> None:
    table = TABLES["commit_timeline"]
    own = {"offsets_partition": 0, "is_transactional": False}
    parts = [pa.Table.from_pylist([{**commit(place, place), **own}], table.schema) for place in range(3)]
    (file,) = write_parts(table, tmp_path, "c", [parts[0].slice(0, 0), *parts])
    assert file.rows == 3
    assert pq.ParquetFile(tmp_path / file.path).read()["offset"].to_pylist() == [0, 1, 2]
    assert write_parts(table, tmp_path, "c", [parts[0].slice(0, 0)]) == []


def test_parts_of_a_table_that_is_divided_go_into_a_file_for_each_value(tmp_path: Path) -> None:
    table = TABLES["traffic_closing"]
    days = {"day": [date(2026, 11, 1), date(2026, 11, 2)], "at": pa.array([NOON, NOON], MOMENT)}
    both = pa.table({**days, "broker": ["1", "2"], "source": ["s", "s"]})
    files = write_parts(table, tmp_path, "c", [both, both])
    assert [(file.rows, dict(file.within)) for file in files] == [
        (2, {"day": "2026-11-01"}),
        (2, {"day": "2026-11-02"}),
    ]
