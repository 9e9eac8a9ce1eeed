"""A group's way to its next record: where it ends, and what is not known."""

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.journey import Passage, journey
from kelpie.evidence import read_evidence
from kelpie.observations import GroupState, LogEnds, Member
from tests.doctor.building import NOW, a_case, a_cluster, a_committed
from tests.evidence import unpacked


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
