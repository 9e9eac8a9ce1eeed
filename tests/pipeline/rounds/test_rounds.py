"""Tables that follow step by step: rounds of any size, in any order, leave what one round leaves."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.graph import JOBS, waves
from kelpie.pipeline.rounds import following
from kelpie.pipeline.rounds.commit_rounds import CommitRounds
from kelpie.pipeline.rounds.following import do, due
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.journal import Journal
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import STORED, TABLES
from tests.pipeline.rounds.histories import COMMITS, Arrival, cut

CLUSTER = "c"
FOLLOWING = [job for job in JOBS if job.follower is not None]
_STEPS = [(Journal, "record"), (Lake, "add"), (Lake, "renew"), (Lake, "delete")]


_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Many queries over few rows: what Spark does to be fast takes longer than they do."""


class Killed(BaseException):
    """No code of ours catches it."""


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in _QUICK}
    for name, value in _QUICK.items():
        spark.conf.set(name, value)
    yield spark
    for name, known in before.items():
        assert known is not None
        spark.conf.set(name, known)


def make(tables: ClusterTables) -> None:
    """The tables that follow, as `make_derived` does it."""
    for wave in waves(FOLLOWING):
        for job in wave:
            assert job.follower is not None
            work = due(tables, job.follower)
            if work is not None:
                do(tables, job.follower, work)


def take_in(lake: Lake, arrival: Arrival, number: int) -> None:
    for name, rows in arrival.rows.items():
        given = [{"cluster": CLUSTER, **row} for row in rows]
        if given:
            lake.append_rows(TABLES[name], CLUSTER, given, application="a", version=number)
    if arrival.void:
        lake.delete(TABLES[COMMITS], CLUSTER, arrival.void)
    if arrival.compacts:
        for name in (COMMITS, "commit_timeline", "traffic"):
            lake.compact(TABLES[name], CLUSTER)


def contents(lake: Lake) -> dict[str, Counter[str]]:
    names = [name for job in FOLLOWING for name in job.outputs]
    return {name: Counter(map(repr, lake.rows(TABLES[name], CLUSTER).to_pylist())) for name in names}


def in_one_round(spark: SparkSession, lake: Lake, folder: Path) -> dict[str, Counter[str]]:
    """What a new lake with the same rows of bronze has."""
    for name in ("offset_commit", "transaction_marker"):
        shutil.copytree(str(lake.path(TABLES[name])), folder / "bronze" / name)
    whole = Lake(folder)
    make(ClusterTables(spark, whole, CLUSTER))
    return contents(whole)


def killed_at(step: int, patched: pytest.MonkeyPatch) -> None:
    """The process ends at the beginning of this step."""
    left = [step]

    def stepwise(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return plain(*arguments, **named)

        return call

    for owner, name in _STEPS:
        patched.setattr(owner, name, stepwise(getattr(owner, name)))


def follow(spark: SparkSession, folder: Path, seed: int, *, records: int, rounds: int) -> list[str]:
    """Holds the tables after all rounds to those of one round. Returns how each round was made."""
    chance = random.Random(seed)
    lake, ways = Lake(folder / "lake"), list[str]()
    tables = ClusterTables(spark, lake, CLUSTER)
    with pytest.MonkeyPatch.context() as watched:
        if seed % 2:  # Small tables are soon replaced by half; large ones are not.
            watched.setattr(following, "_MOST_GONE", 2.0)
        for way in ("whole", "step"):
            watched.setattr(CommitRounds, way, _told(getattr(CommitRounds, way), way, ways))
        for number, arrival in enumerate(cut(chance, records=records, rounds=rounds)):
            take_in(lake, arrival, number)
            with pytest.MonkeyPatch.context() as patched:
                if chance.random() < 0.4:
                    killed_at(chance.randrange(12), patched)
                try:
                    make(tables)
                except Killed:
                    ways.append("killed")
    make(tables)
    expected = in_one_round(spark, lake, folder / "whole")
    found = contents(lake)
    for name, rows in expected.items():
        differ = {"lacks": rows - found[name], "has": found[name] - rows}
        assert not any(differ.values()), f"seed {seed}, {name}: {differ}; {ways}"
        assert rows, name
    return ways


def _told(plain: Callable[..., Any], way: str, ways: list[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        ways.append(way)
        return plain(*arguments, **named)

    return call


def test_rounds_with_kills_leave_what_one_round_leaves(quick: SparkSession, tmp_path: Path) -> None:
    """Late records, copies, dead leaders, open transactions, void rows and compaction included."""
    ways = follow(quick, tmp_path, 1, records=50, rounds=5)
    assert "step" in ways
    assert "killed" in ways


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_histories_in_rounds_leave_what_one_round_leaves(
    quick: SparkSession, tmp_path: Path, seed: int
) -> None:
    """What one history does not have, another one has."""
    follow(quick, tmp_path, seed, records=120, rounds=10)


def test_table_that_somebody_deleted_is_made_again(quick: SparkSession, tmp_path: Path) -> None:
    """The journal alone does not know what became of a table."""
    lake = Lake(tmp_path / "lake")
    tables = ClusterTables(quick, lake, CLUSTER)
    first, second = cut(random.Random(3), records=20, rounds=2)
    take_in(lake, first, 0)
    make(tables)
    shutil.rmtree(str(lake.path(STORED["commit_timeline"])))
    second.void = ""
    take_in(lake, second, 1)
    make(tables)
    assert contents(lake) == in_one_round(quick, lake, tmp_path / "whole")
