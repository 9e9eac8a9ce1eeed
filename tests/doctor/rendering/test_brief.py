"""One screen: the cause with what follows from it, worst first, every finding once."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.doctor.causes import linked
from kelpie.doctor.chapters import brief, chapters
from kelpie.doctor.diagnosis import Diagnosis, Waiting, diagnose_all
from kelpie.doctor.finding import Finding, Remedy, Severity
from kelpie.doctor.rendering.terminal import render
from kelpie.doctor.report import others, verdict
from kelpie.doctor.rules import rules
from kelpie.observations.acknowledgement import Acknowledgement
from tests.doctor.building import HOUR, MINUTE, NOW, a_case, a_cluster, a_name_on, a_state, a_view

ONE_SCREEN = 40


def a_finding(
    code: str, group: str | None, severity: Severity = Severity.CRITICAL, *partitions: str
) -> Finding:
    return Finding(
        code,
        rules()[code].name,
        severity,
        group,
        f"Group {group} has {rules()[code].name}, with some numbers that make the sentence long enough.",
        "Because.",
        (),
        (Remedy(f"Do something about {code}.", f"kelpie probe -b kafka-1:9092 {group}"),),
        cause=group or code,
        brokers=(3,),
        partitions=partitions,
    )


def a_diagnosis(*findings: Finding, waiting: dict[str, Waiting] | None = None) -> Diagnosis:
    groups = {finding.group for finding in findings if finding.group is not None}
    return Diagnosis(a_cluster(), tuple(sorted(groups)), linked(findings), (), waiting=waiting or {})


def an_incident(number: int) -> Diagnosis:
    """A dead broker, a partition without a leader, and so many groups that stopped."""
    findings = [a_finding("KLP100", None, Severity.NOTICE, "orders-0")]
    for at in range(number):
        findings.append(a_finding("KLP311", f"g-{at}", Severity.CRITICAL, "orders-0"))
        findings.append(a_finding("KLP310", f"g-{at}", Severity.CRITICAL, "orders-0"))
    waiting = {f"g-{at}": Waiting(at + 1, NOW - at * MINUTE) for at in range(number)}
    return a_diagnosis(*findings, waiting=waiting)


@pytest.mark.parametrize("groups", [1, 100, 10_000])
@pytest.mark.parametrize("width", [80, 120])
def test_one_incident_fits_one_screen_however_many_groups_it_hits(groups: int, width: int) -> None:
    """A hundred stalled groups made 444 lines."""
    page = render(an_incident(groups), width=width)
    assert len(page.splitlines()) <= ONE_SCREEN
    assert all(len(line) <= width or line.lstrip().startswith("$ ") for line in page.splitlines())


@pytest.mark.parametrize("groups", [1, 100, 10_000])
def test_groups_that_stopped_each_for_itself_fit_one_screen_too(groups: int) -> None:
    """Without a common cause they are told together, with their own numbers."""
    stopped = [a_finding("KLP310", f"g-{at}") for at in range(groups)]
    page = render(a_diagnosis(*stopped))
    assert len(page.splitlines()) <= ONE_SCREEN
    assert "The same holds" not in page


def test_the_cause_is_told_and_what_follows_is_folded_under_it() -> None:
    """Three hundred findings, one cause, one chapter."""
    (chapter,) = chapters(an_incident(100))
    assert chapter.cause.code == "KLP100"
    followed = {part.code: len(part.groups) for part in chapter.consequences}
    assert list(followed.items()) == [("KLP311", 100), ("KLP310", 100)]
    assert chapter.severity is Severity.CRITICAL
    page = render(an_incident(100))
    head, cause, so, what = (page.find(text) for text in ("CRITICAL:", "KLP100 ", "and so: ", "What to do:"))
    assert 0 == head < cause < so < what
    assert "100 groups read partitions without a leader (KLP311)" in page
    assert "100 groups have stopped (KLP310)" in page
    assert "g-99 (100 records waiting for 1 h 39 min), g-98 (99 for 1 h 38 min)" in " ".join(page.split())


def test_which_broker_to_start_is_said_once() -> None:
    """KLP100 says it for all partitions; KLP311 and KLP101 say it again where they stand alone."""
    rows = [a_view(0, -1, (2, 3), (3,)), a_view(1, 1, (1, 2), (1,))]
    cluster = a_cluster(*rows, dead=[2, 3], offsets_partitions=2)
    hit = a_name_on(0, 2)
    diagnosis = diagnose_all(cluster, [a_case(hit, cluster, states=[a_state(group=hit)])])
    page = " ".join(render(diagnosis).split())
    assert "Begin with broker 3: it may lead the partition that has no leader" in page
    assert "Start broker 3" not in page
    assert "kelpie rehome" in page
    alone = replace(diagnosis, findings=linked([row for row in diagnosis.findings if row.code == "KLP101"]))
    assert "Start broker 3: it may lead" in " ".join(render(alone).split())


def test_the_worst_is_the_one_for_which_most_records_wait_longest() -> None:
    """Not the one whose name or code comes first."""
    findings = [a_finding("KLP201", "a"), a_finding("KLP310", "b"), a_finding("KLP310", "c")]
    waiting = {"a": Waiting(5, NOW - MINUTE), "b": Waiting(10, NOW - HOUR), "c": Waiting(1000, NOW - HOUR)}
    diagnosis = a_diagnosis(*findings, waiting=waiting)
    assert [chapter.cause.code for chapter in chapters(diagnosis)] == ["KLP310", "KLP201"]
    assert chapters(diagnosis)[0].groups == ("c", "b")


def test_the_headline_counts_only_those_that_are_as_bad() -> None:
    """Three notices and one critical finding are one critical group."""
    notices = [a_finding("KLP310", f"n-{at}", Severity.NOTICE) for at in range(3)]
    diagnosis = a_diagnosis(a_finding("KLP310", "bad"), *notices)
    assert verdict(diagnosis) == "CRITICAL: 1 of 4 groups has stopped."
    assert others(diagnosis) == "Also 1 notice."


def test_the_headline_tells_the_effect_and_then_its_cause() -> None:
    """Group and effect first."""
    slow = replace(a_finding("KLP203", "g"), severity=Severity.WARNING)
    assert verdict(a_diagnosis(slow, a_finding("KLP201", "g"))) == (
        "CRITICAL: 1 of 1 group rebalances again and again, because it loses members that poll too slowly."
    )


def test_a_healthy_cluster_says_so_in_three_lines() -> None:
    """Also with notices and rules that lack data, which every real cluster has."""
    cluster = a_cluster()
    cases = [a_case(f"g-{at}", cluster, states=[a_state()]) for at in range(50)]
    diagnosis = diagnose_all(cluster, cases)
    assert render(diagnosis).startswith("OK: nothing wrong was found with 50 groups.")
    assert len(render(diagnosis).splitlines()) <= 3
    codes = [code for code, rule in rules().items() if rule.judge is not None]
    notices = [a_finding(code, f"g-{at}", Severity.NOTICE) for at, code in enumerate(codes)]
    page = render(replace(diagnosis, findings=linked(notices)))
    assert len(page.splitlines()) <= 3
    assert page.startswith("NOTICE: ")
    assert "\nNotices: KLP" in page


def test_what_people_know_about_is_one_line_and_sets_no_status() -> None:
    """Until it expires, or gets worse."""
    diagnosis = a_diagnosis(*(a_finding("KLP310", f"batch-{at}", Severity.WARNING) for at in range(40)))
    known = Acknowledgement("batch-*", "KLP310", "warning", NOW + HOUR, "ann", "moves on Monday", NOW)
    told = diagnosis.acknowledged([known])
    assert told.worst is None
    assert chapters(told) == ()
    page = " ".join(render(told).split())
    assert page.startswith("OK: nothing wrong was found with 40 groups, besides what is acknowledged.")
    assert "Acknowledged until 2027-01-15 09:00:00 UTC by ann: moves on Monday (KLP310 batch-0" in page
    assert diagnosis.acknowledged([replace(known, until=NOW)]).worst is Severity.WARNING
    assert diagnosis.acknowledged([replace(known, severity="notice")]).worst is Severity.WARNING
    assert diagnosis.acknowledged([replace(known, group="batch-1")]).worst is Severity.WARNING
    assert diagnosis.acknowledged([replace(known, code="KLP309")]).worst is Severity.WARNING


def test_an_effect_stays_visible_when_only_its_cause_is_acknowledged() -> None:
    """That a broker is gone is known; that a group stopped because of it may not be."""
    diagnosis = an_incident(2)
    known = Acknowledgement(None, "KLP100", "critical", NOW + HOUR, "ann", "known", NOW)
    assert {part.code for chapter in chapters(diagnosis.acknowledged([known])) for part in chapter.parts} == {
        "KLP310",
        "KLP311",
    }


_CODES = ["KLP100", "KLP101", "KLP106", "KLP201", "KLP203", "KLP210", "KLP306", "KLP309", "KLP310", "KLP311"]
_FINDINGS = st.lists(
    st.builds(
        a_finding,
        st.sampled_from(_CODES),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.sampled_from(list(Severity)),
        st.sampled_from(["orders-0", "orders-1"]),
    ).flatmap(lambda finding: st.sampled_from([finding, replace(finding, until=NOW)])),
    max_size=30,
)


@given(_FINDINGS, st.sampled_from([None, "a", "*"]))
def test_every_finding_is_told_once(findings: list[Finding], known: str | None) -> None:
    """As itself, folded under its cause, in a line, or counted: nothing is lost, nothing told twice."""
    acknowledgement = Acknowledgement(known, "KLP310", "warning", NOW + HOUR, "ann", "known", NOW)
    diagnosis = a_diagnosis(*findings).acknowledged([acknowledgement])
    told = brief(diagnosis)
    places = [*told.chapters, *told.lines, *told.counted, *told.notices]
    shown = [finding.id for chapter in places for finding in chapter.findings]
    shown += [finding.id for _, findings in told.acknowledged for finding in findings]
    assert Counter(shown) == Counter(finding.id for finding in diagnosis.findings)
    page = render(diagnosis)
    for chapter in (*told.chapters, *told.lines):
        assert all(part.code in page for part in chapter.parts)


def test_what_the_cause_advises_is_not_said_again() -> None:
    """KLP100 says to start the dead broker; under it, KLP106 says only what to do if it is gone for good."""
    rows = [a_view(0, 1, (1, 2), (1, 2)), a_view(1, 2, (2, 3), (2,))]
    cluster = a_cluster(*rows, offsets_partitions=2, dead=(3,))
    group = a_name_on(1, 2)
    diagnosis = diagnose_all(cluster, [a_case(group, cluster)])
    at_risk = next(each for each in diagnosis.findings if each.code == "KLP106")
    assert at_risk.remedies[0].text == "Bring broker 3 back; the replicas catch up by themselves."
    page = " ".join(render(diagnosis).split())
    assert "Find out why broker 3 stopped, and start it" in page
    assert "Bring broker 3 back" not in page
    assert "place the replicas elsewhere" in page


def test_advice_of_a_chapter_before_is_not_said_again() -> None:
    """KLP100 is not the cause of the second, and stands above it all the same."""
    dead = replace(a_finding("KLP100", None), remedies=(Remedy("Start broker 3."),))
    again = Remedy("Bring broker 3 back.", said_by="KLP100")
    refused = replace(a_finding("KLP106", "a", Severity.WARNING), remedies=(again, Remedy("Wait.")))
    page = render(a_diagnosis(dead, refused))
    assert "Start broker 3." in page
    assert "Wait." in page
    assert "Bring broker 3 back." not in page
    alone = render(a_diagnosis(refused))
    assert "Bring broker 3 back." in alone


def test_the_headline_names_the_broker_whose_loss_hits_most_known_groups() -> None:
    """Broker 1 holds a partition alone, too, and no group lives there."""
    rows = [a_view(number, number + 1, (number + 1,), (number + 1,)) for number in range(3)]
    cluster = a_cluster(*rows, offsets_partitions=3)
    on_1, on_2 = ([a_name_on(number, 3)] for number in (1, 2))
    on_2 += [name for name in (f"g-{at}" for at in range(99)) if cluster.home_of(name) == rows[2].name][:2]
    diagnosis = diagnose_all(cluster, [a_case(group, cluster) for group in sorted([*on_1, *on_2])])
    assert verdict(diagnosis).startswith(
        "WARNING: If broker 3 (kafka-3:9092) goes, 3 groups lose their coordinator"
    )
    (chapter,) = [each for each in chapters(diagnosis) if each.cause.code == "KLP106"]
    assert [each.brokers for each in chapter.cause.findings] == [(3,), (2,), (1,)]
