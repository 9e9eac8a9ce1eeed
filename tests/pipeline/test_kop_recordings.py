"""What real KoP exported in each situation, as tables: each comes out as its README says.

The archive has no times, so the files get some here, in the order of their numbers, a minute apart.
"""

import os
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from kelpie.cli import main
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.evidence import read_evidence
from kelpie.evidence.dating import name_order
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.evidence import unpacked
from tests.pipeline.rows import NOON

HOSTILE = {'we"ird', "back\\slash", "new\nline"}


class Recording(NamedTuple):
    evidence: Path
    tables: Path
    name_of: dict[Any, str]
    """The name of each file by its time."""

    def rows(self, table: str, **where: Any) -> list[dict[str, Any]]:
        rows = Lake(self.tables).rows(TABLES[table], "kop").to_pylist()
        return [row for row in rows if all(row[name] == value for name, value in where.items())]

    def counted(self, number: str, label: str) -> dict[str, int]:
        """Messages by topic, of one group or of none (""), that a situation's scrapes tell."""
        sums: defaultdict[str, int] = defaultdict(int)
        for row in self.rows("attributed_traffic"):
            name = row["group"] if row["label"] is None else row["label"]
            if name == label and self.name_of[row["ended"]].startswith(number):
                sums[row["topic"]] += row["messages"]
        return dict(sums)


