"""KLP100: a dead broker is told even while every group goes on."""

from kelpie.cluster import ClusterView, Outage
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import ABSENT, Finding, Severity, Undetermined
from kelpie.doctor.report import verdict
from kelpie.doctor.rules.broker_dead import RULE
from tests.doctor.building import MINUTE, NOW, SECOND, a_case, a_cluster, a_state, a_view, an_offsets_topic


def judged(cluster: ClusterView) -> Finding:
    assert RULE.judge_cluster is not None
    finding = RULE.judge_cluster(cluster, [])
    assert isinstance(finding, Finding)
    return finding


def test_topics_with_one_replica_in_sync_make_it_a_warning() -> None:
    """The next broker that dies takes these partitions with it; the headline used to be OK."""
    rows = [*an_offsets_topic(replicas=3), a_view(0, 1, (1, 3), (1,), topic="orders")]
    cluster = a_cluster(*rows, dead=[3])
    finding = judged(cluster)
    assert finding.severity is Severity.WARNING
    assert finding.brokers == (3,)
    assert "orders-0" in finding.partitions
    assert "1 partition of orders has one replica in sync left" in finding.summary
    diagnosis = diagnose_all(cluster, [a_case("g", cluster, states=[a_state()])])
    assert not verdict(diagnosis).startswith("OK")


def test_a_broker_that_may_be_restarting_is_a_notice() -> None:
    """In a rolling restart a broker is away at any moment: nobody is to be woken."""
    rows = [*an_offsets_topic(replicas=3), a_view(0, 1, (1, 3), (1,), topic="orders")]
    outage = Outage(3, NOW - 20 * SECOND)
    finding = judged(a_cluster(*rows, dead=[3], outages={3: (outage,)}))
    assert finding.severity is Severity.NOTICE
    assert "for 20 s" in finding.summary
    assert judged(a_cluster(*an_offsets_topic(replicas=3), dead=[3])).severity is Severity.NOTICE


def test_a_broker_that_stays_away_is_a_warning() -> None:
    """Five minutes are no restart, even if enough replicas are left."""
    outage = Outage(3, NOW - 6 * MINUTE)
    finding = judged(a_cluster(*an_offsets_topic(replicas=3), dead=[3], outages={3: (outage,)}))
    assert finding.severity is Severity.WARNING


def test_of_several_dead_brokers_the_one_that_loses_nothing_is_started_first() -> None:
    """At night the order matters: the other one may lack records."""
    rows = [a_view(0, -1, (2, 3), (3,)), a_view(1, -1, (3, 2), (), eligible=(3,)), a_view(2, 1, (1, 2), (1,))]
    (remedy,) = judged(a_cluster(*rows, dead=[2, 3])).remedies
    assert "Begin with broker 3: it may lead all 2 partitions that have no leader" in remedy.text
    assert remedy.text.startswith("Find out why brokers 2 and 3 stopped")
    unclean = {("broker", "unclean.leader.election.enable"): "true"}
    risky = judged(a_cluster(*rows, dead=[2, 3], settings=unclean)).remedies[0]
    assert "Keep broker 2 stopped until then" in risky.text


def test_several_brokers_are_named_if_no_single_one_suffices() -> None:
    """Each with its share of the partitions."""
    rows = [a_view(0, -1, (2, 3), (3,)), a_view(1, -1, (3, 2), (3,)), a_view(2, -1, (2, 3), (2,))]
    first = judged(a_cluster(*rows, dead=[2, 3])).remedies[0]
    assert "Of the 3 partitions without a leader, broker 3 may lead 2 and broker 2 may lead 1" in first.text


def test_where_nobody_knows_what_was_in_sync_no_order_is_advised() -> None:
    """Kafka before 4 tells no in-sync replica of a partition without a leader in metadata."""
    rows = [a_view(0, -1, (2, 3), ()), a_view(1, 1, (1, 2), (1,))]
    for cluster in (a_cluster(*rows, dead=[2, 3]), a_cluster(a_view(0, -1, (2,), (2,)), dead=[2])):
        (remedy,) = judged(cluster).remedies
        assert "egin with" not in remedy.text


def test_living_brokers_are_no_finding() -> None:
    """Also if one of them was away earlier, and with one replica by configuration."""
    assert RULE.judge_cluster is not None
    back = {3: (Outage(3, NOW - 6 * MINUTE, NOW - 5 * MINUTE),)}
    assert RULE.judge_cluster(a_cluster(outages=back), []) is ABSENT
    assert RULE.judge_cluster(a_cluster(a_view(0, 1, (1,))), []) is ABSENT


def test_what_nobody_knows_is_undetermined() -> None:
    """A broker that one cannot reach and others list is not dead, and not well either."""
    assert RULE.judge_cluster is not None
    unknown = RULE.judge_cluster(a_cluster(unknown=[2]), [])
    assert isinstance(unknown, Undetermined)
    assert "broker 2" in unknown.missing[0]
    assert isinstance(RULE.judge_cluster(a_cluster(brokers=[]), []), Undetermined)
