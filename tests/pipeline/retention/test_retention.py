"""Retention: old rows go, and what is kept is what a batch over everything would have."""

import random
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline.graph import Job
from kelpie.pipeline.retention import aging
from kelpie.pipeline.retention.aging import age
from kelpie.pipeline.retention.keep import LAYERS, Keep
from kelpie.pipeline.rounds import following
from kelpie.pipeline.rounds.diagnosis_rounds import DiagnosisRounds
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.lifetimes import AGELESS, ends, is_young
from tests.pipeline.rounds.histories import BRONZE, Arrival, cut
from tests.pipeline.rounds.test_rounds import CLUSTER, FOLLOWING, Killed, killed_at, make, take_in

KEEP = Keep({"bronze": timedelta(days=25), "silver": timedelta(days=28), "gold": timedelta(days=32)})
SLOWER = 480
"""A record every 16 hours: 70 of them are 46 days."""


_OF_WHAT_IS_LEFT = frozenset(DiagnosisRounds.outputs)
"""They are made, and say what the evidence that is left shows: group_health counts the rebalances of that."""


def latest(arrivals: list[Arrival]) -> datetime:
    times: list[datetime] = [
        row[column]
        for arrival in arrivals
        for rows in arrival.rows.values()
        for row in rows
        for column in ("written", "at")
        if row.get(column) is not None
    ]
    return max(times)


def young(lake: Lake, name: str, since: date | None) -> Counter[str]:
    where = None if since is None else is_young(TABLES[name], since)
    return Counter(map(repr, lake.rows(TABLES[name], CLUSTER, where).to_pylist()))


_STEPS = [(aging, "leave_state"), (aging, "exchange")]
"""A round that leaves state, or a commit."""


def follow(
    spark: SparkSession,
    folder: Path,
    seed: int,
    *,
    rounds: int,
    updates: Collection[int],
    jobs: Sequence[Job] = FOLLOWING,
) -> None:
    """`updates`: rounds in which Kelpie is another release, which makes all tables as a whole."""
    chance = random.Random(seed)
    arrivals = cut(chance, records=70, rounds=rounds, slower=SLOWER, late_by=1)
    kept, whole = Lake(folder / "kept"), Lake(folder / "whole")
    tables = ClusterTables(spark, kept, CLUSTER)
    went: Counter[str] = Counter()
    release = 0
    for number, arrival in enumerate(arrivals):
        take_in(kept, arrival, number)
        take_in(whole, arrival, number)
        now = latest(arrivals[: number + 1])
        release += number in updates
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(following, "code_version", lambda of=release: bytes([of]))
            make(tables, jobs)
            with pytest.MonkeyPatch.context() as killed:
                killed_at(chance.randrange(24), killed, _STEPS)
                try:
                    went.update(age(tables, KEEP, now, jobs=jobs))
                except Killed:
                    went.update(["killed"])
            went.update(age(tables, KEEP, now, jobs=jobs))
    make(ClusterTables(spark, whole, CLUSTER), jobs)
    made = [name for job in jobs for name in job.outputs if name not in _OF_WHAT_IS_LEFT]
    assert went.keys() >= {"killed", "offset_commit", "commit_timeline", "cluster_snapshot"}
    for name in made:
        since = KEEP.since(TABLES[name].layer, now)
        assert since is not None
        expected, found = young(whole, name, since), young(kept, name, since)
        differ = {"lacks": expected - found, "has": found - expected}
        assert not any(differ.values()), f"seed {seed}, {name}: {differ}"
    for name in {"lag", "traffic"} & set(made):
        since = KEEP.since(TABLES[name].layer, now)
        assert young(kept, name, None) == young(kept, name, since), f"old rows of {name} are left"


def test_rounds_with_retention_keep_what_a_batch_would_have(quick: SparkSession, tmp_path: Path) -> None:
    """A round goes on from what the last one left; an update makes all again, of what is left of bronze."""
    of_commits = [job for job in FOLLOWING if set(job.inputs) <= {*BRONZE[:2], "commit_timeline"}]
    follow(quick, tmp_path, 1, rounds=4, updates={3}, jobs=of_commits)


@pytest.mark.wide
def test_all_tables_with_retention_keep_what_a_batch_would_have(quick: SparkSession, tmp_path: Path) -> None:
    """Lag, groups and losses, too."""
    follow(quick, tmp_path, 1, rounds=4, updates={3})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_histories_with_retention_keep_what_a_batch_would_have(
    quick: SparkSession, tmp_path: Path, seed: int
) -> None:
    """What one history does not have, another one has."""
    follow(quick, tmp_path, seed, rounds=7, updates={4, 5} if seed % 2 else {})


def test_every_table_has_an_age_or_a_reason_why_not() -> None:
    """A new table must not grow for ever by oversight."""
    assert {name for name, table in TABLES.items() if not ends(table)} == set(AGELESS)
    assert set(LAYERS) == {table.layer for table in TABLES.values()}
