"""Nine groups of Kafka 0.8.2.2 on Spark: what the doctor says of them, and their history as tables."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Finding
from kelpie.evidence import read_evidence
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.evidence import unpacked

NAME = "kafka-0.8.2.2-rebalance-failure"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The tables of the recording, made once."""
    made = Lake(tmp_path_factory.mktemp("tables"))
    run(spark, made, [unpacked(NAME)], cluster="c")
    return made


def meaning(findings: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {(each.group, each.code, each.severity, each.since, each.until) for each in findings}


def test_tables_say_of_the_nine_groups_what_the_doctor_says_of_the_files(lake: Lake) -> None:
    """`tests/doctor` compares the doctor with the truth; so nothing else is claimed here."""
    by_tables = read_diagnosis(Path(lake.root))
    by_files = diagnose_all(*build(read_evidence([unpacked(NAME)])))
    assert len(by_files.groups) == 9
    assert by_tables.groups == by_files.groups
    assert meaning(by_tables.findings) == meaning(by_files.findings)
    assert {(each.code, each.group) for each in by_tables.open} == {
        (each.code, each.group) for each in by_files.open
    }
    assert (by_tables.unlisted, by_tables.unheard_of) == ((), ())


def test_only_files_without_meaning_are_left_out(lake: Lake) -> None:
    """Settings of log4j, and of ZooKeeper itself, which no rule needs."""
    quarantined = lake.rows(TABLES["quarantine"], "c")["source"].to_pylist()
    assert sorted(Path(source).name for source in quarantined) == ["log4j.properties", "zk.properties"]
