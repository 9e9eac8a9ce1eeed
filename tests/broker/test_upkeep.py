"""Timers, and what brokers do from time to time."""

from kelpie.broker.timers import Timers
from tests.broker.clients import list_offset, produced
from tests.broker.driver import Cluster
from tests.broker.test_fetch import Producer

EARLIEST = -2


def test_timer_that_was_taken_away_does_not_run() -> None:
    """Not even when both were due at once and the other one ran first."""
    timers, ran = Timers(), []

    def first(now: int) -> None:
        ran.append("first")
        timers.cancel("second")

    timers.set("first", 5, first)
    timers.set("second", 5, lambda now: ran.append("second"))
    timers.run_due(5)
    assert ran == ["first"]
    assert timers.next_deadline() is None


def test_timer_that_is_set_again_moves() -> None:
    """The last word counts, sooner or later."""
    timers, ran = Timers(), []
    timers.set("it", 5, lambda now: ran.append(1))
    timers.set("it", 9, lambda now: ran.append(2))
    timers.run_due(5)
    assert (ran, timers.next_deadline(), timers.is_set("it")) == ([], 9, True)
    timers.run_due(9)
    assert (ran, timers.is_set("it")) == ([2], False)


def test_timer_that_sets_itself_for_now_does_not_loop() -> None:
    """It runs once a call."""
    timers, ran = Timers(), []

    def again(now: int) -> None:
        ran.append(now)
        timers.set("it", now, again)

    timers.set("it", 5, again)
    timers.run_due(7)
    timers.run_due(7)
    assert ran == [7, 7]


def test_retention_moves_the_beginning_of_every_replica() -> None:
    """retention.ms by segment, as the broker looks every five minutes."""
    cluster = Cluster()
    partition = cluster.create(config={"retention.ms": "60000", "segment.ms": "1000"})
    for _ in range(3):
        produced(cluster, partition, b"a")
        cluster.advance(2000)
    cluster.advance(600_000)
    assert list_offset(cluster, partition, EARLIEST).offset == 3
    assert {cluster.replica(node, partition).log.start_offset for node in (1, 2, 3)} == {3}
    assert produced(cluster, partition, b"b") == 3


def test_idle_producers_are_forgotten() -> None:
    """producer.id.expiration.ms: a broker does not remember every producer that ever was."""
    cluster = Cluster(settings={"producer.id.expiration.ms": "1000"})
    partition = cluster.create()
    producer = Producer(cluster, partition)
    producer.send(b"a")
    producer.end(committed=True)
    assert cluster.replica(1, partition).log.producers()
    cluster.advance(700_000)
    assert not cluster.replica(1, partition).log.producers()
