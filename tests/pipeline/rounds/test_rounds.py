"""Tables that follow step by step: rounds of any size, in any order, leave what one round leaves."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline import ordering
from kelpie.pipeline.graph import JOBS, Job, waves
from kelpie.pipeline.rounds import (
    commit_rounds,
    following,
    group_changes,
    group_tails,
    lag_rounds,
    loss_rounds,
    regression_rounds,
)
from kelpie.pipeline.rounds.commit_rounds import CommitRounds
from kelpie.pipeline.rounds.diagnosis_rounds import DiagnosisRounds
from kelpie.pipeline.rounds.following import do, due
from kelpie.pipeline.rounds.group_rounds import GroupRounds
from kelpie.pipeline.rounds.lag_rounds import LagRounds
from kelpie.pipeline.rounds.loss_rounds import LossRounds
from kelpie.pipeline.rounds.plain_holds import until
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.journal import Journal
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import STORED, TABLES
from tests.pipeline.rounds.histories import BRONZE, COMMITS, EVENTS, MARKERS, RECORDS, Arrival, cut
from tests.pipeline.rows import NOON, at, commit, generation

CLUSTER = "c"
FOLLOWING = [job for job in JOBS if job.follower is not None]
_OF_ZOOKEEPER = ("ownership_interval", "rebalance_attempt")
_COMPACTED = (
    COMMITS,
    RECORDS,
    "commit_timeline",
    "traffic",
    "group_generation",
    "carried_record",
    "lag",
)
_STEPS = [(Journal, "record"), (Lake, "add"), (Lake, "renew"), (Lake, "delete")]


_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Many queries over few rows: what Spark does to be fast takes longer than they do."""


_WITHOUT_SPARK = [
    (commit_rounds, "plain_commits"),
    (lag_rounds, "at_looks"),
    (lag_rounds, "until"),
    (regression_rounds, "for_regressions"),
    (loss_rounds, "for_losses"),
]
"""What rounds do themselves with rows that are in order."""


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


def make(tables: ClusterTables, jobs: Sequence[Job] = FOLLOWING) -> None:
    """The tables that follow, as `make_derived` does it."""
    for wave in waves(jobs):
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
    if arrival.void and arrival.void_records:
        lake.delete(TABLES[RECORDS], CLUSTER, arrival.void)
    if arrival.renames:
        lake.update(TABLES[EVENTS], CLUSTER, "source = 'broker-0.log'", {"source": "broker-0.log.1"})
    if arrival.compacts:
        for name in (
            COMMITS,
            RECORDS,
            "commit_timeline",
            "traffic",
            "group_generation",
            "carried_record",
        ):
            lake.compact(STORED[name], CLUSTER)


def contents(lake: Lake, jobs: Sequence[Job] = FOLLOWING) -> dict[str, Counter[str]]:
    names = [name for job in jobs for name in job.outputs]
    return {name: Counter(map(repr, lake.rows(TABLES[name], CLUSTER).to_pylist())) for name in names}


def in_one_round(
    spark: SparkSession, lake: Lake, folder: Path, jobs: Sequence[Job] = FOLLOWING
) -> dict[str, Counter[str]]:
    """What a new lake with the same rows of bronze has."""
    for name in BRONZE:
        lake.open(TABLES[name])
        shutil.copytree(str(lake.path(TABLES[name])), folder / "bronze" / name)
    whole = Lake(folder)
    make(ClusterTables(spark, whole, CLUSTER), jobs)
    return contents(whole, jobs)


