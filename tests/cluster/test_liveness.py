"""Which brokers are alive, by each kind of witness, and when they contradict each other."""

from collections.abc import Iterable

from kelpie.cluster import ClusterView, build_cluster
from kelpie.cluster.liveness import _order, _Report
from kelpie.observations import BrokerView, Event, EventKind, Observations, PartitionView
from kelpie.observations.presence import QUORUM
from tests.doctor.building import MINUTE, NOW, SECOND, a_broker, a_view, an_event


def told_by_tool(*rows: tuple[int, str, str], at: int | None = None) -> list[PartitionView]:
    """Rows of kafka-topics: leader, replicas, ISR."""
    return [
        a_view(partition, leader, _nodes(replicas), _nodes(in_sync), told_by=None, at=at)
        for partition, (leader, replicas, in_sync) in enumerate(rows)
    ]


def _nodes(text: str) -> tuple[int, ...]:
    return tuple(int(node) for node in text.split(",") if node)


def cluster_of(
    partitions: Iterable[PartitionView] = (), events: Iterable[Event] = (), brokers: Iterable[BrokerView] = ()
) -> ClusterView:
    seen = Observations(brokers=list(brokers), partitions=list(partitions), events=list(events))
    return build_cluster(seen, now=NOW)


def alive(cluster: ClusterView) -> dict[int, bool | None]:
    return {node: broker.alive for node, broker in cluster.brokers.items()}


def of_broker(kind: EventKind, node: int, at: int | None) -> Event:
    return an_event(kind, at, group=None, node=node)


def test_kafka_0_9_names_dead_leaders_and_is_not_believed() -> None:
    """As recorded on 0.9.0.1: brokers 1 and 2 are gone, and still lead each other's partitions in sync."""
    cluster = cluster_of(
        told_by_tool((0, "1,0", "0"), (2, "2,1", "2,1"), (0, "0,2", "0"), (1, "1,2", "1,2"), (0, "2,0", "0"))
    )
    assert alive(cluster) == {0: True, 1: False, 2: False}
    assert "none of the 2 partitions" in cluster.brokers[2].reason


def test_a_survivor_that_lagged_before_is_still_found() -> None:
    """Broker 0 is missed by a dead leader's last ISR, and so nobody is beyond doubt at first sight."""
    rows = told_by_tool((0, "1,0", "0"), (1, "1,2,0", "1,2"), (0, "2,0", "0"), (2, "2,1", "2,1"))
    assert alive(cluster_of(rows)) == {0: True, 1: False, 2: False}


def test_a_broker_that_lags_in_one_partition_is_alive() -> None:
    """Lagging and dead look the same in one partition, and not in all of them."""
    rows = told_by_tool((1, "1,2", "1"), (1, "1,2", "1,2"), (2, "2,1", "2,1"))
    assert alive(cluster_of(rows)) == {1: True, 2: True}


def test_a_leader_with_a_living_follower_in_sync_is_alive() -> None:
    """Its fetchers may have died, so that it lags everywhere; but a dead leader would have been replaced."""
    rows = told_by_tool((1, "1,2", "1"), (2, "2,1", "2,1"), (3, "3,2", "3"), (1, "1,3", "1,3"))
    assert alive(cluster_of(rows))[2] is True


def test_brokers_of_leaderless_partitions_are_dead_when_nothing_else_is_known_of_them() -> None:
    """Kafka 4 shows leader none; a broker that has only such partitions is not there."""
    rows = told_by_tool((1, "1,2", "1"), (-1, "2,3", ""), (-1, "3,2", ""))
    assert alive(cluster_of(rows)) == {1: True, 2: False, 3: False}


def test_the_newest_word_of_the_logs_wins() -> None:
    """Fenced, then back: a log tells a whole story, and its end counts."""
    events = [
        of_broker(EventKind.BROKER_UNFENCED, 2, NOW - MINUTE),
        of_broker(EventKind.BROKER_FENCED, 2, NOW - 2 * MINUTE),
        of_broker(EventKind.BROKER_FENCED, 3, NOW - MINUTE),
    ]
    cluster = cluster_of(told_by_tool((1, "1,2,3", "1,2,3"), at=NOW - 5 * MINUTE), events)
    assert alive(cluster) == {1: True, 2: True, 3: False}
    (outage,) = cluster.outages[2]
    assert (outage.since, outage.until) == (NOW - 2 * MINUTE, NOW - MINUTE)
    assert cluster.outages[3][0].until is None


def test_an_undated_description_outweighs_a_start_in_a_log() -> None:
    """A killed broker's log ends after its start; the description shows that it is gone."""
    events = [of_broker(EventKind.BROKER_STARTED, node, NOW - 5 * MINUTE) for node in (1, 2)]
    assert alive(cluster_of(told_by_tool((1, "1,2", "1")), events)) == {1: True, 2: False}


def test_a_crash_in_a_log_outweighs_an_undated_description() -> None:
    """The description may be from before."""
    events = [of_broker(EventKind.BROKER_FENCED, 2, NOW - MINUTE)]
    assert alive(cluster_of(told_by_tool((1, "1,2", "1,2")), events)) == {1: True, 2: False}


