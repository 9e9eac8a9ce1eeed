"""KLP204: not heard of for a whole session."""

from kelpie.cluster import Outage
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.session_expired import judge
from kelpie.observations import EventKind, Generation
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_member,
    a_name_on,
    an_event,
    events,
    found,
    missing,
)

MEMBER = "app-2-00000000-0000-4000-8000-000000000001"


def test_a_member_that_never_came_back_has_died() -> None:
    """The coordinator's line is decisive."""
    rows = [Generation("billing", 1, (a_member(MEMBER, session_timeout_ms=45_000),), at=NOW - HOUR)]
    expired = an_event(EventKind.MEMBER_EXPIRED, NOW - MINUTE, member=MEMBER)
    finding = found(judge(a_case(events=[expired], generations=rows)))
    assert "app-2 was removed, because no heartbeat came for a whole session of 45 s" in finding.summary
    assert "why the process died" in finding.remedies[0].text
    assert finding.severity is Severity.WARNING


def test_a_member_that_came_back_had_only_fallen_silent() -> None:
    """Then its heartbeats are the matter, not its life."""
    lines = [
        an_event(EventKind.MEMBER_EXPIRED, NOW - MINUTE, member=MEMBER),
        an_event(EventKind.JOINED, NOW - 50 * SECOND, client_id="app-2"),
    ]
    finding = found(judge(a_case(events=lines)))
    assert "app-2 came back" in finding.summary
    assert "heartbeats" in finding.remedies[0].text


def test_a_client_that_lost_its_session_says_so() -> None:
    """librdkafka and kafka-python notice it themselves."""
    lines = events(EventKind.SESSION_LOST, NOW - MINUTE, client_id="app-2")
    assert found(judge(a_case(events=lines))).members == ("app-2",)


def test_a_session_that_ended_with_the_coordinator_is_none() -> None:
    """The client was well; the broker was away."""
    group = a_name_on(0)
    cluster = a_cluster(outages={1: (Outage(1, NOW - 70 * SECOND),)})
    lost = events(EventKind.SESSION_LOST, NOW - MINUTE, group=group, client_id="app-2")
    told = a_case(group, cluster, events=lost)
    assert missing(judge(told)) == ("the log of its coordinator",)
    gone = an_event(EventKind.COORDINATOR_LOST, NOW - 62 * SECOND, group)
    assert missing(judge(a_case(group, events=[gone, *lost])))


def test_a_coordinator_that_was_found_dead_later_was_there() -> None:
    """Nobody saw it go; but long after the session it was seen alive."""
    group = a_name_on(0)
    lost = events(EventKind.SESSION_LOST, NOW - 20 * MINUTE, group=group, client_id="app-2")
    away = Outage(1, None, seen=NOW - SECOND, alive_at=NOW - MINUTE)
    assert found(judge(a_case(group, a_cluster(outages={1: (away,)}), events=lost))).members == ("app-2",)
    unknown = Outage(1, None, seen=NOW - SECOND)
    assert missing(judge(a_case(group, a_cluster(outages={1: (unknown,)}), events=lost)))


def test_clean_restarts_and_late_polls_are_none() -> None:
    """Who leaves says so."""
    lines = [
        an_event(EventKind.MEMBER_LEFT, member=MEMBER, reason="the consumer is being closed"),
        an_event(EventKind.MEMBER_JOINED, member=MEMBER),
        an_event(EventKind.MEMBER_LEFT, member=MEMBER, reason="consumer poll timeout has expired."),
    ]
    assert judge(a_case(events=lines)) is ABSENT


def test_without_the_coordinators_log_nobody_can_say() -> None:
    """A consumer that died cannot tell it."""
    assert missing(judge(a_case(events=events(EventKind.JOINED, NOW)))) == ("the log of its coordinator",)
