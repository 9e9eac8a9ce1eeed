"""Recordings of real incidents go in as they are: tables and findings come out, equal to the doctor's."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.cli import main
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.evidence import read_evidence
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from tests.evidence import truth, unpacked

OLD = "kafka-0.9.0.1-coordinator-outage"
NEW = "kafka-4.3.1-coordinator-outage"

BOTH = [OLD, pytest.param(NEW, marks=pytest.mark.long)]

Tables = Callable[[str], Path]


@cache
def by_the_doctor(name: str) -> Diagnosis:
    return diagnose_all(*build(read_evidence([unpacked(name)])))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of a recording, made once."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("tables")
        summary = run(spark, Lake(folder), [unpacked(name)], cluster="c")
        assert summary.new_files > 0
        return folder

    return made


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Read without Spark, as anybody can."""
    found: list[dict[str, Any]] = DeltaTable(str(folder / table)).to_pyarrow_table().to_pylist()
    return found


def truths(name: str) -> list[list[str]]:
    lines = [line.split() for line in (truth(name) / "groups.txt").read_text().splitlines()]
    return [line for line in lines if not line[0].startswith("#")]


@pytest.mark.parametrize("name", BOTH)
def test_outage_is_told_with_exactly_the_groups_that_it_hit(name: str, tables: Tables) -> None:
    """Which offsets partitions had no leader, since when, and who lives there."""
    outages = rows(tables(name), "gold/coordinator_outage")
    hit = {line[0] for line in truths(name) if line[2] == "hit"}
    assert {group for row in outages for group in row["groups"]} == hit
    assert {row["offsets_partition"] for row in outages if row["groups"]} == {
        int(line[1]) for line in truths(name) if line[2] == "hit"
    }
    assert all(row["began"] is not None and row["ended"] is None for row in outages)
    if name == NEW:
        assert len(outages) == 17


@pytest.mark.parametrize("name", BOTH)
def test_findings_are_those_of_the_doctor(name: str, tables: Tables) -> None:
    """The same rules on the same evidence, group by group on Spark."""
    found = read_diagnosis(tables(name))
    wanted = by_the_doctor(name)
    assert found.groups == wanted.groups
    assert {(it.code, it.group, it.severity) for it in found.findings} == {
        (it.code, it.group, it.severity) for it in wanted.findings
    }
    assert {(it.code, whom) for it in found.open for whom in it.whom} == {
        (it.code, whom) for it in wanted.open for whom in it.whom
    }
    assert found.cluster.now == wanted.cluster.now
    assert {node for node, it in found.cluster.brokers.items() if it.alive is False} == {
        node for node, it in wanted.cluster.brokers.items() if it.alive is False
    }


@pytest.mark.parametrize("name", BOTH)
def test_last_commits_of_hit_groups_come_from_the_disks_of_the_dead(name: str, tables: Tables) -> None:
    """Nobody can be asked for them any more."""
    last: dict[tuple[str, str, int], int | None] = {}
    for row in sorted(rows(tables(name), "silver/commit_timeline"), key=lambda row: row["log_offset"]):
        last[row["group"], row["topic"], row["partition"]] = row["offset"]
    evidence = read_evidence([unpacked(name)])
    wanted = {commit[:3]: None if commit.removed else commit.offset for commit in evidence.commits}
    hit = {line[0] for line in truths(name) if line[2] == "hit"}
    mine = {position: offset for position, offset in wanted.items() if position[0] in hit}
    assert mine
    assert {position: last[position] for position in mine} == mine


@pytest.mark.long
def test_rebalances_and_the_rewind_of_the_new_recording_are_told(tables: Tables) -> None:
    """checkout-344 could not settle; two were too long between polls; checkout-53 was set back by hand."""
    storm = [row for row in rows(tables(NEW), "silver/rebalance") if row["group"] == "checkout-344"]
    assert len(storm) > 5
    assert {row["cause"] for row in storm} == {"joined", "left"}
    slow = [row for row in rows(tables(NEW), "silver/membership_interval") if row["ended"] is not None]
    assert {row["group"] for row in slow if row["left_because"] == "poll-interval"} == {
        "checkout-126",
        "checkout-130",
    }
    rewound = rows(tables(NEW), "gold/offset_regression")
    assert {row["group"] for row in rewound} == {"checkout-53"}
    assert all(row["replayed"] > 0 for row in rewound)


@pytest.mark.long
def test_running_again_over_the_same_files_changes_nothing(spark: SparkSession, tables: Tables) -> None:
    """A file counts once."""
    folder = tables(OLD)
    names = ["bronze/offset_commit", "bronze/log_event", "bronze/cluster_snapshot", "gold/findings"]
    before = [len(rows(folder, name)) for name in names]
    summary = run(spark, Lake(folder), [unpacked(OLD)], cluster="c")
    assert (summary.new_files, summary.written) == (0, {})
    assert [len(rows(folder, name)) for name in names] == before


def test_commands_tell_what_the_tables_know(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    """`kelpie doctor --tables` and `kelpie offsets recover`, without Spark."""
    folder = str(tables(OLD))
    assert main(["doctor", "--tables", folder]) == 2
    assert capsys.readouterr().out.startswith("CRITICAL: 2 of ")
    assert main(["offsets", "recover", folder, "--group", "billing-1", "--csv"]) == 0
    of_tables = capsys.readouterr().out
    assert main(["offsets", "recover", str(unpacked(OLD)), "--group", "billing-1", "--csv"]) == 0
    assert capsys.readouterr().out == of_tables
