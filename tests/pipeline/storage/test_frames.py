"""Rows of a small table come to Spark from memory, those of a large one from files: they are the same."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.storage import frames
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.pipeline.rows import at, commit, generation

ROWS: dict[str, list[dict[str, Any]]] = {
    "offset_commit": [commit(3, 7, metadata="ü"), commit(4, None, committed=None)],
    "group_metadata": [generation(1, 1, "a", "b"), generation(2, 2)],
    "log_event": [{"kind": "k", "text": "t", "at": at(0.001), "details": {"k": "v", "n": "1"}}],
    "traffic_sample": [
        {"broker": "b", "day": at(86_400 * day).date(), "at": at(86_400 * day), "messages": day}
        for day in (0, 1)
    ],
}
USUAL = {
    "source": "s",
    "line": 1,
    "offsets_partition": 0,
    "key_type": 2,
    "is_removal": False,
    "is_transactional": False,
}


@pytest.mark.parametrize("name", ROWS)
def test_memory_and_files_give_the_same_rows(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nulls, times, lists of structs, maps, and columns that only the paths of files have."""
    lake = Lake(tmp_path)
    for cluster in ("c", "other"):
        usual = {key: value for key, value in USUAL.items() if key in TABLES[name].schema.names}
        rows = [{**usual, **row, "cluster": cluster} for row in ROWS[name]]
        lake.append_rows(TABLES[name], cluster, rows, application=cluster, version=1)
    tables = ClusterTables(spark, lake, "c")
    in_memory = tables.frame(name)
    monkeypatch.setattr(frames, "SMALL_FILES_BYTES", -1)
    of_files = tables.frame(name)
    assert in_memory.schema.simpleString() == of_files.schema.simpleString()
    found = [sorted(map(repr, each.collect())) for each in (in_memory, of_files)]
    assert found[0] == found[1]
    assert len(found[0]) == len(ROWS[name])
