"""Commits of many groups as runs, held to the plain way: one row after the other."""

import random
from typing import Any

import pyarrow as pa
import pytest

from kelpie.observations import Commit
from kelpie.pipeline.diagnosis.commit_runs import commit_runs, with_expiry
from kelpie.pipeline.diagnosis.judging import _commit_of, _place_in_log
from kelpie.pipeline.tables import STORED
from tests.pipeline.rows import at, commit

SCHEMA = STORED["recent_commit"].schema


def table(rows: list[dict[str, Any]]) -> pa.Table:
    usual = {"cluster": "c", "offsets_partition": 0, "is_transactional": False}
    return pa.Table.from_pylist([{**usual, **row} for row in rows], SCHEMA)


@pytest.mark.parametrize("seed", range(20))
def test_runs_have_the_rows_of_the_log_in_its_order(seed: int) -> None:
    """Removals, transactions, commits without a time, and partitions that come twice at one time included."""
    chance = random.Random(seed)
    rows = [
        commit(
            number,
            chance.choice([None, number, number]),
            group=chance.choice(["a", "a", "b"]),
            topic=chance.choice("tu"),
            partition=chance.randrange(3),
            offsets_partition=chance.randrange(2),
            committed=chance.choice([None, *[at(number // 10)] * 5]),
            leader_epoch=chance.choice([None, 4]),
            is_transactional=chance.random() < 0.2,
        )
        for number in range(120)
    ]
    chance.shuffle(rows)
    known = table(rows)
    runs = commit_runs(known)
    for group in ("a", "b"):
        of_group = [row for row in known.to_pylist() if row["group"] == group]
        plain = [_commit_of(row, None) for row in sorted(of_group, key=_place_in_log)]
        made: list[Commit] = [row for run in runs[group] for row in run.rows]
        assert made == plain
        assert all(len(set(run.names)) == len(run.names) for run in runs[group])
    assert max(len(run.names) for of_group in runs.values() for run in of_group) > 1


def test_what_a_request_commits_is_one_run() -> None:
    """So the doctor compares runs of a healthy group, and no single partition."""
    rows = [
        commit(4 * step + part, step, partition=part, committed=at(step))
        for step in (1, 2)
        for part in range(4)
    ]
    first, second = commit_runs(table(rows))["g"]
    assert (first.offsets, second.offsets) == ((1, 1, 1, 1), (2, 2, 2, 2))
    assert first.names is second.names


def test_commits_that_say_when_they_expire_are_told() -> None:
    """A run has no place for that."""
    rows = [commit(1, 1), commit(2, 2, group="old", previous_expires=at(9))]
    assert with_expiry(table(rows)) == ["old"]
    assert commit_runs(table([])) == {}
