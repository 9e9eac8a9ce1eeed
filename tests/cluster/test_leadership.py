"""Who led a partition, as far as the witnesses tell, and when nobody did."""

from typing import Any

from kelpie.cluster import ClusterView, Outage
from kelpie.cluster.leadership import leaderless_periods, leaders
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, BrokerView, Event, EventKind, PartitionView

HOME = TopicPartition(OFFSETS_TOPIC, 0)


def seen(at: int, leader: int, told_by: int | None = None) -> PartitionView:
    return PartitionView(OFFSETS_TOPIC, 0, leader, (1, 2), (), told_by=told_by, at=at, source=f"survey {at}")


def cluster(now: int = 1000, **more: Any) -> ClusterView:
    brokers = {node: BrokerView(node, alive=True) for node in (1, 2)}
    return ClusterView(now=now, offsets_partitions=1, **{"brokers": brokers, **more})


def periods(view: ClusterView) -> list[tuple[int | None, int | None]]:
    rows = leaderless_periods(view, HOME)
    assert all(row.text for row in rows)
    return [(row.began, row.ended) for row in rows]


def nodes(view: ClusterView) -> list[int]:
    return [report.node for report in leaders(view, HOME)]


def lost_at(at: int) -> Event:
    details = {"leader": "-1"}
    return Event(
        EventKind.LEADER_CHANGED, at, "log:1", "no leader", topic=OFFSETS_TOPIC, partition=0, details=details
    )


def test_every_period_without_a_leader_is_found() -> None:
    """Those of last month, too, and not only the last one."""
    earlier = (seen(100, 1), seen(200, -1), seen(250, -1), seen(300, 2), seen(500, -1))
    view = cluster(earlier_views={HOME: earlier}, views={HOME: (seen(600, 2),)})
    assert periods(view) == [(200, 300), (500, 600)]
    assert nodes(view) == [1, -1, 2, -1, 2]


def test_brokers_that_were_away_together_tell_more_exactly() -> None:
    """A survey comes now and then; logs have the exact time."""
    away = {1: (Outage(1, 120, 290, text="1 is gone"),), 2: (Outage(2, 150, 270, text="2 is gone"),)}
    view = cluster(
        earlier_views={HOME: (seen(100, 1), seen(200, -1))}, views={HOME: (seen(300, 2),)}, outages=away
    )
    assert periods(view) == [(150, 270)]
    assert leaderless_periods(view, HOME)[0].text == "2 is gone"


def test_a_leader_that_was_followed_by_another_is_no_outage() -> None:
    """The death is known to the millisecond, the new leader only from the next survey."""
    away = {1: (Outage(1, 120, 290, text="1 is gone"),)}
    view = cluster(earlier_views={HOME: (seen(100, 1),)}, views={HOME: (seen(300, 2),)}, outages=away)
    assert periods(view) == []
    assert nodes(view) == [1, -1, 2]


def test_the_log_of_a_controller_counts() -> None:
    gone = lost_at(150)
    back = Event(EventKind.LEADER_CHANGED, 180, "log:2", "leader 2", topic=OFFSETS_TOPIC, partition=0, node=2)
    view = cluster(earlier_views={HOME: (seen(100, 1),)}, views={HOME: (seen(300, 2),)}, events=(gone, back))
    assert periods(view) == [(150, 180)]


def test_a_period_that_goes_on_has_no_end() -> None:
    dead = {node: BrokerView(node, alive=False) for node in (1, 2)}
    away = {1: (Outage(1, 120, text="1 is gone"),), 2: (Outage(2, 150, text="2 is gone"),)}
    view = cluster(
        earlier_views={HOME: (seen(100, 1),)}, views={HOME: (seen(200, -1),)}, outages=away, brokers=dead
    )
    assert periods(view) == [(150, None)]


def test_a_broker_that_has_not_heard_yet_makes_no_outage() -> None:
    """All are asked at once, and the newest epoch counts."""
    late = seen(300, -1, told_by=1)
    view = cluster(views={HOME: (late, seen(300, 2, told_by=2)._replace(leader_epoch=7))})
    assert periods(view) == []


def test_a_leader_that_is_dead_by_now_led_before() -> None:
    """Nobody saw it go; a survey that named it as the leader before was right."""
    away = {1: (Outage(1, None, 400, seen=300),)}
    view = cluster(earlier_views={HOME: (seen(100, 1), seen(200, 2))}, views={HOME: (seen(350, 1),)})
    assert nodes(view) == [1, 2, 1]
    view = cluster(
        earlier_views={HOME: (seen(100, 1), seen(200, 2))}, views={HOME: (seen(350, 1),)}, outages=away
    )
    assert nodes(view) == [1, 2, -1]


def test_the_end_of_a_cluster_is_no_outage() -> None:
    """The last broker gives up its partitions before it shuts down."""
    given_up = lost_at(990)
    view = cluster(views={HOME: (seen(300, 2),)}, events=(given_up,))
    assert periods(view) == []
    nobody_knows = cluster(views={HOME: (seen(300, 2),)}, events=(given_up,), brokers={})
    assert periods(nobody_knows) == [(990, None)]