def test_the_end_of_the_whole_cluster_is_no_incident() -> None:
    """A recording ends with somebody shutting down what was left; it must not hit every group."""
    stopped = NOW - MINUTE
    events = [
        of_broker(EventKind.BROKER_FENCED, 2, stopped - 5 * SECOND),
        of_broker(EventKind.BROKER_STOPPED, 1, stopped),
        of_broker(EventKind.BROKER_FENCED, 1, stopped + SECOND),
    ]
    cluster = cluster_of(told_by_tool((1, "1,2", "1,2")), events)
    assert alive(cluster) == {1: True, 2: False}
    assert cluster.now == stopped
    assert 1 not in cluster.outages


def test_a_shutdown_of_some_brokers_counts() -> None:
    """One broker is left: the others are missed, however orderly they went."""
    events = [of_broker(EventKind.BROKER_STOPPED, 2, NOW - MINUTE)]
    cluster = cluster_of(told_by_tool((1, "1,2", "1,2")), events)
    assert alive(cluster) == {1: True, 2: False}
    assert cluster.outages[2][0].orderly


def test_a_survey_overrules_older_words() -> None:
    """What was asked just now counts more than last week's log."""
    events = [of_broker(EventKind.BROKER_FENCED, 1, NOW - MINUTE)]
    assert alive(cluster_of(brokers=[a_broker(1)], events=events)) == {1: True}


def test_a_broker_that_we_cannot_reach_and_others_list_is_in_doubt() -> None:
    """It may have died a moment ago, or be reachable for everyone but us."""
    rows = [
        a_broker(1),
        a_broker(2, alive=False, reason="connection refused."),
        a_broker(2, alive=None, reason="lists it", source="broker 1"),
    ]
    cluster = cluster_of([a_view(0, 2)], brokers=rows)
    assert alive(cluster) == {1: True, 2: None}
    assert cluster.brokers[2].reason == "connection refused; yet listed as alive by broker 1"


def test_a_broker_that_nobody_lists_any_more_is_dead() -> None:
    """Metadata leaves dead brokers out; only replica lists still name them."""
    cluster = cluster_of([a_view(0, 1, (1, 9))], brokers=[a_broker(1)])
    assert alive(cluster) == {1: True, 9: False}
    assert cluster.brokers[9].reason == "no longer listed by broker 1"


def test_a_broker_that_was_found_dead_went_between_two_sights_of_it() -> None:
    """A look tells that it is gone, and not since when; its own log tells that it was there."""
    events = [of_broker(EventKind.BROKER_STARTED, 9, NOW - MINUTE)]
    cluster = cluster_of([a_view(0, 1, (1, 9))], events, [a_broker(1)])
    (outage,) = cluster.outages[9]
    assert (outage.since, outage.until) == (None, None)
    assert (outage.at_earliest, outage.at_latest) == (NOW - MINUTE, outage.seen)
    assert outage.seen is not None
    assert outage.seen > NOW - MINUTE


def test_controllers_are_no_brokers() -> None:
    """Their logs start and stop like a broker's; they hold no partition."""
    events = [of_broker(EventKind.BROKER_STARTED, 100, NOW - MINUTE)]
    assert alive(cluster_of(told_by_tool((1, "1,2", "1,2")), events)) == {1: True, 2: True}


def test_the_quorum_tells_when_a_broker_was_last_there_and_not_whether_it_is() -> None:
    """It answers for five minutes after a broker's last fetch. Its own members are no brokers."""
    quorum = [BrokerView(node, at=NOW - 20 * SECOND, source=QUORUM) for node in (2, 100)]
    rows = [a_broker(1), a_broker(2, False), *quorum]
    cluster = cluster_of([a_view(0, 1, (1, 2), (1,))], brokers=rows)
    assert alive(cluster) == {1: True, 2: False}
    (outage,) = cluster.outages[2]
    assert (outage.at_earliest, outage.until) == (NOW - 20 * SECOND, None)


def test_the_quorum_does_not_revive_a_broker_that_a_survey_did_not_reach() -> None:
    """A broker that died a moment ago fetched a moment ago, by a clock that may be a little ahead."""
    quorum = [BrokerView(2, at=NOW + 1, source=QUORUM)]
    cluster = cluster_of([a_view(0, 1, (1, 2), (1,))], brokers=[a_broker(1), a_broker(2, False), *quorum])
    assert alive(cluster) == {1: True, 2: False}


def test_reports_of_one_moment_that_contradict_each_other_have_an_order() -> None:
    """A survey that contradicts itself, and a controller, at the same millisecond: that ended a repair."""
    reports = [_Report(5, 2, alive, "", "") for alive in (True, None, False)]
    assert [report.alive for report in sorted(reports, key=_order)] == [False, None, True]


def test_a_partition_that_is_led_and_has_no_replicas_ends_nothing() -> None:
    """No broker says so; a damaged description can."""
    assert 1 in alive(cluster_of(told_by_tool((1, "", ""), (1, "1,2", "1"), (2, "2,1", "2"))))
