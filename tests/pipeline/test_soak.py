"""The judge of `make soak`: tables that are not those of a batch are told, whatever is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.storage.parquet import write_rows
from kelpie.pipeline.tables import TABLES
from tests.pipeline.soak import CLUSTER, compared

TORN, QUESTIONS = TABLES["quarantine"], TABLES["open_question"]
_DAMAGE: dict[str, Callable[[Lake], None]] = {
    "lacks 1 of 2 rows": lambda lake: lake.delete(TORN, CLUSTER, "position = 1"),
    "has 1 rows that a batch has not": lambda lake: _add(lake, 2, _row(1)),
    "has 2 rows that a batch has not": lambda lake: _add(lake, 2, _row(7), _row(8)),
    "open_question lacks 1 of 1": lambda lake: lake.replace(QUESTIONS, CLUSTER, (), made_of=0),
}


def _row(position: int) -> dict[str, Any]:
    return {"cluster": CLUSTER, "source": "s", "position": position, "size": 1, "reason": "torn"}


def _add(lake: Lake, version: int, *rows: dict[str, Any]) -> None:
    lake.open(TORN)
    files = write_rows(TORN, lake.path(TORN), CLUSTER, rows)
    lake.add(TORN, files, application="a", version=version)


def _lake(path: Path) -> Lake:
    lake = Lake(path)
    _add(lake, 0, _row(0))
    _add(lake, 1, _row(1))
    lake.open(QUESTIONS)
    question = {"cluster": CLUSTER, "group": "g", "code": "KLP1", "name": "n", "missing": ["it"]}
    rows = write_rows(QUESTIONS, lake.path(QUESTIONS), CLUSTER, [question])
    lake.replace(QUESTIONS, CLUSTER, rows, made_of=0)
    return lake


@pytest.mark.parametrize("told", _DAMAGE)
def test_rows_that_are_lost_doubled_or_invented_are_told(tmp_path: Path, told: str) -> None:
    """Twice is not once: a row that came in again is as wrong as one that is missing."""
    one, other = _lake(tmp_path / "one"), _lake(tmp_path / "other")
    assert compared(one, other)["quarantine"] == 2
    _DAMAGE[told](one)
    with pytest.raises(AssertionError, match=told):
        compared(one, other)
