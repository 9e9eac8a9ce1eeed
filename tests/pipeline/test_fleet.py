"""A small fleet with known truth through the whole pipeline: what was injected is found, and nothing else."""

from pathlib import Path

import pytest
from bench.fleet_evidence import Fleet
from bench.pipeline_fleet import differences
from pyspark.sql import SparkSession

from kelpie.pipeline.lake import Lake
from kelpie.pipeline.run import run

pytestmark = pytest.mark.long

CODES = {"KLP101", "KLP106", "KLP201", "KLP207", "KLP302", "KLP307", "KLP308", "KLP309", "KLP310"}


def test_every_injected_fault_is_found_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """Seven kinds of faults, two groups each, and two of three brokers dead on top."""
    fleet = Fleet(clusters=1, groups=20, partitions=2, days=0.018, faults=2)
    ((name, truth),) = fleet.write(tmp_path / "evidence").items()
    assert {code for code, _ in truth.findings} == CODES
    run(spark, Lake(tmp_path / "lake"), [tmp_path / "evidence" / name], cluster=name)
    assert differences(tmp_path / "lake", name, truth) == []