@pytest.fixture(scope="module")
def recording(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("kop")
    evidence, name_of = folder / "evidence", {}
    evidence.mkdir()
    files = sorted(unpacked("kop-3.2-scrapes").iterdir(), key=lambda file: name_order(file.name))
    for minute, file in enumerate(files):
        # A folder for each situation: where names do not tell the broker, the folder stands for it.
        copy = evidence / file.name[:2] / file.name
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(file, copy)
        second = NOON.timestamp() + 60 * minute
        os.utime(copy, (second, second))
        name_of[NOON.fromtimestamp(second, NOON.tzinfo)] = file.name
    run(spark, Lake(folder / "tables"), [evidence], cluster="kop")
    return Recording(evidence, folder / "tables", name_of)


@pytest.mark.parametrize("number", ["01", "02", "03", "04a", "12a"])
def test_where_labels_are_right_nothing_is_counted_to_nobody(recording: Recording, number: str) -> None:
    """01: a client id each. 02: a shared one, read before. 03: fetched elsewhere. 04, 12: before the loss."""
    assert recording.counted(number, "") == {}


def test_09_none_of_24_consumers_has_lost_its_label(recording: Recording) -> None:
    """What has no name in this scrape is older: it is what 06 and 07 have."""
    groups = {row["group"] for row in recording.rows("attributed_traffic", how="counted")}
    own = {group for group in groups if group.startswith("g9-")}
    assert len(own) == 24
    assert all(recording.counted("09", group) for group in own)
    assert recording.counted("09", "") == recording.counted("06", "") == recording.counted("07", "")


def test_04_what_the_consumer_reads_after_the_move_has_no_name(recording: Recording) -> None:
    """Its idle connection had closed: 4,451 messages on broker 1, and the reason."""
    assert recording.counted("04b", "") == {"orders": 4451}
    gaps = [
        row for row in recording.rows("attribution_gap") if recording.name_of[row["ended"]].startswith("04b")
    ]
    assert {(row["broker"], row["topic"]) for row in gaps} == {("broker 1", "orders")}
    assert all("nodes of the mapping tree are gone" in row["why"] for row in gaps)


def test_06_assign_is_counted_to_nobody(recording: Recording) -> None:
    """librdkafka with a group from an explicit offset, Java without a group."""
    assert set(recording.counted("06", "")) == {"orders", "t6"}


def test_07_groups_with_hostile_names_have_their_traffic(recording: Recording) -> None:
    """Their lines are no series for anybody else."""
    assert {group: recording.counted("07", group) for group in HOSTILE} == {
        group: {"t7": 200} for group in HOSTILE
    }


def test_08_without_the_label_all_is_unknown_and_the_reason_is_the_setting(recording: Recording) -> None:
    """kopEnableGroupLevelConsumerMetrics=false."""
    assert set(recording.counted("08", "")) == {"t8a", "t8b"}
    gaps = [row for row in recording.rows("attribution_gap") if row["topic"] == "t8a"]
    assert all("kopEnableGroupLevelConsumerMetrics" in row["why"] for row in gaps)


def test_11_after_the_kill_the_dead_group_has_what_a_stranger_read(recording: Recording) -> None:
    """Counters begin again: 150 messages since the broker was started."""
    after = recording.counted("11_after", "g11-a")
    assert sum(after.values()) == 150


def test_12_the_quiet_consumer_lost_its_label_without_any_restart(recording: Recording) -> None:
    """100 messages of t12quiet."""
    assert recording.counted("12b", "") == {"t12quiet": 100}


def test_totals_are_those_of_the_scrapes(recording: Recording) -> None:
    """By topic and partition, to the byte: what the doctor counts of the same files."""
    wanted: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    view, _ = build(read_evidence([recording.evidence]))
    for span in view.traffic_history.spans:
        for series, amount in span.growth.items():
            sums = wanted[series.topic, series.partition]
            sums[:] = [one + other for one, other in zip(sums, amount, strict=True)]
    told: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    restarted = {span.last.scrape.source for span in view.traffic_history.spans if span.first is None}
    assert restarted
    first = {
        (span.broker, span.last.scrape.at)
        for span in view.traffic_history.spans
        if span.first is None and not span.after_restart
    }
    for row in recording.rows("attributed_traffic"):
        at = round(row["ended"].timestamp() * 1000)
        if row["began"] is not None or (row["broker"], at) in first:
            sums = told[row["topic"], row["partition"]]
            amounts = (row["messages"], row["bytes"], row["entries"])
            sums[:] = [one + other for one, other in zip(sums, amounts, strict=True)]
    assert told == wanted


def klp4(diagnosis: Diagnosis) -> list[Any]:
    return [each for each in diagnosis.findings if each.code.startswith("KLP4")]


def test_findings_are_those_of_the_doctor(recording: Recording) -> None:
    """KLP401 to KLP407 from tables and from the files themselves, word by word."""
    of_tables = read_diagnosis(recording.tables)
    of_files = diagnose_all(*build(read_evidence([recording.evidence])))
    assert {each.code for each in klp4(of_files)} >= {"KLP401", "KLP405", "KLP406"}
    assert sorted(map(str, klp4(of_tables))) == sorted(map(str, klp4(of_files)))
    assert [each for each in of_tables.open if each.code.startswith("KLP4")] == [
        each for each in of_files.open if each.code.startswith("KLP4")
    ]
    assert of_tables.groups == of_files.groups


def test_rows_of_the_doctor_are_the_same_from_tables(recording: Recording) -> None:
    """Scrapes, series, malformed lines and nodes, with their times and places."""
    tables = KnownCluster(Lake(recording.tables), "kop").observations
    files = read_evidence([recording.evidence])
    for name in ("scrapes", "malformed", "mapping_listings", "mappings"):
        assert sorted(map(str, getattr(tables, name))) == sorted(map(str, getattr(files, name))), name
    assert len(tables.traffic) == len(files.traffic)


def test_command_tells_it(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    """`kelpie doctor --tables`, without Spark."""
    assert main(["doctor", "--tables", str(recording.tables)]) == 1
    page = capsys.readouterr().out
    assert "KLP406 scrape-broken-by-a-name" in page
    assert "KLP401 unattributed-traffic" in page


def test_running_again_changes_nothing(spark: SparkSession, recording: Recording) -> None:
    """Neither files nor tables."""
    lake = Lake(recording.tables)
    before = {name: lake.open(TABLES[name]).version() for name in TABLES}
    assert run(spark, lake, [recording.evidence], cluster="kop").new_files == 0
    assert {name: lake.open(TABLES[name]).version() for name in TABLES} == before
