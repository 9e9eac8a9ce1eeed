"""KLP206: no assignor in common."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.inconsistent_protocol import judge
from kelpie.observations import EventKind
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


def test_the_refused_one_and_what_the_others_use_are_named() -> None:
    """Its own log says that it was refused; a description says by what."""
    lines = events(EventKind.PROTOCOL_REFUSED, NOW - MINUTE, NOW, client_id="app-3", error=23)
    finding = found(judge(a_case(events=lines, states=[a_state("Stable", a_member("app-1", 0))])))
    assert "refused app-3: it has no assignor in common" in finding.summary
    assert "Its members use range (type consumer)." in finding.summary
    assert finding.severity is Severity.WARNING
    assert "protocol range, type consumer, 1 member" in finding.evidence[-1].text


def test_what_is_long_over_is_worth_knowing() -> None:
    """A deployment of yesterday."""
    lines = events(EventKind.PROTOCOL_REFUSED, NOW - 24 * HOUR, client_id="app-3")
    assert found(judge(a_case(events=lines))).severity is Severity.NOTICE


def test_other_refusals_are_none() -> None:
    """A group that is full, or a name that may not be used."""
    lines = [an_event(EventKind.GROUP_FULL), an_event(EventKind.NOT_AUTHORISED), an_event(EventKind.JOINED)]
    assert judge(a_case(events=lines)) is ABSENT


def test_without_a_consumers_log_nobody_can_say() -> None:
    """Brokers keep no record of whom they refused, and their logs are silent too."""
    assert missing(judge(a_case(states=[a_state()]))) == ("the logs of its consumers",)
    assert missing(judge(a_case(events=events(EventKind.REBALANCE_STARTED, NOW))))
