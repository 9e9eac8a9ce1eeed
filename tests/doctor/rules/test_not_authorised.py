"""KLP107: a permission is missing."""

from typing import Any

from kelpie.cluster.topics import topics_of
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.not_authorised import judge
from kelpie.errors import ErrorCode
from kelpie.observations import EventKind, TopicView
from tests.doctor.building import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_answer,
    an_event,
    commits,
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


def test_a_topic_that_all_offsets_leave_out_is_named() -> None:
    """Brokers leave it out without a word. Asked for it by name, they refuse; or the history has commits."""
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    secret = TopicView("secret", error=refused, told_by=1, at=NOW, source="broker 1")
    told: dict[str, Any] = {"answers": [an_answer(asked="OffsetFetch")], "committed": [a_committed(5)]}
    state = a_state("Stable", a_member("app-1", 0, subscribed=("orders", "secret")))
    cluster = a_cluster(known_topics=topics_of([secret], {}, {}))
    finding = found(judge(a_case(cluster=cluster, states=[state], **told)))
    assert "refuses to answer for topic secret with these credentials" in finding.summary
    assert "--operation Describe --topic secret" in finding.remedies[0].command

    history = commits((NOW - MINUTE, 40), topic="secret")
    finding = found(judge(a_case(states=[a_state()], commits=history, **told)))
    assert finding.evidence[0].text == (
        "secret-0: committed 40; the coordinator leaves it out of the group's offsets"
    )


def test_a_commit_of_this_moment_or_one_that_was_removed_is_not_hidden() -> None:
    """Near miss: the commit came after the question, or the offset is gone."""
    told: dict[str, Any] = {
        "answers": [an_answer(asked="OffsetFetch")],
        "committed": [a_committed(5)],
        "states": [a_state()],
    }
    assert judge(a_case(commits=commits((NOW, 40), topic="new"), **told)) is ABSENT
    removed = commits((NOW - HOUR, 40), (NOW - MINUTE, -1), topic="old")
    assert judge(a_case(commits=removed, **told)) is ABSENT


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
