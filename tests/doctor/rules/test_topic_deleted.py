"""KLP315: a topic is gone. One that the caller may not describe is not."""

from typing import Any

from kelpie.cluster import ClusterView, build_cluster
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.topic_deleted import judge
from kelpie.observations import Observations, TopicView
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_case,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_answer,
    an_end,
    an_offsets_topic,
    found,
    looks,
    missing,
)

GONE, HIDDEN = 3, 29
MEMBER = a_state("Stable", a_member("app-1", 0, topic="payments", subscribed=("orders", "payments")))
ORDERS = TopicView("orders", "A", told_by=1, at=NOW, source="broker 1")


def _payments(error: int, told_by: int = 1, **fields: Any) -> TopicView:
    return TopicView("payments", "", error, told_by=told_by, at=NOW, source=f"broker {told_by}", **fields)


def _seen(*topics: TopicView) -> Observations:
    """An earlier look saw payments with 3,758 records; now orders is there."""
    return Observations(
        partitions=[*an_offsets_topic(), a_view(0, 1, topic="orders")],
        topics=[TopicView("payments", "B", at=NOW - 10 * MINUTE), ORDERS, *topics],
        ends=[an_end(3758, topic="payments", at=NOW - 10 * MINUTE), an_end(10)],
        committed=[a_committed(0, topic="payments", at=NOW - 10 * MINUTE), a_committed(10)],
        states=[MEMBER],
        answers=[an_answer(asked="OffsetFetch")],
    )


def _cluster(*topics: TopicView) -> ClusterView:
    return build_cluster(_seen(*topics), now=NOW, bootstrap="kafka-1:9092")


def _case(*topics: TopicView) -> Case:
    (case,) = build(_seen(*topics), now=NOW, bootstrap="kafka-1:9092")[1]
    return case


def test_a_topic_that_members_read_is_gone() -> None:
    """Every broker that was asked by name says so. A classic Java consumer stands still in orders, too."""
    finding = found(judge(_case(_payments(GONE), _payments(GONE, 2))))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "Group billing reads topic payments, which does not exist any more: its members still subscribe to "
        "it."
    )
    assert "neither commits nor reads on in its other topics (orders)" in finding.why
    assert "kafka-topics.sh" in finding.check


def test_no_rule_tells_how_many_records_a_deleted_topic_holds() -> None:
    """What an earlier look saw of it is not there any more."""
    findings, _ = diagnose(_case(_payments(GONE)))
    assert [finding.code for finding in findings] == ["KLP315"]
    assert "3,758" not in str(findings)
    assert "payments" not in _cluster(_payments(GONE)).topics


def test_without_members_it_is_only_worth_knowing() -> None:
    """The offsets went with the topic; only the earlier look shows that the group read it."""
    seen = _seen(_payments(GONE))
    seen.states = [a_state("Empty")]
    finding = found(judge(build(seen, now=NOW)[1][0]))
    assert finding.severity is Severity.NOTICE
    assert finding.remedies == ()


def test_a_topic_that_nobody_ever_saw_is_only_worth_knowing() -> None:
    """Consumers may subscribe before a topic is created, or to a name that is misspelt."""
    later = a_state("Stable", a_member("app-1", 0, subscribed=("orders", "later")))
    cluster = _cluster(TopicView("later", "", GONE, told_by=1, at=NOW))
    finding = found(judge(a_case(cluster=cluster, states=[later], **looks(a_committed(10)))))
    assert finding.severity is Severity.NOTICE
    assert (
        "subscribes to topic later, which does not exist; nothing shows that it ever did" in finding.summary
    )


def test_a_topic_that_may_not_be_described_is_not_called_deleted() -> None:
    """Brokers answer error 29 whether it exists or not. No rule judges it from memory."""
    case = _case(_payments(HIDDEN))
    assert missing(judge(case)) == (
        "whether topic payments exists: the right to describe the topic (Describe)",
    )
    findings, _ = diagnose(case)
    assert not [finding for finding in findings if finding.code not in ("KLP107", "KLP203")]
    assert "3,758" not in str(findings)


def test_a_listing_of_all_topics_hides_without_a_word() -> None:
    """Brokers before 2.1: missing may be gone or hidden, unless the coordinator told offsets in it."""
    unlisted = _payments(GONE, by_name=False)
    assert "Describe" in missing(judge(_case(unlisted)))[0]
    told = looks(a_committed(5, topic="payments"))
    found(judge(a_case(cluster=_cluster(unlisted), states=[MEMBER], **told)))


def test_brokers_that_differ_leave_it_open() -> None:
    """One of them has not heard of the deletion yet, or of the creation."""
    there = TopicView("payments", "B", told_by=2, at=NOW)
    assert "some brokers know it" in missing(judge(_case(_payments(GONE), there)))[0]


def test_a_topic_that_is_there_is_well() -> None:
    """Near miss. And without any topic, nothing can be said."""
    assert judge(_case(TopicView("payments", "B", told_by=1, at=NOW))) is ABSENT
    missing(judge(a_case(cluster=_cluster())))
