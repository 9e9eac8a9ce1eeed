"""Which broker is asked when any will do."""

from kelpie.consumer.broker_connections import BrokerConnections
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.effects import BrokerNode
from tests.consumer.world import GONE, TOO_OLD

ONE, TWO, THREE = (BrokerNode(number, f"b{number}", 9092) for number in (1, 2, 3))
BOOT = BrokerNode(-1, "boot", 9092)


def _nodes(start: int = 0) -> BrokerConnections:
    config = ConsumerConfig(
        group_id="g", topics=("t",), reconnect_backoff_ms=50, reconnect_backoff_max_ms=200
    )
    nodes = BrokerConnections.at(config, [("boot", 9092)], lambda below: start % below)
    nodes.update({1: ("b1", 9092), 2: ("b2", 9092), 3: ("b3", 9092)})
    return nodes


def _connected(nodes: BrokerConnections, node: BrokerNode, under_way: int = 0) -> None:
    nodes.asked(node, 0)
    nodes.answered(node)
    for _ in range(under_way):
        nodes.asked(node, 0)


def test_bootstrap_serves_until_brokers_are_known() -> None:
    """There is nobody else to ask."""
    config = ConsumerConfig(group_id="g", topics=("t",))
    nodes = BrokerConnections.at(config, [("boot", 9092)], lambda below: 0)
    assert nodes.least_loaded(0) == BOOT
    nodes.update({1: ("b1", 9092)})
    assert nodes.least_loaded(0) == ONE


def test_connected_one_without_anything_under_way_is_taken() -> None:
    """Whatever the lot says: connecting anew costs time."""
    nodes = _nodes(start=1)
    _connected(nodes, THREE)
    assert nodes.least_loaded(0) == THREE


def test_fewest_under_way_wins_among_connected_ones() -> None:
    """That is what least loaded means."""
    nodes = _nodes()
    _connected(nodes, ONE, under_way=3)
    _connected(nodes, TWO, under_way=1)
    _connected(nodes, THREE, under_way=2)
    assert nodes.least_loaded(0) == TWO


def test_one_that_is_being_connected_comes_before_one_that_is_not() -> None:
    """Two connections to wait for are worse than one."""
    nodes = _nodes()
    nodes.asked(TWO, 0)
    assert nodes.least_loaded(0) == TWO


def test_oldest_attempt_comes_first_among_the_unconnected() -> None:
    """So that all get their turn."""
    nodes = _nodes()
    for at, node in ((30, ONE), (10, TWO), (20, THREE)):
        nodes.asked(node, at)
        nodes.unanswered(node, GONE, at)
    assert nodes.least_loaded(1_000) == TWO


def test_lot_decides_among_equals() -> None:
    """Otherwise every consumer would ask the same broker first."""
    assert [_nodes(start).least_loaded(0) for start in range(3)] == [ONE, TWO, THREE]


def test_failed_ones_are_left_alone_until_their_back_off_is_over() -> None:
    """It doubles; requests that fail together count once."""
    nodes = _nodes()
    nodes.update({1: ("b1", 9092)})
    now = 0
    for wait_ms in (50, 100, 200, 200):
        for _ in range(3):
            nodes.asked(ONE, now)
        for _ in range(3):
            nodes.unanswered(ONE, GONE, now)
        assert nodes.is_unavailable(ONE, now + wait_ms - 1)
        assert not nodes.is_unavailable(ONE, now + wait_ms)
        now += wait_ms


def test_bootstrap_serves_again_when_no_known_broker_can_be_had() -> None:
    """The cluster may have moved to other machines altogether."""
    nodes = _nodes()
    for node in (ONE, TWO, THREE):
        nodes.asked(node, 0)
        nodes.unanswered(node, GONE, 0)
    assert nodes.least_loaded(10) == BOOT
    nodes.asked(BOOT, 10)
    nodes.unanswered(BOOT, GONE, 10)
    assert nodes.least_loaded(20) is None
    assert nodes.next_free(20) == 50


def test_broker_that_does_not_speak_a_request_is_not_failed() -> None:
    """It answered, after all."""
    nodes = _nodes()
    nodes.asked(ONE, 0)
    nodes.unanswered(ONE, TOO_OLD, 0)
    assert not nodes.is_unavailable(ONE, 0)


def test_broker_that_moved_begins_anew() -> None:
    """What failed was the old address."""
    nodes = _nodes()
    nodes.asked(ONE, 0)
    nodes.unanswered(ONE, GONE, 0)
    nodes.update({1: ("elsewhere", 9092)})
    moved = nodes.broker(1)
    assert moved is not None
    assert not nodes.is_unavailable(moved, 0)
    assert nodes.broker(2) is None
