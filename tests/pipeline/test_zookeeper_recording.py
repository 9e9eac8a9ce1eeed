"""Nine groups of Kafka 0.8.2.2 on Spark: what the doctor says of them, and their history as tables."""

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Finding
from kelpie.evidence import read_evidence
from kelpie.observations.zookeeper_groups import StoredOffset
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from tests.doctor.test_zookeeper_recording import at, blocks
from tests.evidence import unpacked

pytestmark = pytest.mark.long  # A run over all files; `transforms/test_zookeeper_groups.py` takes seconds.
NAME = "kafka-0.8.2.2-rebalance-failure"
ODD = "odd_orders"
CLOCKS = timedelta(milliseconds=300)
"""Owners were polled every 0.1 s."""
_MEMBER = re.compile(
    r"\s+(app-\d+)(?: \(run 2\))?: tries (\d+), failed tries (\d+), conflicts (\d+), exceptions (\d+)"
    r".*successful rebalances (\d+), session expiries (\d+), exit code (\S+),"
)
_UNOWNED = re.compile(r"\s+(\S+) \.\. (\S+) \(\S+ s\) unowned: partitions (\S+)")
_CHECKED = re.compile(r"# kafka\.tools\.ConsumerOffsetChecker .* \(finished \d{4}-\d\d-\d\d (\S+) UTC\)")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recording, and the log of one more consumer, whose id does not show where its group's name ends."""
    folder = tmp_path_factory.mktemp("odd")
    log = (unpacked(NAME) / "consumers" / "orders-b-watch_app-01.log").read_text()
    own_id = re.sub(r"app-01-\d{13}-[0-9a-f]{8}", "my_app", log)
    (folder / "odd.log").write_text(own_id.replace("orders-b-watch", ODD))
    return [unpacked(NAME), folder]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The tables of these files, made once."""
    made = Lake(tmp_path_factory.mktemp("tables"))
    run(spark, made, files, cluster="c")
    return made


def meaning(findings: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {(each.group, each.code, each.severity, each.since, each.until) for each in findings}


def test_tables_say_of_each_group_what_the_doctor_says_of_the_files(lake: Lake, files: list[Path]) -> None:
    """`tests/doctor` compares the doctor with the truth; so nothing else is claimed here."""
    by_tables = read_diagnosis(lake.root)
    by_files = diagnose_all(*build(read_evidence(files)))
    assert len(by_files.groups) == 9 + 1
    assert by_tables.groups == by_files.groups
    assert meaning(by_tables.findings) == meaning(by_files.findings)
    assert {(each.code, whom) for each in by_tables.open for whom in each.whom} == {
        (each.code, whom) for each in by_files.open for whom in each.whom
    }
    assert (by_tables.unlisted, by_tables.unheard_of) == ((), ())
    assert {"KLP501", "KLP502"} <= {each.code for each in by_tables.findings if each.group == ODD}


def test_only_files_without_meaning_are_left_out(lake: Lake) -> None:
    """Settings of log4j, and of ZooKeeper itself, which no rule needs."""
    quarantined = lake.rows(TABLES["quarantine"], "c")["source"].to_pylist()
    assert sorted(Path(source).name for source in quarantined) == ["log4j.properties", "zk.properties"]


def rows(lake: Lake, table: str) -> Rows:
    """Of the recorded groups."""
    return [row for row in lake.rows(TABLES[table], "c").to_pylist() if row["group"] != ODD]


def of_members(lake: Lake, table: str) -> dict[tuple[str, str], list[Rows]]:
    """Rows by group and name of the member, a list for each of its processes."""
    processes: defaultdict[tuple[str, str], Rows] = defaultdict(list)
    for row in sorted(rows(lake, table), key=lambda row: row["began"]):
        processes[row["group"], row["member_id"]].append(row)
    members: defaultdict[tuple[str, str], list[Rows]] = defaultdict(list)
    for (group, member), of_process in processes.items():
        members[group, member.removeprefix(f"{group}_")[:6]].append(of_process)
    return members


def truth_of_members() -> dict[tuple[str, str], list[list[str]]]:
    members: defaultdict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for group, lines in blocks():
        for match in filter(None, map(_MEMBER.match, lines)):
            members[group, match[1]].append(list(match.groups()[1:]))
    return members


def test_tries_conflicts_and_exceptions_of_each_process_are_those_of_the_truth(lake: Lake) -> None:
    """The recorder counted lines of each process's log."""
    counted = {
        member: [
            [
                str(len(tries)),
                str(sum(row["outcome"] == "failed" for row in tries)),
                str(sum(len(row["conflicts"]) for row in tries)),
                str(sum(row["exception"] is not None for row in tries)),
                str(sum(row["outcome"] == "succeeded" for row in tries)),
            ]
            for tries in processes
        ]
        for member, processes in of_members(lake, "rebalance_attempt").items()
    }
    assert counted == {
        member: [counts[:5] for counts in processes] for member, processes in truth_of_members().items()
    }


