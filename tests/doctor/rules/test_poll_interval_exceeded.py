"""KLP203: poll() came too late."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.poll_interval_exceeded import judge
from kelpie.observations import EventKind, Generation
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    a_case,
    a_member,
    a_state,
    an_event,
    events,
    found,
    missing,
)

REASON = "consumer poll timeout has expired."


def test_what_a_client_says_of_itself_is_told_with_its_numbers() -> None:
    """librdkafka names its limit and how late it was."""
    line = an_event(
        EventKind.POLL_INTERVAL_EXCEEDED,
        NOW - MINUTE,
        client_id="app-3",
        details={"limit_ms": "300000", "pause_ms": "412000"},
    )
    finding = found(judge(a_case(events=[line])))
    assert "app-3 paused 6.87 min between polls; its limit is 5 min" in finding.summary
    assert finding.severity is Severity.WARNING
    assert finding.members == ("app-3",)
    assert finding.evidence[0].text == line.text


def test_the_coordinator_hears_why_a_java_client_left() -> None:
    """Its log alone is enough, for clients since 3.2; the limit is in the group's records."""
    member = "app-3-00000000-0000-4000-8000-000000000001"
    left = an_event(EventKind.MEMBER_LEFT, NOW - MINUTE, member=member, reason=REASON)
    rows = [Generation("billing", 1, (a_member(member, rebalance_timeout_ms=8000),), at=NOW - HOUR)]
    finding = found(judge(a_case(events=[left], generations=rows)))
    assert "app-3 called poll() too late; its limit is 8 s (max.poll.interval.ms): 1 time" in finding.summary


def test_the_same_time_told_by_both_counts_once() -> None:
    """The client's lines and the coordinator's are about one departure."""
    lines = [
        an_event(EventKind.POLL_INTERVAL_EXCEEDED, NOW - MINUTE, client_id="app-3"),
        an_event(EventKind.LEAVING, NOW - MINUTE + 1, client_id="app-3", reason=REASON),
        an_event(EventKind.POLL_INTERVAL_EXCEEDED, NOW, client_id="app-3"),
    ]
    assert "(max.poll.interval.ms): 2 times" in found(judge(a_case(events=lines))).summary


def test_a_group_that_it_leaves_empty_does_not_consume() -> None:
    """Nobody else is there to take over."""
    lines = events(EventKind.POLL_INTERVAL_EXCEEDED, NOW - MINUTE, client_id="app-3")
    assert found(judge(a_case(events=lines, states=[a_state("Empty")]))).severity is Severity.CRITICAL
    assert found(judge(a_case(events=lines, states=[a_state()]))).severity is Severity.WARNING


def test_a_consumer_that_is_closed_is_none() -> None:
    """It leaves, and says why; some clients say nothing."""
    lines = [
        an_event(EventKind.MEMBER_LEFT, reason="the consumer is being closed"),
        an_event(EventKind.MEMBER_LEFT, reason="not provided"),
        an_event(EventKind.LEAVING),
        an_event(EventKind.MEMBER_EXPIRED),
    ]
    assert judge(a_case(events=lines)) is ABSENT


def test_without_logs_nobody_can_say() -> None:
    """Who left, left: records do not tell why. If nobody left, it is clear."""
    first = Generation("billing", 1, (a_member("app-1"), a_member("app-2")), at=NOW - HOUR)
    second = Generation("billing", 2, (a_member("app-1"),), at=NOW - MINUTE)
    assert len(missing(judge(a_case(generations=[first, second])))) == 2
    assert judge(a_case(generations=[first], states=[a_state("Stable", *first.members)])) is ABSENT
    assert missing(judge(a_case()))
