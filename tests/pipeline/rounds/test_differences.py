"""What differs between the rows that a table has and those that it should have; and how rows are deleted."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kelpie.pipeline.rounds.differences import conditions, difference_in_memory, difference_of_few, literal
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.pipeline.rows import at

LAG = TABLES["lag"]


def row(group: str, seconds: float, offset: int | None = 1) -> dict[str, Any]:
    return {
        "cluster": "c",
        "group": group,
        "topic": "t",
        "partition": 0,
        "at": at(seconds),
        "offset": offset,
    }


def rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), LAG.schema)


def test_rows_that_are_twice_count_twice() -> None:
    """Two rows may be alike in all columns, and then a table must have both."""
    same, gone = row("g", 1), row("g", 2, None)
    differ = difference_in_memory(rows(same, gone), rows(same, same, same))
    assert differ.came == rows(same, same)
    assert differ.went == rows(gone)


def test_few_rows_are_compared_with_all_that_is_nested_in_them() -> None:
    """As Spark compares them: each row as often as it is there."""

    def generation(number: int, *members: str) -> dict[str, Any]:
        roster = [{"member_id": each, "assigned": [{"topic": "t", "partition": 1}]} for each in members]
        return {"cluster": "c", "group": "g", "incarnation": 0, "generation": number, "roster": roster}

    def table(*given: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist(list(given), TABLES["group_generation"].schema)

    old = table(generation(1, "a"), generation(2, "a", "b"), generation(3))
    fresh = table(generation(3), generation(2, "a", "c"), generation(1, "a"), generation(1, "a"))
    differ = difference_of_few(old, fresh)
    assert differ.came == table(generation(2, "a", "c"), generation(1, "a"))
    assert differ.went == table(generation(2, "a", "b"))


@pytest.mark.parametrize("offset", [7, None])
def test_conditions_delete_the_rows_that_they_are_made_of_and_no_others(
    tmp_path: Path, offset: int | None
) -> None:
    """Also where names have quotes, values are null, and the files have bounds of the times."""
    lake = Lake(tmp_path)
    gone = row("it's", 1.5, offset)
    others = [row("it's", 1.5, 8), row("it's", 2, offset), row("its", 1.5, offset)]
    for number, each in enumerate([gone, *others]):
        lake.append_rows(LAG, "c", [each], application="a", version=number)
    (where,) = conditions(LAG, rows(gone))
    lake.delete(LAG, "c", where)
    left = lake.rows(LAG, "c").sort_by([("at", "ascending"), ("group", "ascending")])
    assert left.to_pylist() == rows(others[0], others[2], others[1]).to_pylist()


def test_times_are_compared_with_the_bounds_of_files(tmp_path: Path) -> None:
    """deltalake refuses to compare these with a literal of another type of time."""
    lake = Lake(tmp_path)
    for number in range(4):
        lake.append_rows(LAG, "c", [row("g", number)], application="a", version=number)
    lake.delete(LAG, "c", f"at >= {literal(at(2))}")
    assert sorted(lake.rows(LAG, "c")["at"].to_pylist()) == [at(0), at(1)]