def test_a_conflict_names_the_member_that_was_in_the_way(lake: Lake) -> None:
    """app-02 was killed, and its nodes stood in the way of app-01."""
    tries = [row for row in rows(lake, "rebalance_attempt") if row["group"] == "orders-b-watch"]
    gave_up = [row for row in tries if row["exception"] == "watcher"]
    assert [row["number"] for row in gave_up] == [1]
    owners = {conflict["owner"] for row in tries for conflict in row["conflicts"]}
    assert [owner.removeprefix("orders-b-watch_")[:6] for owner in owners] == ["app-02"]


def unowned(lake: Lake) -> set[tuple[str, int, datetime, datetime]]:
    """Stretches of a second or more between two owners of a partition."""
    owned: defaultdict[tuple[str, int], Rows] = defaultdict(list)
    for row in sorted(rows(lake, "ownership_interval"), key=lambda row: row["began"]):
        owned[row["group"], row["partition"]].append(row)
    return {
        (*place, one["ended"], other["began"])
        for place, in_order in owned.items()
        for one, other in pairwise(in_order)
        if other["began"] - one["ended"] >= timedelta(seconds=1)
    }


def polled() -> set[tuple[str, int, datetime, datetime]]:
    """The same by the truth; a claim that was rolled back between two polls does not end a stretch."""
    stretches: defaultdict[tuple[str, int], list[tuple[datetime, datetime]]] = defaultdict(list)
    for group, lines in blocks():
        for match in filter(None, map(_UNOWNED.match, lines)):
            for number in match[3].split(","):
                since, until = (datetime.fromtimestamp(at(time) / 1000, UTC) for time in match.groups()[:2])
                of_partition = stretches[group, int(number)]
                if of_partition and since - of_partition[-1][1] < CLOCKS:
                    since, _ = of_partition.pop()
                of_partition.append((since, until))
    return {(*place, *times) for place, of_place in stretches.items() for times in of_place}


def test_partitions_had_no_owner_when_the_recorder_saw_none(lake: Lake) -> None:
    """The node of a killed member stays until its session expires: it counts as an owner."""
    by_tables, by_truth = sorted(unowned(lake)), sorted(polled())
    assert [row[:2] for row in by_tables] == [row[:2] for row in by_truth]
    for (*_, since, until), (*place, seen_since, seen_until) in zip(by_tables, by_truth, strict=True):
        assert abs(since - seen_since) < CLOCKS, place
        assert abs(until - seen_until) < CLOCKS, place


def checked() -> set[tuple[str, int, int, int, int, int]]:
    """What Kafka's own tool printed into the dumps: group, partition, time, offset, end, lag."""
    rows = set()
    for file in sorted((unpacked(NAME) / "dumps").glob("*.txt")):
        finished = 0
        for line in file.read_text().splitlines():
            if match := _CHECKED.match(line):
                finished = at(match[1])
            elif finished and len(words := line.split()) == 7 and words[2].isdecimal():
                partition, offset, end, lag = map(int, words[2:6])
                rows.add((words[0], partition, finished, offset, end, lag))
    return rows


