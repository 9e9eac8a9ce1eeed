"""KLP205: one group.instance.id, two consumers."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.static_member_fenced import judge
from kelpie.model.time import Instant
from kelpie.observations import EventKind, Generation
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_member,
    a_state,
    an_event,
    found,
    missing,
)


def _records(*moments: Instant) -> list[Generation]:
    """The same generation, written down with another member id each time."""
    return [
        Generation("billing", 3, (a_member(f"b-{at}", instance_id="b", session_timeout_ms=45_000),), at=at)
        for at in moments
    ]


def test_a_fenced_consumer_says_so() -> None:
    """Its log names the instance."""
    line = an_event(EventKind.FENCED, NOW - MINUTE, instance_id="b", error=82)
    finding = found(judge(a_case(events=[line])))
    assert "share the group.instance.id b" in finding.summary
    assert finding.severity is Severity.WARNING
    assert finding.members == ("b",)
    assert finding.remedies[1].command.startswith("kafka-consumer-groups.sh --bootstrap-server kafka-1:9092")


def test_the_coordinators_line_is_found_by_the_member() -> None:
    """It names member and instance, and no group."""
    refused = an_event(EventKind.MEMBER_FENCED, NOW, None, member="b-1", instance_id="b")
    other = an_event(EventKind.MEMBER_FENCED, NOW, None, member="x-1", instance_id="x")
    joined = an_event(EventKind.MEMBER_JOINED, NOW - MINUTE, member="b-1", instance_id="b")
    case = a_case(cluster=a_cluster(events=(refused, other)), events=[joined])
    assert found(judge(case)).members == ("b",)
    assert judge(a_case(cluster=a_cluster(events=(other,)), events=[joined])) is ABSENT


def test_an_instance_that_changes_hands_again_and_again_is_fought_over() -> None:
    """No log is needed: the records of the offsets topic show it."""
    rows = _records(*(NOW - ago * SECOND for ago in (20, 15, 10, 5)))
    finding = found(judge(a_case(generations=rows)))
    assert finding.severity is Severity.CRITICAL
    assert "3 times" in finding.summary


def test_the_coordinators_log_shows_the_same() -> None:
    """Each line tells who took whose place."""
    lines = [
        an_event(
            EventKind.MEMBER_JOINED,
            NOW - ago,
            instance_id="b",
            member=f"b-{ago}",
            details={"replaced": "b-0"},
        )
        for ago in (3000, 2000, 1000)
    ]
    assert found(judge(a_case(events=lines))).members == ("b",)


def test_restarts_of_a_static_member_are_none() -> None:
    """That is what static members are for: one change each, some time apart."""
    line = an_event(EventKind.MEMBER_JOINED, NOW, instance_id="b", member="b-2", details={"replaced": "b-1"})
    assert judge(a_case(events=[line])) is ABSENT
    rolled = _records(*(NOW - ago * MINUTE for ago in (30, 20, 10, 0)))
    assert judge(a_case(generations=rolled, events=[line])) is ABSENT


def test_a_row_that_is_older_than_its_time_is_no_change_back() -> None:
    """Near miss, as seen in a deployment on 4.3.1: a survey described the old member, the new one joined, and
    the survey ended. Its rows have that time, and the next survey sees the new member.
    """
    old, new = (a_member(f"b-{number}", instance_id="b") for number in (1, 2))
    records = [
        Generation("billing", 3, (member,), at=NOW - ago) for member, ago in ((old, MINUTE), (new, 3000))
    ]
    described = [a_state("Stable", member, at=NOW - ago) for member, ago in ((old, 2000), (new, 0))]
    case = a_case(generations=records, states=described)
    assert missing(judge(case)) == ("the logs of its consumers", "the log of its coordinator")


def test_a_group_without_static_members_has_none_to_fence() -> None:
    """An epoch that is fenced in the new protocol is no quarrel over an instance."""
    dynamic = Generation("billing", 1, (a_member("app-1"),), at=NOW)
    fenced = an_event(EventKind.MEMBER_FENCED, NOW, member="app-1", reason="the member failed to sync")
    assert judge(a_case(generations=[dynamic])) is ABSENT
    assert judge(a_case(events=[fenced])) is ABSENT


def test_without_members_and_logs_nobody_can_say() -> None:
    """A refused request leaves no record."""
    assert len(missing(judge(a_case()))) == 2
    once = _records(NOW - HOUR, NOW - 30 * MINUTE)
    assert missing(judge(a_case(generations=once))), "a restart, or one that was fenced and is dead"


def test_with_the_new_protocol_the_second_one_is_refused() -> None:
    """KIP-848 keeps the first: UNRELEASED_INSTANCE_ID, until it has left."""
    refused = an_event(EventKind.FENCED, NOW - MINUTE, instance_id="b", error=111)
    state = a_state("Stable", a_member("b-1", 0, instance_id="b"), kind="consumer", protocol="uniform")
    finding = found(judge(a_case(events=[refused], states=[state])))
    assert "the group.instance.id b and the second one is not let in" in finding.summary
    assert "UNRELEASED_INSTANCE_ID (111)" in finding.why
    assert "keeps the first one" in finding.why


def test_a_static_member_of_the_new_protocol_that_restarts_is_none() -> None:
    """It leaves with epoch -2 and comes back under another member id: one change, and nobody was refused."""
    rows = [
        a_state("Stable", a_member(name, 0, instance_id="b"), kind="consumer", at=at)
        for name, at in (("b-1", NOW - MINUTE), ("b-2", NOW))
    ]
    joined = an_event(EventKind.MEMBER_JOINED, NOW, member="b-2", instance_id="b")
    assert judge(a_case(states=rows, events=[joined])) is ABSENT
