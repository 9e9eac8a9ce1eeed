"""KLP107: a permission is missing."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.not_authorised import judge
from kelpie.errors import ErrorCode
from kelpie.observations import EventKind
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_committed,
    a_state,
    an_answer,
    an_event,
    events,
    found,
    missing,
)

GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_refusal_to_us_is_a_warning() -> None:
    """Whether the group is well cannot be told; its own consumers may be allowed."""
    finding = found(judge(a_case(answers=[an_answer(GROUP_REFUSED, "DescribeGroups")])))
    assert finding.severity is Severity.WARNING
    assert "refuses to answer for the group with these credentials" in finding.summary
    assert finding.evidence[0].text == "DescribeGroups → 30 GROUP_AUTHORIZATION_FAILED"
    assert finding.remedies[0].command == (
        "kafka-acls.sh --bootstrap-server kafka-1:9092 --add --allow-principal User:NAME --operation "
        "Describe --group billing"
    )


def test_a_lookup_that_is_refused_counts() -> None:
    """FindCoordinator is the first thing that is asked, and may be the last."""
    assert found(judge(a_case(answers=[an_answer(GROUP_REFUSED)])))


def test_a_refused_topic_is_named() -> None:
    """The group may be described, and one of its topics not."""
    row = a_committed(-1, topic="secret", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    finding = found(judge(a_case(states=[a_state()], committed=[row, a_committed(5)])))
    assert "topic secret" in finding.summary
    assert "--topic secret" in finding.remedies[0].command


def test_clients_that_are_refused_do_not_consume() -> None:
    """Their own logs leave no doubt."""
    told = events(EventKind.NOT_AUTHORISED, NOW - MINUTE, NOW, topic="orders", client_id="app-1")
    finding = found(judge(a_case(events=told)))
    assert finding.severity is Severity.CRITICAL
    assert "no permission for topic orders" in finding.summary
    assert (finding.since, finding.members) == (NOW - MINUTE, ("app-1",))
    assert "--operation Read --topic orders" in finding.remedies[0].command


def test_clients_that_joined_since_were_let_in() -> None:
    """Near miss: somebody has granted it already."""
    told = [*events(EventKind.NOT_AUTHORISED, NOW - MINUTE), an_event(EventKind.JOINED, NOW - SECOND)]
    assert judge(a_case(events=told)) is ABSENT


def test_other_errors_are_no_refusal() -> None:
    """Near miss: the coordinator is loading."""
    answer = an_answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "DescribeGroups")
    assert judge(a_case(answers=[answer])) is ABSENT


def test_without_any_answer_nobody_knows() -> None:
    """The group is known from a list of names alone."""
    assert missing(judge(a_case())) == ("an answer about the group",)
