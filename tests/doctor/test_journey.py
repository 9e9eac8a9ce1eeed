"""A group's way to its next record: where it ends, and what is not known."""

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose, diagnose_all
from kelpie.doctor.finding import Severity
from kelpie.doctor.journey import journey
from kelpie.doctor.journey_step import Passage
from kelpie.evidence import read_evidence
from kelpie.observations import GroupState, LogEnds, Member
from tests.doctor.building import NOW, a_case, a_cluster, a_committed
from tests.evidence import unpacked

OF_MEMBERS = {"KLP504", "KLP506"}
"""Found of groups in ZooKeeper: their settings and sessions."""


def test_a_group_that_reads_has_passed_every_step() -> None:
    cluster = a_cluster(ends=[LogEnds("orders", 0, 0, 12, at=NOW)])
    member = Member("m-1", "c-1", "/10.0.0.1", assigned=(a_committed(5).name,))
    state = GroupState("billing", "Stable", members=(member,), at=NOW, source="broker 1")
    case = a_case("billing", cluster, states=[state], committed=[a_committed(5)])
    steps = journey(case, [])
    assert [step.passage for step in steps] == [Passage.PASSED] * 5
    assert steps[1].text.endswith("says that the group is Stable.")
    assert steps[3].text == "It has committed an offset for its only partition."
    assert steps[-1].text == "7 records left to read."


def test_without_any_answer_no_step_is_passed() -> None:
    """Silence is no good news."""
    case = a_case("billing", a_cluster(offsets_partitions=None, unknown=[1, 2, 3]))
    assert Passage.PASSED not in {step.passage for step in journey(case, [])}


def test_in_a_real_outage_the_way_ends_at_the_partition_without_a_leader() -> None:
    cluster, cases = build(read_evidence([unpacked("kafka-4.3.1-coordinator-outage")]))
    findings = diagnose_all(cluster, cases).findings
    ended = {}
    for case in cases:
        steps = journey(case, [each for each in findings if each.group == case.group])
        ended[case.group] = next((step.name for step in steps if step.passage is Passage.FAILED), "")
        if ended[case.group] == "home":
            assert [each.code for each in steps[0].findings if each.code == "KLP101"] == ["KLP101"]
    hit = {finding.group for finding in findings if finding.code == "KLP101"}
    assert {group for group, step in ended.items() if step == "home"} == hit
    assert len(hit) < len(cases)


def test_the_way_of_a_group_in_zookeeper_at_every_look() -> None:
    """As its tree shows, and not worse than findings say."""
    _, cases = build(read_evidence([unpacked("kafka-0.8.2.2-rebalance-failure")]))
    seen = set()
    for case in cases:
        for upto, last in enumerate(case.zookeeper, 1):
            if last.at is None or last.registrations is None or last.owners is None:
                continue
            cut = case.with_fields(
                zookeeper=case.zookeeper[:upto],
                cluster=case.cluster.at(last.at),
                events=tuple(event for event in case.events if event.at is None or event.at <= last.at),
            )
            findings, _ = diagnose(cut)
            members, owners, _, _ = journey(cut, findings)
            if members.passage is not Passage.FAILED:
                assert (members.passage is Passage.PASSED) == bool(last.registrations)
            about_owners = [each for each in findings if each.until is None and each.code not in OF_MEMBERS]
            is_stopped = any(each.severity is Severity.CRITICAL for each in about_owners)
            assert (owners.passage is Passage.FAILED) == is_stopped
            if owners.passage is Passage.PASSED:
                assert not about_owners
                assert {owner.partition for owner in last.owners} == set(range(8))
            seen |= {members.passage, owners.passage}
    assert seen == set(Passage)


def test_of_a_group_in_zookeeper_that_nobody_could_look_at_no_step_is_passed() -> None:
    case = a_case("billing", a_cluster(), in_zookeeper=True)
    assert {step.passage for step in journey(case, [])} == {Passage.UNKNOWN}
