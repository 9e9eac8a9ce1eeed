"""A day is judged some partitions at a time: the verdicts are the same, however many parts there are."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kelpie.cluster.mappings import MappingHistory
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.traffic import buckets, evidence, tasks
from kelpie.pipeline.traffic.day import Day
from tests.pipeline.rows import NOON, at
from tests.pipeline.traffic import scrapes
from tests.pipeline.traffic.scrapes import a_delta, assigned

PARTITIONS = 12
TABLE_NAMES = ("attributed_traffic", "attribution_gap")


def test_all_of_a_partition_is_in_one_part() -> None:
    """Also where Pulsar's name of the topic is longer than that of its clients."""
    names = ["t", "persistent://public/default/t", "u"]
    rows = pa.table(
        {
            "topic": [name for name in names for _ in range(PARTITIONS)],
            "partition": pa.array(list(range(PARTITIONS)) * len(names), pa.int32()),
        }
    )
    parts = [buckets.Bucket(place, 5).chosen(rows).to_pylist() for place in range(5)]
    assert sorted(map(str, rows.to_pylist())) == sorted(str(row) for part in parts for row in part)
    for part in parts:
        short = {row["partition"] for row in part if row["topic"] == "t"}
        assert short == {row["partition"] for row in part if row["topic"] == names[1]}
        assert 0 < len(short) < PARTITIONS


def test_verdicts_are_the_same_in_one_part_and_in_many(tmp_path: Path) -> None:
    """A stranger that shows at the end of the day counts for all deltas of its partition, and no other."""
    whole = _judged(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buckets, "DELTAS_AT_ONCE", 5)
        patched.setattr(buckets, "READ_AT_ONCE", 7)
        parts = _judged(tmp_path / "parts")
    assert parts == whole
    verdicts, gaps = whole
    exact = {row["partition"] for row in verdicts if row["how"] == "exact"}
    assert exact == set(range(1, PARTITIONS))
    assert len(gaps) == PARTITIONS + 1


def test_a_task_that_is_run_again_counts_once(tmp_path: Path) -> None:
    """Its executor was lost after it had written; Spark gives its work to another one."""
    assert _judged(tmp_path / "twice", attempts=2) == _judged(tmp_path / "once")


def _judged(room: Path, attempts: int = 1) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What is made of a day whose partition 0 has a stranger."""
    strange = a_delta(6000, 6060, beside=[("g", 5, True)])
    lost = [
        a_delta(60 * turn, 60 * turn + 60, partition=partition)
        for turn in range(3)
        for partition in range(PARTITIONS)
    ]
    files = [_written(room / "deltas.parquet", scrapes.deltas(*lost, strange))]
    owners = [assigned("g", -600, 9000, partition=partition) for partition in range(PARTITIONS)]
    _written(room / evidence.OWNERS / "a.parquet", scrapes.evidence(*owners))
    commits = pa.Table.from_pylist(list(map(_commit, range(PARTITIONS))), TABLES["commit_timeline"].schema)
    day = str(NOON.date())
    places = evidence.places(files)
    timeline = _written(room / "timeline.parquet", commits)
    for _ in range(attempts):
        evidence.split_commits(timeline, {day: places}, str(room))
    folders = {name: str(room / name) for name in TABLE_NAMES}
    written = tasks.judge(
        Day("c", day, folders, files, evidence=str(room), places=places), MappingHistory(())
    )
    verdicts, gaps = (
        sorted(
            (
                {**row, **file.within}
                for file in written[name]
                for row in pq.read_table(room / name / file.path, partitioning=None).to_pylist()
            ),
            key=str,
        )
        for name in TABLE_NAMES
    )
    return verdicts, gaps


def _commit(partition: int) -> dict[str, Any]:
    """Of the group that lost its label, for all that it has fetched."""
    return {
        "group": "g",
        "topic": "t",
        "partition": partition,
        "committed": at(180),
        "offset": 300,
        "previous_committed": at(0),
        "previous_offset": 0,
        "advance": 300,
    }


def _written(path: Path, rows: pa.Table) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    return str(path)
