"""What is done to tables behind their readers' backs: rows that go, files that are put together."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kelpie.pipeline.lake import Lake, quoted
from kelpie.pipeline.sources.inventory import FILES, append

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
        append(lake, FILES, rows, "c", application="a", version=batch)
        append(lake, FILES, rows, "d", application="b", version=batch)
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
