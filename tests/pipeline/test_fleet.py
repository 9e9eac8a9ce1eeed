"""A small fleet with known truth: what was injected is found, and nothing else."""

from pathlib import Path

import pytest
from bench.fleet_evidence import Fleet
from bench.fleet_truth import SEVERE, differences, strangers
from pyspark.sql import SparkSession

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.evidence.folder import read_evidence
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake

CODES = {
    "KLP101",
    "KLP106",
    "KLP201",
    "KLP203",
    "KLP204",
    "KLP207",
    "KLP302",
    "KLP306",
    "KLP307",
    "KLP308",
    "KLP309",
    "KLP310",
}


def test_the_doctor_finds_every_injected_fault_and_no_other(tmp_path: Path) -> None:
    """The same evidence without Spark: what the pipeline gets wrong beyond this is the pipeline's own."""
    fleet = Fleet(clusters=2, groups=27, partitions=2, days=0.018, faults=2, seed=1)
    for name, truth in fleet.write(tmp_path).items():
        found = diagnose_all(*build(read_evidence([tmp_path / name]))).findings
        assert {(it.code, it.group) for it in found if it.severity.word in SEVERE} == truth.findings


@pytest.mark.long
def test_every_injected_fault_is_found_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """Ten kinds of faults in two clusters of one lake, and two of three brokers dead on top in one of them.

    Groups have the same names in both, and other fates.
    """
    fleet = Fleet(clusters=2, groups=20, partitions=2, days=0.018, faults=1)
    evidence, lake = tmp_path / "evidence", tmp_path / "lake"
    truths = fleet.write(evidence)
    assert {code for truth in truths.values() for code, _ in truth.findings} == CODES
    for name in truths:
        run(spark, Lake(lake), [evidence / name], cluster=name)
    assert [line for name, truth in truths.items() for line in differences(lake, name, truth)] == []
    assert strangers(lake, set(truths)) == []