def killed_at(
    step: int, patched: pytest.MonkeyPatch, steps: Sequence[tuple[Any, str]] = tuple(_STEPS)
) -> None:
    """The process ends at the beginning of this step."""
    left = [step]

    def stepwise(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return plain(*arguments, **named)

        return call

    for owner, name in steps:
        patched.setattr(owner, name, stepwise(getattr(owner, name)))


def follow(
    spark: SparkSession,
    folder: Path,
    seed: int,
    *,
    records: int,
    rounds: int,
    calm: int = 0,
    jobs: Sequence[Job] = FOLLOWING,
) -> list[str]:
    """Holds the tables after all rounds to those of one round. Returns how each round was made."""
    chance = random.Random(seed)
    lake, ways = Lake(folder / "lake"), list[str]()
    tables = ClusterTables(spark, lake, CLUSTER)
    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(ordering, "PART_ROWS", 4)
        watched.setattr(group_tails, "MOST_RECORDS", 6)
        watched.setattr(group_tails, "FEW_GENERATIONS", 2)
        if seed % 2:  # Small tables are soon replaced by half; large ones are not.
            watched.setattr(following, "_MOST_GONE", 2.0)
            watched.setattr(group_changes, "MOST_CONDITIONS", 2)
        for follower in (CommitRounds, GroupRounds, LagRounds, LossRounds, DiagnosisRounds):
            for way in ("whole", "step"):
                told = _told(getattr(follower, way), f"{way} of {follower.outputs[0]}", ways)
                watched.setattr(follower, way, told)
        for module, name in _WITHOUT_SPARK:
            watched.setattr(module, name, _counting(getattr(module, name), name, ways))
        for number, arrival in enumerate(cut(chance, records=records, rounds=rounds, calm=calm)):
            take_in(lake, arrival, number)
            with pytest.MonkeyPatch.context() as patched:
                if chance.random() < (0.1 if number < 2 else 0.4):  # Only then is there state.
                    killed_at(chance.randrange(30), patched)
                try:
                    make(tables, jobs)
                except Killed:
                    ways.append("killed")
    make(tables, jobs)
    expected = in_one_round(spark, lake, folder / "whole", jobs)
    found = contents(lake, jobs)
    for name, rows in expected.items():
        differ = {"lacks": rows - found[name], "has": found[name] - rows}
        assert not any(differ.values()), f"seed {seed}, {name}: {differ}; {ways}"
        assert rows or name in _OF_ZOOKEEPER, name
    return ways


def _counting(plain: Callable[..., Any], name: str, ways: list[str]) -> Callable[..., Any]:
    def call(first: pa.Table, second: Any) -> Any:
        if first.num_rows:
            ways.append(name)
        return plain(first, second)

    return call


def _told(plain: Callable[..., Any], way: str, ways: list[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        made = plain(*arguments, **named)
        ways.append(way if made is not None else f"no {way}")
        return made

    return call


def test_rounds_with_kills_leave_what_one_round_leaves(quick: SparkSession, tmp_path: Path) -> None:
    """Late records, copies, dead leaders, open transactions, void rows and compaction included."""
    of_commits = [job for job in FOLLOWING if set(job.inputs) <= {COMMITS, MARKERS, "commit_timeline"}]
    ways = follow(quick, tmp_path, 1, records=50, rounds=5, calm=3, jobs=of_commits)
    assert {"killed", "step of commit_timeline", "plain_commits", "for_regressions"} < set(ways)


@pytest.mark.wide
def test_rounds_of_all_tables_leave_what_one_round_leaves(quick: SparkSession, tmp_path: Path) -> None:
    """Lag, groups, losses and findings, too."""
    ways = follow(quick, tmp_path, 1, records=50, rounds=5, calm=3)
    assert {
        f"step of {name}"
        for name in ("commit_timeline", "group_generation", "lag", "offset_loss", "findings")
    } < set(ways)
    assert {"killed", *(name for _, name in _WITHOUT_SPARK)} - {"until"} < set(ways)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_histories_in_rounds_leave_what_one_round_leaves(
    quick: SparkSession, tmp_path: Path, seed: int
) -> None:
    """What one history does not have, another one has."""
    follow(quick, tmp_path, seed, records=120, rounds=10, calm=seed % 3 * 3)


def test_table_that_somebody_deleted_is_made_again(quick: SparkSession, tmp_path: Path) -> None:
    """The journal alone does not know what became of a table."""
    lake = Lake(tmp_path / "lake")
    of_commits = FOLLOWING[:1]
    tables = ClusterTables(quick, lake, CLUSTER)
    first, second = cut(random.Random(3), records=20, rounds=2)
    take_in(lake, first, 0)
    make(tables, of_commits)
    shutil.rmtree(str(lake.path(STORED["commit_timeline"])))
    second.void = ""
    take_in(lake, second, 1)
    make(tables, of_commits)
    assert contents(lake, of_commits) == in_one_round(quick, lake, tmp_path / "whole", of_commits)


def test_commit_after_a_transaction_of_an_earlier_round_knows_what_was_before(
    quick: SparkSession, tmp_path: Path
) -> None:
    """The marker of that transaction was read once, and is not read again."""
    lake, of_commits = Lake(tmp_path / "lake"), FOLLOWING[:1]
    tables = ClusterTables(quick, lake, CLUSTER)
    own = {"is_transactional": True, "producer_id": 1, "producer_epoch": 0, "log_epoch": 0, "source": "s"}
    plain = {"is_transactional": False, "log_epoch": 0, "source": "s", "offsets_partition": 0}
    ends = {"log_epoch": 0, "source": "s", "offsets_partition": 0, "written": NOON, "producer_epoch": 0}
    rounds = [
        {COMMITS: [{**commit(0, 1), **plain}]},
        {COMMITS: [{**commit(1, 2), **plain}]},
        {
            COMMITS: [{**commit(2, 3), **plain, **own, "producer_id": 2}, {**commit(3, 4), **plain, **own}],
            MARKERS: [{**ends, "log_offset": 4, "producer_id": 1, "is_commit": True}],
        },
        {
            COMMITS: [{**commit(5, 6, partition=1), **plain}],
            MARKERS: [{**ends, "log_offset": 6, "producer_id": 2, "is_commit": True}],
        },
        {COMMITS: [{**commit(7, 8), **plain}]},
    ]
    for number, rows in enumerate(rounds):
        arrival = Arrival()
        arrival.rows.update(rows)
        take_in(lake, arrival, number)
        make(tables, of_commits)
    assert contents(lake, of_commits) == in_one_round(quick, lake, tmp_path / "whole", of_commits)


@pytest.mark.wide
def test_group_made_again_when_its_time_without_members_ends_keeps_what_it_skipped_before(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late commit makes all of the group again; the end of its last time without members makes a part."""
    lake, ways = Lake(tmp_path / "lake"), list[str]()
    monkeypatch.setattr(following, "_MOST_GONE", 2.0)
    monkeypatch.setattr(LossRounds, "step", _told(LossRounds.step, "step", ways))
    tables = ClusterTables(quick, lake, CLUSTER)
    jobs = [
        job for job in FOLLOWING if job.outputs[0] in ("commit_timeline", "group_generation", "offset_loss")
    ]
    own = {"log_epoch": 0, "source": "s", "offsets_partition": 0}
    plain, read = {**own, "is_transactional": False}, {"leader_epoch": 3}
    of_group = {**own, "key_type": 2, "is_removal": False}
    rounds = [
        {
            COMMITS: [{**commit(0, 1, **read), **plain}, {**commit(2, 11), **plain}],
            RECORDS: [{**generation(1, 1), **of_group}, {**generation(4, 2, "a"), **of_group}],
        },
        {COMMITS: [{**commit(7, 13, **read), **plain}], RECORDS: [{**generation(6, 3), **of_group}]},
        {
            COMMITS: [{**commit(3, 12, **read), **plain}],
            RECORDS: [{**generation(9, 4, "a"), **of_group}],
        },
    ]
    for number, rows in enumerate(rounds):
        arrival = Arrival()
        arrival.rows.update(rows)
        take_in(lake, arrival, number)
        make(tables, jobs)
    found = contents(lake, jobs)
    assert ways == ["step"]
    assert len(found["offset_loss"]) == 1
    assert found == in_one_round(quick, lake, tmp_path / "whole", jobs)


def _look(chance: random.Random, seconds: float) -> list[dict[str, Any]]:
    """At the ends of two logs."""
    rows = []
    for partition in range(2):
        latest = int(seconds) + chance.randrange(5)
        own = {"topic": "t", "partition": partition}
        body = {**own, "at": round(at(seconds).timestamp() * 1000), "earliest": 0, "latest": latest}
        of_look = {"kind": "ends", "snapshot": f"survey {seconds}", "source": "broker 1", "at": at(seconds)}
        rows.append({**of_look, **own, "ordinal": partition, "body": json.dumps(body)})
    return rows


@pytest.mark.parametrize("seed", [11, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 11))])
def test_looks_that_come_after_younger_commits_leave_what_one_round_leaves(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Commits every second, with clocks that go back; looks that come up to half a minute late.

    Of half of the histories, the last minute has more commits than the driver holds.
    """
    chance, ways = random.Random(seed), list[str]()
    monkeypatch.setattr(ordering, "PART_ROWS", 7)
    monkeypatch.setattr(lag_rounds, "MOST_ROWS", 1_000 if seed % 2 else 45)
    monkeypatch.setattr(lag_rounds, "until", _counting(until, "until", ways))
    lake = Lake(tmp_path / "lake")
    tables = ClusterTables(quick, lake, CLUSTER)
    jobs = [job for job in FOLLOWING if job.outputs[0] in ("commit_timeline", "lag")]
    arrivals = [Arrival() for _ in range(6)]
    own = {"log_epoch": 0, "source": "s", "is_transactional": False}
    for second in range(180):
        group = chance.randrange(3)
        place = {"offsets_partition": group, "group": f"g{group}", "partition": chance.randrange(2)}
        committed = at(second - chance.choice([0, 0, 0, 0, 5]))
        row = commit(second, second - chance.randrange(20), committed=committed, **place, **own)
        arrivals[second // 30].rows.setdefault(COMMITS, []).append(row)
    for _ in range(12):
        looked = round(chance.uniform(0, 180), 1)
        late = min(5, int(looked + chance.choice([0, 30])) // 30)
        arrivals[late].rows.setdefault("cluster_snapshot", []).extend(_look(chance, looked))
    for number, arrival in enumerate(arrivals):
        take_in(lake, arrival, number)
        make(tables, jobs)
    assert ("until" in ways) == bool(seed % 2)
    assert contents(lake, jobs) == in_one_round(quick, lake, tmp_path / "whole", jobs)
