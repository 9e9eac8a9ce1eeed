"""An incident on real Kafka 4.3.1, struck by the test: tables and findings against Kafka's own tools.

KELPIE_INCIDENT=FOLDER takes one that `python -m tests.pipeline.incident FOLDER` has recorded: that spares a
minute and a half.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.evidence import read_evidence
from kelpie.observations import Observations
from kelpie.pipeline.results import read_diagnosis
from kelpie.pipeline.run import run
from kelpie.pipeline.storage.lake import Lake
from tests.pipeline.incident import STORM, record

pytestmark = pytest.mark.long

Row = dict[str, Any]


@dataclass
class Incident:
    evidence: Path
    truth: dict[str, Any]
    tables: Path

    def group(self, role: str) -> str:
        return str(self.truth["groups"][role]["name"])

    def rows(self, table: str, group: str | None = None) -> list[Row]:
        """Read without Spark, as anybody can; of one group, or all."""
        found: list[Row] = DeltaTable(str(self.tables / table)).to_pyarrow_table().to_pylist()
        return [row for row in found if group is None or row["group"] == group]

    def told(self, output: str) -> Iterator[Row]:
        """Lines of a table that kafka-consumer-groups printed, each by the names of its columns."""
        header: list[tuple[str, int]] = []
        for line in (self.evidence / "commands" / output).read_text().splitlines():
            if line.startswith("GROUP "):
                header = [(it[0], it.start()) for it in re.finditer(r"\S+(?: \(ID\))?", line)]
            elif line.strip():
                ends = [*(start for _, start in header[1:]), None]
                yield {name: line[at:end].strip() for (name, at), end in zip(header, ends, strict=True)}

    def logged(self, pattern: str) -> list[str]:
        """What the brokers' logs say, by a pattern of the test's own."""
        texts = [file.read_text() for file in sorted(self.evidence.glob("broker-*/server.log"))]
        return [found for text in texts for found in re.findall(pattern, text)]


@pytest.fixture(scope="module")
def incident(
    spark: SparkSession,
    available: Callable[[], AbstractContextManager[None]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Incident:
    """Struck, recorded, and taken in, once."""
    earlier = os.environ.get("KELPIE_INCIDENT")
    folder = Path(earlier) if earlier else tmp_path_factory.mktemp("incident") / "recorded"
    if not earlier:
        with available():
            record(folder)
    tables = tmp_path_factory.mktemp("tables")
    run(spark, Lake(tables), [folder / "evidence"], cluster="c")
    return Incident(folder / "evidence", json.loads((folder / "truth.json").read_text()), tables)


@pytest.fixture(scope="module")
def observed(incident: Incident) -> Observations:
    return read_evidence([incident.evidence])


@pytest.fixture(scope="module")
def by_the_doctor(observed: Observations) -> Diagnosis:
    return diagnose_all(*build(observed))


def test_offsets_from_the_disks_are_those_that_kafka_named(incident: Incident) -> None:
    """Every one, of every group, and none beside."""
    last: dict[tuple[str, str, int], int | None] = {}
    for row in sorted(incident.rows("silver/commit_timeline"), key=lambda row: row["log_offset"]):
        last[row["group"], row["topic"], row["partition"]] = row["offset"]
    named = {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in incident.told("before-groups-offsets.txt")
    }
    assert {position: offset for position, offset in last.items() if offset is not None} == named
    assert len({group for group, _, _ in named}) == 8


def test_members_from_the_disks_are_those_that_kafka_named(incident: Incident) -> None:
    """With what each has and, where the protocol knows it, at which epoch, and what it should have."""
    mine = {}
    for row in incident.rows("silver/group_generation"):
        if row["ended"] is None:
            for member in row["roster"]:
                newer = row["kind"] == "consumer"
                has = _positions(member["owned"] if newer else member["assigned"])
                mine[row["group"], member["member_id"]] = (
                    member["client_id"],
                    member["client_host"],
                    has,
                    str(member["epoch"]) if newer else "-",
                    _positions(member["assigned"]) if newer else set(),
                )
    named = {
        (row["GROUP"], row["CONSUMER-ID"]): (
            row["CLIENT-ID"],
            row["HOST"],
            _named(row["CURRENT-ASSIGNMENT"]),
            row["CURRENT-EPOCH"],
            _named(row["TARGET-ASSIGNMENT"]),
        )
        for row in incident.told("before-groups-members.txt")
    }
    assert mine == named
    intervals = [row for row in incident.rows("silver/membership_interval") if row["ended"] is None]
    assert {(row["group"], row["member_id"]): _positions(row["assigned"]) for row in intervals} == {
        member: told[2] for member, told in named.items()
    }


def _positions(positions: list[Row]) -> set[tuple[str, int]]:
    return {(it["topic"], it["partition"]) for it in positions}


def _named(text: str) -> set[tuple[str, int]]:
    """As the tool prints it: "orders:0,1;payments:2"."""
    by_topic = re.findall(r"([\w.-]+):(\d+(?:,\d+)*)", text)
    return {(topic, int(number)) for topic, numbers in by_topic for number in numbers.split(",")}


def test_outage_is_told_with_exactly_the_groups_that_it_hit(incident: Incident) -> None:
    """Partitions whose two replicas were killed, from the moment that the controller missed them."""
    outages = incident.rows("gold/coordinator_outage")
    assert [row["offsets_partition"] for row in outages] == incident.truth["leaderless"]
    groups = incident.truth["groups"].values()
    hit = {it["name"]: it["offsets_partition"] for it in groups if it["hit"]}
    assert {group: row["offsets_partition"] for row in outages for group in row["groups"]} == hit
    first, last = incident.truth["killed_at"]
    for row in outages:
        # The controller counts a broker out when its session of 4 s is over; a busy machine needs longer.
        assert first <= row["began"].timestamp() * 1000 <= last + 30_000
        assert row["ended"] is None


def test_every_rebalance_of_the_storms_is_counted(incident: Incident) -> None:
    """As often as the coordinators' logs say, and with who came and went."""
    for role, pattern in (
        ("storm", r"Stabilized group {} generation (\d+)"),
        ("next-storm", r"\[GroupId {}\] Bumped group epoch to (\d+)"),
    ):
        group = incident.group(role)
        rebalances = sorted(incident.rows("silver/rebalance", group), key=lambda row: row["to_generation"])
        numbers = [int(it) for it in incident.logged(pattern.format(group))]
        assert [row["to_generation"] for row in rebalances] == sorted(numbers)
        assert len(numbers) >= incident.truth["rebalances"][group]
        assert all(row["ended"] is not None and row["duration_ms"] >= 0 for row in rebalances)
        clients = {row["member_id"]: row for row in incident.rows("silver/membership_interval", group)}
        went = [member for row in rebalances for member in row["left"] or ()]
        assert {clients[it]["client_id"] for it in went} == {f"{group}-9"}
        assert {clients[it]["left_because"] for it in went} == {"left"}
        if role == "next-storm":  # Every epoch leaves a record; a classic generation need not.
            assert len(went) == STORM
            assert [row["cause"] for row in rebalances] == ["joined", "joined", *["joined", "left"] * STORM]


