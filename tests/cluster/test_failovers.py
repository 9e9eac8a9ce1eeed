"""Whether a partition is failing over: brokers that are away or just back, leaders that just moved."""

from kelpie.cluster import ClusterView, build_cluster
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, BrokerView, Observations
from kelpie.observations.earlier import EARLIER_SURVEY
from tests.doctor.building import MINUTE, NOW, SECOND, a_broker, a_view

HOME = TopicPartition(OFFSETS_TOPIC, 0)
ORDERS = TopicPartition("orders", 0)


def _earlier(node: int, alive: bool, at: int) -> BrokerView:
    return BrokerView(node, alive=alive, at=at, source=EARLIER_SURVEY)


def _cluster(*earlier: BrokerView, epoch: int = 5, before: tuple[tuple[int, int], ...] = ()) -> ClusterView:
    """Brokers 1 and 2 are alive. `before`: epochs of the coordinator that earlier surveys saw, and when."""
    partitions = [
        *(a_view(0, 1, told_by=None, at=at, leader_epoch=old) for at, old in before),
        a_view(0, 1, leader_epoch=epoch),
        a_view(0, 3, replicas=(3,), topic="orders"),
    ]
    brokers = [*earlier, a_broker(1), a_broker(2), a_broker(3)]
    return build_cluster(Observations(brokers=brokers, partitions=partitions), now=NOW)


def test_after_a_broker_is_back_its_clients_have_a_minute_to_find_it() -> None:
    """Only where it has replicas. Long after its return it is as any other."""
    gone = _earlier(2, False, NOW - 30 * SECOND)
    cluster = _cluster(_earlier(2, True, NOW - MINUTE), gone, _earlier(2, True, NOW - 20 * SECOND))
    assert cluster.is_failing_over(HOME)
    assert not cluster.is_failing_over(ORDERS)
    assert cluster.is_alive(2)
    (outage,) = cluster.outages[2]
    assert (outage.at_earliest, outage.at_latest, outage.until) == (NOW - MINUTE, gone.at, NOW - 20 * SECOND)
    cluster = _cluster(_earlier(2, False, NOW - 3 * MINUTE), _earlier(2, True, NOW - MINUTE))
    assert not cluster.is_failing_over(HOME)


def test_a_coordinator_that_has_just_moved_is_failing_over() -> None:
    """Also where no survey saw a broker away: a restart is quick."""
    assert _cluster(before=((NOW - 10 * SECOND, 4),)).is_failing_over(HOME)
    assert _cluster(before=((NOW - 90 * SECOND, 4), (NOW - 50 * SECOND, 5))).is_failing_over(HOME)
    moved_long_ago = ((NOW - 5 * MINUTE, 4), (NOW - 2 * MINUTE, 5), (NOW - 10 * SECOND, 5))
    assert not _cluster(before=moved_long_ago).is_failing_over(HOME)


def test_without_earlier_surveys_nothing_shows_that_anything_moved() -> None:
    """A first look; and brokers before 2.1 tell no leader epochs."""
    assert not _cluster().is_failing_over(HOME, ORDERS)
    assert not _cluster(epoch=-1, before=((NOW - 10 * SECOND, -1),)).is_failing_over(HOME)


def test_a_broker_that_was_taken_out_of_the_cluster_is_not_dead() -> None:
    """Only earlier surveys know it: no broker lists it, and no partition has a replica on it."""
    cluster = _cluster(_earlier(4, True, NOW - MINUTE), BrokerView(4, "kafka-4", 9092, source=EARLIER_SURVEY))
    assert cluster.dead_brokers == ()
    assert sorted(cluster.brokers) == [1, 2, 3]
