"""Rows that the driver sorts, and the parts in which it does so."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from kelpie.pipeline import ordering
from kelpie.pipeline.ordering import in_parts, keys, run_starts


def of_groups(chance: random.Random, count: int, groups: int) -> pa.Table:
    """In two chunks, as rows of two files are."""
    names = [f"g{chance.randrange(groups)}" for _ in range(count)]
    halves = [pa.array(names[: count // 3], pa.string()), pa.array(names[count // 3 :], pa.string())]
    return pa.table({"group": pa.chunked_array(halves), "number": pa.array(range(count))})


@pytest.mark.parametrize("seed", range(10))
def test_each_part_has_all_rows_of_its_groups(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(ordering, "PART_ROWS", 10)
    rows, carried = of_groups(chance, 100, 20), of_groups(chance, chance.choice([0, 30]), 25)
    parts = list(in_parts(rows, carried))
    assert len(parts) > 5
    for place, whole in enumerate((rows, carried)):
        found = [row for part in parts for row in part[place].to_pylist()]
        assert Counter(map(repr, found)) == Counter(map(repr, whole.to_pylist()))
    homes = [{*new["group"].to_pylist(), *old["group"].to_pylist()} for new, old in parts]
    assert sum(map(len, homes)) == len(set().union(*homes))


def test_few_rows_and_one_large_group_are_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = of_groups(random.Random(1), 100, 1)
    assert list(in_parts(rows, rows.slice(0, 0))) == [(rows, rows.slice(0, 0))]
    monkeypatch.setattr(ordering, "PART_ROWS", 10)
    ((part, _),) = in_parts(rows, rows.slice(0, 0))
    assert part.num_rows == 100


@pytest.mark.parametrize("far", [3, 1 << 40])
def test_rows_that_are_alike_have_the_same_number_in_order(far: int) -> None:
    """Numbers that are near each other are counted, others are sorted."""
    key = np.array([far, 0, 2, far, 0])
    assert ordering._renumbered(key).tolist() == [2, 0, 1, 2, 0]


def test_names_and_numbers_make_one_key() -> None:
    """In all chunks: those of two files have dictionaries of their own."""
    groups = pa.chunked_array([["b", None], ["a", "b", "b"]])
    for names in (groups, pa.chunked_array([chunk.dictionary_encode() for chunk in groups.chunks])):
        key = keys(pa.table({"group": names, "partition": [0, 0, 0, 1, 0]}), ["group", "partition"]).tolist()
        assert len(set(key)) == 4
        assert key[0] == key[4]
    assert keys(pa.table({"group": pa.chunked_array([], pa.string())}), ["group"]).tolist() == []


def test_runs_begin_where_a_name_or_a_number_changes() -> None:
    """Also where one chunk ends, and nowhere in a table without rows."""
    groups = pa.chunked_array([["a", "a"], ["a", "b"]])
    rows = pa.table({"group": groups, "partition": [0, 1, 1, 1]})
    assert run_starts(rows, ["group", "partition"]).tolist() == [0, 1, 3]
    assert run_starts(rows, ["group"]).tolist() == [0, 3]
    assert run_starts(rows.slice(0, 1), ["group"]).tolist() == [0]
    assert run_starts(rows.slice(0, 0), ["group"]).tolist() == []