def test_generations_are_those_of_the_doctor(incident: Incident, observed: Observations) -> None:
    """Of both protocols: the same numbers, members and times."""
    # The doctor tells an epoch again once it is assigned; a group that was removed begins again at 0.
    told = {
        (row.group, row.generation, row.at, frozenset(it.member_id for it in row.members))
        for row in observed.generations
    }
    found = {
        (
            row["group"],
            row["generation"],
            round(row["began"].timestamp() * 1000),
            frozenset(row["member_ids"]),
        )
        for row in incident.rows("silver/group_generation")
    }
    assert found <= told
    assert {row[:2] for row in found} == {row[:2] for row in told}
    assert {row["kind"] for row in incident.rows("silver/group_generation")} == {"classic", "consumer"}


def test_losses_are_called_by_what_they_are(incident: Incident) -> None:
    """Expired, deleted, skipped by an administrator; and what he set back is a regression."""
    lost: dict[tuple[str, str], dict[str, int]] = {}
    for row in incident.rows("gold/offset_loss"):
        lost.setdefault((row["group"], row["kind"]), {})[f"{row['topic']}-{row['partition']}"] = row["offset"]
    expired, deleted, skipped = map(incident.group, ("expired", "deleted", "skipped"))
    moved = incident.truth["moved"]
    assert lost == {
        (expired, "expired"): incident.truth["lost"][expired],
        (deleted, "deleted"): incident.truth["lost"][deleted],
        (skipped, "skipped"): {name: before for name, (before, _) in moved[skipped].items()},
    }
    assert {row["records"] for row in incident.rows("gold/offset_loss", skipped)} == {
        after - before for before, after in moved[skipped].values()
    }
    back = incident.rows("gold/offset_regression")
    assert {row["group"] for row in back} == {incident.group("rewound")}
    assert {f"{row['topic']}-{row['partition']}": [row["from_offset"], row["to_offset"]] for row in back} == (
        moved[incident.group("rewound")]
    )
    assert {row["by"] for row in back} == {"reset"}


def test_aborted_commit_is_in_no_timeline(incident: Incident) -> None:
    """It is on the disks, and never counted."""
    group = incident.group("transactional")
    written = {row["offset"] for row in incident.rows("bronze/offset_commit", group)}
    counted = {
        f"{row['topic']}-{row['partition']}": row["offset"]
        for row in incident.rows("silver/commit_timeline", group)
    }
    assert set(incident.truth["aborted"].values()) <= written
    assert counted == incident.truth["committed"]


def test_findings_are_those_of_the_doctor(incident: Incident, by_the_doctor: Diagnosis) -> None:
    """The same rules on the same evidence; the storms and the expiry among them."""
    found = read_diagnosis(incident.tables)
    assert found.groups == by_the_doctor.groups
    assert {(it.code, it.group, it.severity, it.summary) for it in found.findings} == {
        (it.code, it.group, it.severity, it.summary) for it in by_the_doctor.findings
    }
    assert {(it.code, whom) for it in found.open for whom in it.whom} == {
        (it.code, whom) for it in by_the_doctor.open for whom in it.whom
    }

    def groups_with(code: str) -> set[str | None]:
        return {it.group for it in found.findings if it.code == code}

    assert groups_with("KLP201") == {incident.group("storm"), incident.group("next-storm")}
    assert groups_with("KLP302") == {incident.group("expired")}
    assert groups_with("KLP101") == {it["name"] for it in incident.truth["groups"].values() if it["hit"]}
