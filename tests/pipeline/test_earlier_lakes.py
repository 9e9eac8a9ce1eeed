"""Tables that earlier code wrote go on under today's: they take in more, and are judged as new ones."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.evidence import read_evidence
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.evidence import unpacked
from tests.pipeline import earlier_lakes

pytestmark = pytest.mark.wide  # What it asks of today's code, tests of recordings ask too.

CLUSTER = "orders"


@pytest.mark.parametrize("name", earlier_lakes.NAMES)
def test_earlier_tables_take_in_more_evidence(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The same files found in another place tell nothing new. Tables of other clusters stay as they are."""
    lake = Lake(earlier_lakes.unpack(name, tmp_path))
    others = [cluster for cluster in earlier_lakes.RECORDINGS if cluster != CLUSTER]
    before = {
        (table.name, cluster): lake.count(table, cluster) for table in TABLES.values() for cluster in others
    }
    evidence = unpacked(earlier_lakes.RECORDINGS[CLUSTER])
    summary = run(spark, lake, [evidence], cluster=CLUSTER)
    assert summary.new_files > 0
    assert {key: lake.count(TABLES[key[0]], key[1]) for key in before} == before
    told = read_diagnosis(lake.root, CLUSTER)
    wanted = diagnose_all(*build(read_evidence([evidence])))
    assert {(each.code, each.group, each.severity) for each in told.findings} == {
        (each.code, each.group, each.severity) for each in wanted.findings
    }