def test_lag_is_what_kafkas_own_tool_said(lake: Lake) -> None:
    """ConsumerOffsetChecker ran with each dump. It took seconds, and is dated by its end: by then a dump may
    show another offset.
    """
    by_tables = {
        (row["group"], row["partition"], round(row["at"].timestamp() * 1000)): row
        for row in rows(lake, "lag")
    }
    by_tool = checked()
    assert len(by_tool) > 200
    alike = 0
    for group, partition, finished, offset, end, lag in by_tool:
        row = by_tables[group, partition, finished]
        assert row["offset"] >= offset, (group, partition)
        assert (row["end_offset"], row["lag"]) == (end, max(0, end - row["offset"])), (group, partition)
        alike += row["lag"] == lag
    assert alike > 0.9 * len(by_tool)
    assert len(by_tables) == lake.count(TABLES["lag"], "c"), "no position has two lags at a time"


def test_health_has_the_lag_of_each_group(lake: Lake) -> None:
    """Records came until the end. The last dump has what each group had committed when it was closed."""
    ends: dict[int, tuple[int, int]] = {}
    own: dict[tuple[str, int], tuple[int, int]] = {}
    for group, partition, finished, _, end, lag in checked():
        ends[partition] = max(ends.get(partition, (0, 0)), (finished, end))
        own[group, partition] = max(own.get((group, partition), (0, 0)), (finished, lag))

    def lag_of(group: str, stored: StoredOffset) -> int:
        looked_at, end = ends[stored.partition]
        if stored.modified is not None and stored.modified > looked_at:
            return own[group, stored.partition][1]  # Written after the last end: the one before counted.
        return max(0, end - stored.offset)

    last = read_evidence([unpacked(NAME) / "dumps" / "35_all_end.json"]).zookeeper_groups
    behind = {row.group: sum(lag_of(row.group, each) for each in row.offsets) for row in last}
    assert len(behind) == 9
    assert {row["group"]: row["lag"] for row in rows(lake, "group_health")} == behind


def test_no_partition_has_two_owners_at_a_time(lake: Lake) -> None:
    """ZooKeeper refuses the second node."""
    owned: defaultdict[tuple[str, int], Rows] = defaultdict(list)
    for row in sorted(rows(lake, "ownership_interval"), key=lambda row: row["began"]):
        owned[row["group"], row["partition"]].append(row)
    assert len(owned) == 9 * 8
    for in_order in owned.values():
        assert all(one["ended"] <= other["began"] for one, other in pairwise(in_order))


def test_members_are_those_of_the_truth_and_left_as_it_says(lake: Lake) -> None:
    """Killed or stopped for longer than their session: expired. All others were closed."""
    lives = {
        member: [[row["left_because"] for row in process] for process in processes]
        for member, processes in of_members(lake, "membership_interval").items()
    }

    def by_truth(counts: list[str]) -> list[str]:
        was_killed = counts[6] == "-9"
        return ["expired"] * int(counts[5]) + ["expired" if was_killed else "left"]

    assert lives == {member: list(map(by_truth, each)) for member, each in truth_of_members().items()}


def test_rebalances_have_their_cause_and_those_who_gave_up(lake: Lake) -> None:
    """A rebalance in which a member gives up has no end: its partitions stay without an owner."""
    history = defaultdict(list)
    for row in sorted(rows(lake, "rebalance"), key=lambda row: row["started"]):
        history[row["group"]].append((row["cause"], row["ended"] is not None, len(row["gave_up"])))
    joined = ("joined", True, 0)
    assert history["orders-a"] == [joined, joined, joined, ("left", True, 0), joined]
    assert history["orders-b-watch"] == [*[joined] * 4, ("left", False, 1), ("expired", True, 0)]
    assert history["orders-c"] == [*[joined] * 4, ("left", False, 0), ("expired", True, 0)]
    failed = {group for group, each in history.items() if any(gave_up for *_, gave_up in each)}
    assert failed == {group for group, lines in blocks() if "  status: failed" in lines}
