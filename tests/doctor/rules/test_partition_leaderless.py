"""KLP311: nobody leads a partition that the group reads."""

from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules.partition_leaderless import judge
from tests.doctor.building import (
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    found,
    looks,
    missing,
)

READS = a_state("Stable", a_member("app-1", 0, 1))
LED = a_view(0, 1, topic="orders")


def test_a_partition_without_a_leader_is_not_read() -> None:
    """The group's other partitions go on, so that nobody sees it."""
    cluster = a_cluster(LED, a_view(1, -1, (2, 3), topic="orders"), dead=(2, 3))
    finding = found(judge(a_case(cluster=cluster, states=[READS])))
    assert finding.severity is Severity.WARNING
    assert finding.summary == "Group billing cannot read orders-1 (1 of its 2 partitions): it has no leader."
    assert finding.cause == "orders-1"
    assert finding.brokers == (2, 3)
    assert [it.command for it in finding.remedies] == ["", "kelpie elect -b kafka-1:9092 orders-1 --unclean"]


def test_only_replicas_with_all_records_are_named_as_leaders() -> None:
    """Broker 2 was behind: to start it alone brings no leader, and to elect it loses records."""
    views = [a_view(1, -1, (2, 3), topic="orders", eligible=(3,))]
    cluster = a_cluster(LED, *views, dead=(2, 3))
    assert found(judge(a_case(cluster=cluster, states=[READS]))).remedies[0].text == (
        "Start broker 3: it may lead, and nothing is lost. Broker 2 alone would not be elected."
    )


def test_partitions_with_different_heirs_are_told_apart() -> None:
    """One advice for all would be wrong for one of them."""
    views = [a_view(1, -1, (2, 3), (2,), topic="orders"), a_view(2, -1, (2, 3), (3,), topic="orders")]
    state = a_state("Stable", a_member("app-1", 0, 1, 2))
    finding = found(judge(a_case(cluster=a_cluster(LED, *views, dead=(2, 3)), states=[state])))
    assert [remedy.text.partition(",")[0] for remedy in finding.remedies[:2]] == [
        "orders-1: Start broker 2: it may lead",
        "orders-2: Start broker 3: it may lead",
    ]


def test_a_leader_that_is_dead_is_none() -> None:
    """Kafka 0.9 goes on naming it."""
    cluster = a_cluster(LED, a_view(1, 3, (3,), topic="orders"), dead=(3,))
    found(judge(a_case(cluster=cluster, states=[READS])))


def test_a_partition_of_another_topic_is_no_matter() -> None:
    """Near miss: the group has left the topic, though its offset is still there."""
    cluster = a_cluster(LED, a_view(1, 2, topic="orders"), a_view(0, -1, (2, 3), topic="payments"), dead=(3,))
    case = a_case(cluster=cluster, states=[READS], **looks(a_committed(7, topic="payments")))
    assert judge(case) is ABSENT


def test_a_group_without_members_reads_what_it_has_committed() -> None:
    """Its consumers will meet it when they start."""
    cluster = a_cluster(a_view(1, -1, (2, 3), topic="orders"), dead=(2, 3))
    case = a_case(cluster=cluster, states=[a_state("Empty")], **looks(a_committed(7, partition=1)))
    assert found(judge(case)).severity is Severity.CRITICAL


def test_a_leader_that_nobody_knows_to_live_leaves_it_open() -> None:
    """It may have died a moment ago, or be out of reach from here only."""
    cluster = a_cluster(LED, a_view(1, 2, topic="orders"), unknown=(2,))
    assert missing(judge(a_case(cluster=cluster, states=[READS]))) == ("whether orders-1 has a leader",)
    assert missing(judge(a_case())) == (
        "which partitions it reads: it has neither members nor committed offsets",
    )
