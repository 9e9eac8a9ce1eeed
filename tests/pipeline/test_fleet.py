"""A small fleet with known truth: what was injected is found, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest
from bench.fleet import SMALL, Model
from bench.fleet_evidence import Fleet
from bench.fleet_truth import SEVERE, differences, strangers
from bench.pipeline_fleet import Measured
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


def test_the_model_of_costs_is_that_of_the_sizes_it_was_fitted_to() -> None:
    """With no cost below 0, whatever noise says: a fleet twice as large would cost less."""
    found = [Measured(records, 0, 0.0, 0.0, 0.0) for records in (10**6, 4 * 10**6, 3 * 10**6, 2 * 10**6)]
    true = Model((20.0, 30.0, 0.1, 8.0))
    exact = [replace(it, cpu_s=true.predict(fleet, it)) for fleet, it in zip(SMALL, found, strict=True)]
    assert Model.fitted(SMALL, exact, "cpu_s").costs == pytest.approx(true.costs)
    noisy = [
        replace(it, cpu_s=it.cpu_s - 60 * fleet.clusters) for fleet, it in zip(SMALL, exact, strict=True)
    ]
    assert min(Model.fitted(SMALL, noisy, "cpu_s").costs) == 0


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
