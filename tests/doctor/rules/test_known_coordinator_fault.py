"""KLP110: what is known of a release, and only where its symptom was seen."""

from dataclasses import replace
from typing import Any

import pytest

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.known_faults import FAULTS, LISTED_TWICE, has, may_have, range_of
from kelpie.doctor.rules import rules
from kelpie.doctor.rules.known_coordinator_fault import judge
from kelpie.observations import Generation
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_broker,
    a_case,
    a_cluster,
    a_member,
    a_state,
    found,
    missing,
)

_BY_ISSUE = {fault.issue: fault for fault in FAULTS}


def _stuck(release: str, instance: str | None = "pod-1", **fields: Any) -> Case:
    """The rebalance has not ended between two looks, and a member is static."""
    times: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 300_000}
    members = (a_member("app-1", 0, instance_id=instance, **times), a_member("app-2", 1, **times))
    last = a_state("PreparingRebalance", *members)
    looks = [last._replace(at=NOW - 20 * SECOND), last]
    fields["generations"] = [Generation("billing", 4, members, "consumer", "range", at=NOW - 10 * MINUTE)]
    cluster = a_cluster()
    brokers = {node: a_broker(node, release=release) for node in cluster.brokers}
    return a_case(cluster=replace(cluster, brokers=brokers), states=looks, **fields)


def test_a_symptom_on_a_release_that_has_the_fault_names_both() -> None:
    """From a broker's log the release is exact."""
    finding = found(judge(_stuck("3.3.1")))
    assert finding.severity is Severity.NOTICE
    assert finding.summary.startswith(
        "Group billing may be hit by KAFKA-14422, which its coordinator's release, 3.3.1, has: "
    )
    assert finding.summary.endswith("What points to it: KLP202.")
    assert "corrected in 3.4, 3.3.2 and later" in finding.remedies[0].text
    assert "Nothing that was seen proves" in finding.why


def test_a_range_of_releases_may_have_it() -> None:
    """A survey knows 2.8 to 3.0 by the same versions of requests."""
    assert (
        "KAFKA-14422, which its coordinator's release, 2.8, may have: " in found(judge(_stuck("2.8"))).summary
    )


@pytest.mark.parametrize("release", ["3.3.2", "3.4.0", "3.9", "4.x"])
def test_releases_without_the_fault_are_not_blamed(release: str) -> None:
    """Near miss: the same symptom, corrected."""
    assert judge(_stuck(release)) is ABSENT


def test_the_condition_of_the_fault_must_be_there_too() -> None:
    """KAFKA-14422 is about static members."""
    assert judge(_stuck("3.3.1", instance=None)) is ABSENT


def test_a_release_with_faults_and_a_healthy_group_say_nothing() -> None:
    state = a_state("Stable", a_member("app-1", 0, instance_id="pod-1"))
    cluster = a_cluster()
    brokers = {node: a_broker(node, release="3.3.1") for node in cluster.brokers}
    assert judge(a_case(cluster=replace(cluster, brokers=brokers), states=[state])) is ABSENT


def test_a_symptom_without_a_release_is_undetermined() -> None:
    assert missing(judge(_stuck(""))) == ("the release of its coordinator",)


def test_a_group_that_two_brokers_list_may_have_been_kept_by_the_old_one() -> None:
    """KAFKA-20115. One broker lists it: all is well."""
    state = a_state("Stable", a_member("app-1", 0))
    cluster = a_cluster()
    brokers = {node: a_broker(node, release="4.x") for node in cluster.brokers}
    case = a_case(cluster=replace(cluster, brokers=brokers), states=[state])
    finding = found(judge(replace(case, known_from=("listed by broker 1", "listed by broker 3"))))
    assert "brokers 1 and 3 list it as theirs at the same time" in finding.summary
    assert "KAFKA-20115" in finding.summary
    assert judge(replace(case, known_from=("listed by broker 1",))) is ABSENT


def test_every_symptom_is_a_rule_and_every_range_makes_sense() -> None:
    for fault in FAULTS:
        assert fault.symptom in {*rules(), LISTED_TWICE}
        assert fault.since < fault.fixed
        assert may_have(fault, (fault.since, fault.since))
        assert not may_have(fault, (fault.fixed, fault.fixed))
        page = rules()["KLP110"].page
        assert fault.issue in page


def test_versions_are_read_as_brokers_write_them() -> None:
    assert range_of("3.6.1-SNAPSHOT") == ((3, 6, 1), (3, 6, 1))
    assert range_of("") is None
    fault = _BY_ISSUE["KAFKA-19862"]
    assert has(fault, ((4, 1, 1), (4, 1, 1)))
    assert not may_have(fault, ((4, 1, 2), (4, 1, 2)))
    assert not may_have(fault, ((4, 0, 2), (4, 0, 2)))
    assert may_have(fault, ((4, 0), (4, 9999)))


@pytest.mark.parametrize(
    ("issue", "have", "have_not"),
    [
        ("KAFKA-4362", ["0.10.0.1", "0.10.1.0"], ["0.9.0.1", "0.10.1.1", "0.10.2.0"]),
        ("KAFKA-8653", ["2.3.0"], ["2.2.2", "2.3.1"]),
        ("KAFKA-9752", ["2.2.2", "2.3.1", "2.4.1"], ["2.1.0", "2.5.0"]),
        ("KAFKA-14422", ["2.3.0", "3.2.3", "3.3.1"], ["2.2.2", "3.3.2", "3.4.0"]),
        ("KAFKA-13636", ["2.4.0", "2.8.1", "3.0.0", "3.1.0"], ["2.3.1", "2.8.2", "3.0.1", "3.1.2", "3.2.0"]),
        ("KAFKA-19862", ["4.0.1", "4.1.1"], ["4.0.2", "4.1.2", "4.2.0"]),
        ("KAFKA-20115", ["4.0.1", "4.1.1"], ["4.0.0", "4.0.2", "4.1.2", "4.2.0", "4.3.1"]),
    ],
)
def test_releases_have_the_faults_that_their_jars_have(
    issue: str, have: list[str], have_not: list[str]
) -> None:
    """As read in the code of the jars that were published."""
    fault = _BY_ISSUE[issue]
    for release in (*have, *have_not):
        versions = range_of(release)
        assert versions is not None
        assert has(fault, versions) == may_have(fault, versions) == (release in have), release


def test_what_is_inferred_is_told_on_the_page() -> None:
    page = " ".join(rules()["KLP110"].page.split())
    for fault in FAULTS:
        assert not fault.inferred or fault.issue in page.partition("inferred")[2]
