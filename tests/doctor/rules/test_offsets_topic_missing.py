"""KLP104: there is no offsets topic."""

from typing import Any

from kelpie.cluster import ClusterView
from kelpie.cluster.picture import build_cluster
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Severity, Undetermined
from kelpie.doctor.rules.offsets_topic_missing import judge
from kelpie.observations import BrokerView, EventKind, Listing, Observations, PartitionView
from tests.doctor.building import NOW, a_case, a_cluster, a_view, an_event

FACTOR = ("broker", "offsets.topic.replication.factor")


def a_cluster_without(**fields: Any) -> ClusterView:
    return a_cluster(a_view(0, 1, topic="orders"), offsets_partitions=0, **fields)


def the_finding(cluster: ClusterView, cases: list[Case]) -> Finding:
    findings = judge(cluster, cases)
    assert isinstance(findings, list)
    finding: Finding
    (finding,) = findings
    return finding


def test_groups_without_the_topic_have_no_coordinator() -> None:
    """All of them at once, whatever their names."""
    cluster = a_cluster_without()
    finding = the_finding(cluster, [a_case("a", cluster), a_case("b", cluster)])
    assert (finding.severity, finding.group) == (Severity.CRITICAL, None)
    assert "no coordinator for any of 2 groups" in finding.summary


def test_a_topic_that_is_hidden_is_not_missing() -> None:
    """Managed services hide it; their groups have coordinators all the same."""
    missing = PartitionView("__consumer_offsets", -1, -1, (), (), 3, told_by=1, at=NOW, source="broker 1")
    seen = Observations(
        partitions=[missing],
        brokers=[BrokerView(1, "kafka-1", 9092, alive=True, at=NOW)],
        listings=[Listing(1, ("billing",), at=NOW, source="broker 1")],
    )
    cluster = build_cluster(seen)
    assert cluster.offsets_partitions is None
    finding = the_finding(cluster, [a_case("billing", cluster, listed=True)])
    assert finding.severity is Severity.NOTICE
    assert "is hidden from this user" in finding.summary
    alone = build_cluster(Observations(partitions=[missing], brokers=seen.brokers))
    assert alone.offsets_partitions == 0
    assert the_finding(alone, [a_case("billing", alone)]).severity is Severity.CRITICAL


def test_too_few_brokers_to_create_it() -> None:
    """Since 0.11 the factor is strict: a quick start with one broker and the default of three."""
    cluster = a_cluster_without(dead=(2, 3), settings={FACTOR: "3"})
    finding = the_finding(cluster, [a_case("a", cluster)])
    assert "it is to have 3 replicas, and 1 broker is alive" in finding.summary
    assert "Start 2 brokers more" in finding.remedies[0].text


def test_a_new_cluster_that_nobody_uses_is_no_emergency() -> None:
    """Near miss: Kafka creates the topic when the first consumer comes."""
    assert the_finding(a_cluster_without(settings={FACTOR: "3"}), []).severity is Severity.NOTICE


def test_a_new_cluster_that_could_not_create_it_is_a_warning() -> None:
    """Nobody waits yet; the first one will."""
    cluster = a_cluster_without(dead=(2,), settings={FACTOR: "3"})
    assert the_finding(cluster, []).severity is Severity.WARNING


def test_a_broker_that_logs_that_it_cannot_create_it_is_believed() -> None:
    """A log alone, without any description of topics."""
    text = (
        "Number of alive brokers '1' does not meet the required replication factor '3' for the offsets topic"
    )
    refusal = an_event(EventKind.COORDINATOR_REFUSED, NOW, group=None, topic="__consumer_offsets", text=text)
    cluster = ClusterView(NOW, events=(refusal,))
    finding = the_finding(cluster, [a_case("a", cluster)])
    assert finding.evidence[-1].text == text
    assert finding.since == NOW


def test_a_topic_that_is_there_is_not_missing() -> None:
    """Near miss: all of its partitions may be leaderless; that is KLP101."""
    assert judge(a_cluster(dead=(1, 2, 3)), []) is ABSENT


def test_nobody_described_topics() -> None:
    """Client logs alone do not tell whether there is such a topic."""
    assert isinstance(judge(ClusterView(NOW), []), Undetermined)
