"""KLP106: partitions that hang on one broker."""

from dataclasses import replace

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Severity, Undetermined
from kelpie.doctor.rules.offsets_topic_at_risk import judge
from tests.doctor.building import NOW, a_case, a_cluster, a_name_on, a_view, an_offsets_topic

NEEDED = ("topic __consumer_offsets", "min.insync.replicas")
ON_0, ON_1 = a_name_on(0, 2), a_name_on(1, 2)


def findings(cluster: ClusterView, *groups: str) -> list[Finding]:
    cases: list[Case] = [a_case(group, cluster) for group in groups]
    judged = judge(cluster, cases)
    assert isinstance(judged, list), judged
    return judged


def two(*in_sync: tuple[int, ...], **fields: object) -> ClusterView:
    """Partition 0 on brokers 1 and 2, partition 1 on brokers 2 and 3."""
    rows = [a_view(0, 1, (1, 2), in_sync[0]), a_view(1, 2, (2, 3), in_sync[1])]
    return a_cluster(*rows, offsets_partitions=2, **fields)  # type: ignore[arg-type]


def test_a_broker_that_alone_is_in_sync_is_named_with_whom_its_loss_would_hit() -> None:
    """Blast radius before the blast."""
    (finding,) = findings(two((1, 2), (2,)), ON_0, ON_1)
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        f"If broker 2 (kafka-2:9092) goes, 1 group loses its coordinator ({ON_1}): it has the only replica "
        "in sync of 1 partition of __consumer_offsets; the replicas on broker 3 are not in sync."
    )
    assert (finding.brokers, finding.partitions) == ((2,), ("__consumer_offsets-1",))
    assert finding.group is None


def test_two_in_sync_are_enough() -> None:
    """Near miss: a third replica lags."""
    cluster = a_cluster(a_view(0, 1, (1, 2, 3), (1, 2)), offsets_partitions=1)
    assert judge(cluster, []) is ABSENT


def test_dead_brokers_do_not_count_as_in_sync() -> None:
    """Kafka 0.9 leaves them in the ISR for a while."""
    assert [it.brokers for it in findings(two((1, 2), (2, 3), dead=(3,)))] == [(2,)]


def test_one_replica_by_configuration_is_a_warning_for_each_broker() -> None:
    """Quick starts leave offsets.topic.replication.factor at 1, and nobody notices until the first crash."""
    told = findings(a_cluster(*an_offsets_topic(replicas=1)), a_name_on(0))
    assert [it.brokers for it in told] == [(1,), (2,), (3,)]
    assert {it.severity for it in told} == {Severity.WARNING}
    assert "one replica each, by configuration" in told[0].summary
    assert told[0].remedies[0].command.endswith("--replication 3")


def test_one_broker_is_a_trial_and_a_notice() -> None:
    """Near miss: a laptop."""
    rows = an_offsets_topic(brokers=(1,), replicas=1)
    assert findings(a_cluster(*rows, brokers=(1,)))[0].severity is Severity.NOTICE


def test_below_min_insync_replicas_commits_fail_now() -> None:
    """Members go on reading, so lag looks fine; every restart reads again."""
    told = findings(two((1, 2), (2,), settings={NEEDED: "2"}), ON_0, ON_1)
    refused = [it for it in told if it.group is not None]
    assert [(it.group, it.severity) for it in refused] == [(ON_1, Severity.CRITICAL)]
    assert "has 1 replica in sync and needs 2" in refused[0].summary
    assert refused[0].remedies[1].command == (
        "kafka-configs.sh --bootstrap-server kafka-1:9092 --alter --entity-type topics "
        "--entity-name __consumer_offsets --add-config min.insync.replicas=1"
    )


def _one_replica(release: str) -> list[Finding]:
    cluster = a_cluster(a_view(0, 1, (1,)), brokers=(1, 2), offsets_partitions=1, settings={NEEDED: "2"})
    leader = replace(cluster.brokers[1], release=release)
    told = findings(replace(cluster, brokers={**cluster.brokers, 1: leader}), "billing")
    return [it for it in told if it.group is not None]


def test_fewer_replicas_than_must_be_in_sync_take_no_commits_before_3_7() -> None:
    """By configuration, on the best of days; since 3.7 as many as there are suffice."""
    (old,) = _one_replica("2.8")
    assert old.severity is Severity.CRITICAL
    assert "has 1 replica in sync and needs 2" in old.summary
    assert "--replication 2" in old.remedies[0].command
    assert "Take that back (min.insync.replicas=2)" in old.remedies[1].text
    (doubtful,) = _one_replica("3.1")
    assert doubtful.severity is Severity.WARNING
    assert "unless its leader's release is 3.7" in doubtful.summary
    assert _one_replica("3.9") == []
    assert _one_replica("4.x") == []
    assert _one_replica("") == []


def test_a_partition_without_a_leader_is_not_at_risk() -> None:
    """Near miss: it is past that; KLP101 says so."""
    assert judge(a_cluster(a_view(0, -1, (1, 2)), offsets_partitions=1), []) is ABSENT


def test_without_a_description_nobody_knows() -> None:
    """Client logs do not tell replicas."""
    assert isinstance(judge(ClusterView(NOW), []), Undetermined)
    assert isinstance(judge(ClusterView(NOW, offsets_partitions=50), []), Undetermined)
