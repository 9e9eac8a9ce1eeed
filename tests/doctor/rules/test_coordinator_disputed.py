"""KLP103: brokers disagree about the coordinator, or it denies that it is."""

from collections.abc import Sequence

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.coordinator_disputed import judge
from kelpie.errors import ErrorCode
from kelpie.observations import PartitionView
from tests.doctor.building import (
    NOW,
    a_case,
    a_cluster,
    a_name_on,
    a_state,
    a_view,
    an_answer,
    found,
    missing,
)

GROUP = a_name_on(0)


def told(leader_told_by_3: int, epoch: int = 4) -> list[PartitionView]:
    return [
        a_view(0, 2, told_by=1, leader_epoch=5),
        a_view(0, 2, told_by=2, leader_epoch=5),
        a_view(0, leader_told_by_3, told_by=3, leader_epoch=epoch),
    ]


def _still(*views: PartitionView, before: Sequence[PartitionView] = ()) -> ClusterView:
    """What brokers say now, and what they said some seconds ago: the same, unless given."""
    own = [view._replace(at=NOW - 3500) for view in before or views]
    return a_cluster(*views, earlier_views={views[0].name: tuple(own)})


def test_a_dispute_that_was_seen_once_is_a_notice() -> None:
    """In every rolling restart brokers disagree for a moment; nobody is to be woken for that."""
    once = found(judge(a_case(GROUP, a_cluster(*told(1)))))
    assert once.severity is Severity.NOTICE
    began_now = found(judge(a_case(GROUP, _still(*told(1), before=told(2)))))
    assert began_now.severity is Severity.NOTICE


def test_a_broker_with_an_old_view_sends_consumers_to_the_wrong_one() -> None:
    """The one that has not heard of the election is named, for it is the one to restart."""
    finding = found(judge(a_case(GROUP, _still(*told(1)), states=[a_state(group=GROUP)])))
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        f"Group {GROUP}: brokers disagree about its coordinator: brokers 1 and 2 say broker 2, "
        "broker 3 says broker 1, for at least 3.5 s."
    )
    assert finding.brokers == (3,)
    assert len(finding.evidence) == 3
    assert "broker 3 (kafka-3:9092) has not heard" in finding.remedies[1].text


def test_brokers_that_agree_are_no_dispute() -> None:
    """Near miss: different epochs, the same leader."""
    assert judge(a_case(GROUP, a_cluster(*told(2)))) is ABSENT


def test_a_dead_broker_has_no_opinion() -> None:
    """Near miss: its last view is from before it died."""
    assert judge(a_case(GROUP, a_cluster(*told(1), dead=(3,)))) is ABSENT


def test_the_named_one_denies_it() -> None:
    """As in confluent-kafka-go#638: FindCoordinator names a broker that answers NOT_COORDINATOR."""
    answers = [
        an_answer(group=GROUP, node_id=2, address="kafka-2:9092"),
        an_answer(ErrorCode.NOT_COORDINATOR, "DescribeGroups", GROUP, told_by=2),
    ]
    assert found(judge(a_case(GROUP, a_cluster(*told(2)), answers=answers))).severity is Severity.NOTICE
    answers.append(an_answer(ErrorCode.NOT_COORDINATOR, "DescribeGroups", GROUP, told_by=2, at=NOW - 3500))
    finding = found(judge(a_case(GROUP, a_cluster(*told(2)), answers=answers)))
    assert finding.severity is Severity.CRITICAL
    assert (
        "broker 2 (kafka-2:9092) is named as its coordinator, and answers that it is not" in finding.summary
    )
    assert "restart broker 2" in finding.remedies[-1].text


def test_lookups_that_name_different_brokers_are_a_dispute() -> None:
    """Old brokers tell no epochs, and their FindCoordinator is all there is."""
    answers = [an_answer(group=GROUP, told_by=node, node_id=node) for node in (1, 2)]
    finding = found(judge(a_case(GROUP, answers=answers)))
    assert "broker 1 says broker 1, broker 2 says broker 2" in finding.summary


def test_a_partition_without_a_leader_is_not_disputed() -> None:
    """Near miss: broker 3 still names a dead leader; KLP101 says what is wrong."""
    views = [a_view(0, -1, told_by=1, leader_epoch=6), a_view(0, 2, told_by=3, leader_epoch=5)]
    assert judge(a_case(GROUP, a_cluster(*views, dead=(2,)))) is ABSENT


def test_nobody_was_asked() -> None:
    """An output of kafka-topics is one view of one moment."""
    cluster = a_cluster(a_view(0, 1, told_by=None, at=NOW))
    assert missing(judge(a_case(GROUP, cluster)))
