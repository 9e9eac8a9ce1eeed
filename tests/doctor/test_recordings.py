"""Recordings of real incidents, from their files alone: exactly those groups, with what they had."""

import json
from functools import cache

import pytest

from kelpie.cli import main
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.finding import Severity
from kelpie.doctor.timeline import timeline_of
from kelpie.evidence import read_evidence
from tests.evidence import truth, unpacked

OLD = "kafka-0.9.0.1-coordinator-outage"
NEW = "kafka-4.3.1-coordinator-outage"


@cache
def diagnosed(name: str) -> Diagnosis:
    return diagnose_all(*build(read_evidence([unpacked(name)])))


def hit(name: str) -> set[str]:
    """By the truth that lies beside the recording."""
    rows = [line.split() for line in (truth(name) / "groups.txt").read_text().splitlines()]
    return {row[0] for row in rows if not row[0].startswith("#") and row[2] == "hit"}


def found(name: str, code: str) -> set[str | None]:
    return {finding.group for finding in diagnosed(name).findings if finding.code == code}


@pytest.mark.parametrize("name", [OLD, NEW])
def test_exactly_the_hit_groups_have_no_coordinator(name: str) -> None:
    """Kafka's own tools leave them out without a word; the doctor names them, and nobody else."""
    assert len(hit(name)) >= 2
    assert found(name, "KLP101") == hit(name)


@pytest.mark.parametrize(("name", "dead"), [(OLD, {1, 2}), (NEW, {2, 3})])
def test_the_dead_brokers_are_known_though_nobody_says_so(name: str, dead: set[int]) -> None:
    """0.9 goes on naming them as leaders; both recordings end with an orderly shutdown of the last one."""
    brokers = diagnosed(name).cluster.brokers
    assert {node for node, broker in brokers.items() if broker.alive is False} == dead
    assert {node for node, broker in brokers.items() if broker.alive} == set(brokers) - dead


def test_nothing_else_is_made_up_about_the_old_recording() -> None:
    """Two partitions of its topic lost their replicas too; that is all."""
    codes = {it.code for it in diagnosed(OLD).findings if it.severity >= Severity.WARNING}
    assert codes == {"KLP100", "KLP101", "KLP106", "KLP311"}


def test_the_storm_the_slow_pollers_and_the_rewind_are_told_as_well() -> None:
    """They were ill before the brokers died; whoever reads the incident must not mix them up with it."""
    worth_telling = {it.code for it in diagnosed(NEW).findings if it.severity >= Severity.WARNING}
    assert found(NEW, "KLP201") == {"checkout-344"}
    assert found(NEW, "KLP203") == {"checkout-130", "checkout-126"}
    assert found(NEW, "KLP308") == {"checkout-53"}
    assert found(NEW, "KLP210") <= {"checkout-130", "checkout-126"}
    assert worth_telling <= {"KLP100", "KLP101", "KLP106", "KLP201", "KLP203", "KLP210", "KLP308"}


def test_the_story_tells_what_was_lost_when_and_who_was_ill_before() -> None:
    """In the order of time: the storm, the pauses, the rewind, then the loss of two brokers."""
    timeline = timeline_of(diagnosed(NEW))
    assert [entry.at for entry in timeline.entries] == sorted(entry.at for entry in timeline.entries)
    lost = [entry for entry in timeline.entries if entry.text.endswith(" lost")]
    assert [entry.text.partition(" (")[0] for entry in lost] == ["broker 3", "broker 2"]
    assert timeline.began == lost[0].at
    assert {group for group, _ in timeline.ill_before} == {
        "checkout-126",
        "checkout-130",
        "checkout-344",
        "checkout-53",
    }


@pytest.mark.parametrize("name", [OLD, NEW])
def test_the_command_says_it_in_its_first_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No cluster, no option but the folder."""
    assert main(["doctor", "--evidence", str(unpacked(name))]) == 2
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"CRITICAL: {len(hit(name))} of ")
    assert "groups have no coordinator (brokers" in first


def test_the_command_gives_json_with_the_hit_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs."""
    assert main(["doctor", "--json", "--code", "KLP101", "--evidence", str(unpacked(NEW))]) == 2
    document = json.loads(capsys.readouterr().out)
    assert {finding["group"] for finding in document["findings"]} == hit(NEW)
    assert document["blast_radius"]["brokers"] == [2, 3]
    assert len(document["blast_radius"]["leaderless_offsets_partitions"]) == 17
