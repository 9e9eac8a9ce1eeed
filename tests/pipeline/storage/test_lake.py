"""What is done to tables behind their readers' backs: rows that go, files that are put together."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kelpie.pipeline.sources.inventory import FILES
from kelpie.pipeline.storage.lake import Lake, quoted

NAMES = ("a.log", "it's_0.log", "b.log")


def row(name: str, batch: int) -> dict[str, object]:
    return {
        "cluster": "c",
        "source": name,
        "path": f"/disk/{name}",
        "size": 1,
        "modified": datetime(2026, 11, 15, tzinfo=UTC),
        "kinds": ["log"],
        "reason": None,
        "batch": batch,
    }


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_are_found_in_files_that_were_written_anew(tmp_path: Path, *, compacted: bool) -> None:
    """By names, too: Arrow and deltalake have different strings."""
    lake = Lake(tmp_path)
    for batch in (1, 2):
        rows = [row(name, batch) for name in NAMES]
        lake.append_rows(FILES, "c", rows, application="a", version=batch)
        lake.append_rows(FILES, "d", rows, application="b", version=batch)
    lake.delete(FILES, "c", f"source = {quoted(NAMES[1])} AND batch < 2")
    if compacted:
        lake.compact(FILES, "c")
    of_two = pc.field("path").isin(pa.array([f"/disk/{name}" for name in NAMES[:2]]))
    found = lake.rows(FILES, "c", of_two & (pc.field("batch") < 3)).select(["source", "batch"]).to_pylist()
    assert sorted((it["source"], it["batch"]) for it in found) == [
        ("a.log", 1),
        ("a.log", 2),
        ("it's_0.log", 2),
    ]
    assert (lake.count(FILES, "c"), lake.count(FILES, "d")) == (5, 6)
    assert (lake.count(FILES, "c", of_two), lake.count(FILES, "d", of_two)) == (3, 4)


def test_rows_get_another_name_where_they_are(tmp_path: Path) -> None:
    """Those of one cluster only; and filters of Arrow's read what deltalake has written anew."""
    lake = Lake(tmp_path)
    for cluster in ("c", "d"):
        rows = [row(name, 1) for name in NAMES]
        lake.append_rows(FILES, cluster, rows, application=cluster, version=1)
    for _ in range(2):
        lake.update(FILES, "c", f"source = {quoted(NAMES[0])} AND batch = 1", {"source": "o'ther.log.1"})
    known = pc.field("source") == "o'ther.log.1"
    assert [it["path"] for it in lake.rows(FILES, "c", known).to_pylist()] == [f"/disk/{NAMES[0]}"]
    assert lake.rows(FILES, "d", known).num_rows == 0
    assert (lake.count(FILES, "c"), lake.count(FILES, "d")) == (len(NAMES), len(NAMES))
