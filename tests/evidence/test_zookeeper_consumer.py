"""What the consumer of Kafka 0.8 writes, and ZooKeeper about it."""

from pathlib import Path

import pytest

from kelpie.doctor.cases import build
from kelpie.evidence import read_evidence
from kelpie.evidence.logs import read_log
from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, told

MEMBER = "orders_app-01-1794780689638-2187e03d"
TRACE = (
    f"kafka.common.ConsumerRebalanceFailedException: {MEMBER} can't rebalance after 4 retries",
    "\tat kafka.consumer.ZookeeperConsumerConnector$ZKRebalancerListener.syncedRebalance(Z.scala:633)",
)


@pytest.mark.parametrize(
    ("message", "form"),
    [
        (f"[{MEMBER}], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)", "watcher"),
        ("Error processing message, stopping consumer:  (kafka.tools.ConsoleConsumer$)", "start-up"),
        ("Error handling event ZkEvent[New session event sent to k.Z@31df] (o.ZkEventThread)", "new session"),
    ],
)
def test_a_rebalance_that_failed_names_its_member_and_the_thread(message: str, form: str) -> None:
    """The thread decides whether anybody hears of it."""
    (event,) = events_of(f"[2026-11-15 22:11:40,090] ERROR {message}", *TRACE)
    assert event.kind is Kind.REBALANCE_FAILED
    assert told(event) == {
        "group": "orders",
        "member": MEMBER,
        "reason": f"{MEMBER} can't rebalance after 4 retries",
        "form": form,
        "retries": "4",
    }


def test_a_try_that_failed_is_no_failure() -> None:
    """It is tried again."""
    failed = (
        "Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered"
    )
    (event,) = events_of(f"[2026-11-15 22:11:40,090] INFO [{MEMBER}], {failed} (kafka.consumer.Z)")
    assert event.kind is Kind.ZK_ATTEMPT_FAILED


OTHER = "orders_app-02-1794780690852-3b68a575"


@pytest.mark.parametrize(
    ("message", "kind", "facts"),
    [
        (f"[{MEMBER}], end registering consumer {MEMBER} in ZK", Kind.ZK_REGISTERED, {}),
        (f"[{MEMBER}], begin rebalancing consumer {MEMBER} try #1", Kind.ZK_ATTEMPT, {"attempt": "1"}),
        (f"[{MEMBER}], Releasing partition ownership", Kind.ZK_RELEASED, {}),
        (
            f"Consumer {MEMBER} rebalancing the following partitions: ArrayBuffer(0, 1, 2) for topic "
            f"events with consumers: List({MEMBER}-0, {OTHER}-0)",
            Kind.ZK_COMPUTED,
            {"topic": "events", "partitions": "0,1,2", "threads": f"{MEMBER}-0,{OTHER}-0"},
        ),
        (
            f"[{MEMBER}], {MEMBER}-0 successfully owned partition 1 for topic events",
            Kind.ZK_CLAIMED,
            {"topic": "events", "partition": 1, "thread": f"{MEMBER}-0"},
        ),
        (
            f"conflict in /consumers/orders/owners/events/2 data: {MEMBER}-0 stored data: {OTHER}-0",
            Kind.ZK_CONFLICT,
            {"topic": "events", "partition": 2, "thread": f"{MEMBER}-0", "holder": f"{OTHER}-0"},
        ),
        (
            f"[{MEMBER}], Consumer {MEMBER} selected partitions : events:0: fetched offset = 13: consumed "
            "offset = 13,events:1: fetched offset = -1: consumed offset = -1",
            Kind.ZK_REBALANCED,
            {"partitions": "events-0,events-1"},
        ),
        (f"[{MEMBER}], Consumer {MEMBER} selected partitions : ", Kind.ZK_REBALANCED, {"partitions": ""}),
        (
            f"[{MEMBER}], ZK expired; release old broker parition ownership; re-register consumer {MEMBER}",
            Kind.ZK_SESSION_EXPIRED,
            {},
        ),
        (f"[{MEMBER}], no brokers found when trying to rebalance.", Kind.ZK_NO_BROKERS, {}),
        (f"[{MEMBER}], ZKConsumerConnector shutting down", Kind.ZK_CLOSING, {}),
        (
            f"[{MEMBER}], ZKConsumerConnector shutdown completed in 25 ms",
            Kind.ZK_CLOSED,
            {"duration_ms": "25"},
        ),
    ],
)
def test_each_line_of_a_rebalance_has_its_meaning(message: str, kind: Kind, facts: dict[str, object]) -> None:
    """With the member, and its group, which stands in front of the member's id."""
    (event,) = events_of(
        f"[2026-11-15 22:11:40,090] INFO {message} (kafka.consumer.ZookeeperConsumerConnector)"
    )
    assert event.kind is kind
    assert told(event) == {"group": "orders", "member": MEMBER, **facts}


@pytest.mark.parametrize(
    ("message", "kind", "facts"),
    [
        (
            "Expiring session 0x1a1e143d7d80008, timeout of 30000ms exceeded",
            Kind.ZK_SERVER_EXPIRED,
            {"session": "0x1a1e143d7d80008", "timeout_ms": "30000"},
        ),
        (
            "Invalid session 0x1a for client /127.0.0.1:40372, probably expired",
            Kind.ZK_SERVER_RETURNED,
            {"session": "0x1a", "client": "/127.0.0.1:40372"},
        ),
        (
            "Got user-level KeeperException when processing sessionid:0x1a type:create cxid:0x2 zxid:0x5 "
            "txntype:-1 reqpath:n/a Error Path:/consumers/orders/owners/events/2 Error:KeeperErrorCode = "
            "NodeExists for /consumers/orders/owners/events/2",
            Kind.ZK_SERVER_CONFLICT,
            {"group": "orders", "session": "0x1a", "topic": "events", "partition": 2},
        ),
    ],
)
def test_zookeepers_own_log_has_sessions_and_conflicts(
    message: str, kind: Kind, facts: dict[str, object]
) -> None:
    """Without any name but that in a path."""
    (event,) = events_of(
        f"[2026-11-15 22:12:08,001] INFO {message} (org.apache.zookeeper.server.ZooKeeperServer)"
    )
    assert event.kind is kind
    assert told(event) == facts


def test_a_parent_that_exists_already_is_no_conflict() -> None:
    """Brokers and consumers create the nodes above theirs, whether they are there or not."""
    line = (
        "Got user-level KeeperException when processing sessionid:0x1a type:create cxid:0x2 zxid:0x5 "
        "txntype:-1 reqpath:n/a Error Path:/consumers/orders/owners Error:KeeperErrorCode = NodeExists for "
        "/consumers/orders/owners"
    )
    assert events_of(f"[2026-11-15 22:12:08,001] INFO {line} (org.apache.zookeeper.server.Z)") == []


def test_a_group_with_an_underscore_is_known_by_its_setting() -> None:
    """The consumer logs its settings before it connects; consumer.id may be of any form."""
    lines = [
        "Property consumer.id is overridden to node_7 (kafka.utils.VerifiableProperties)",
        "Property group.id is overridden to my_group (kafka.utils.VerifiableProperties)",
        "Property rebalance.max.retries is overridden to 2 (kafka.utils.VerifiableProperties)",
        "[my_group_node_7], Connecting to zookeeper instance at zk:2181 (kafka.consumer.Z)",
        "[my_group_node_7], Releasing partition ownership (kafka.consumer.Z)",
    ]
    reading = read_log([f"[2026-11-15 22:11:40,090] INFO {line}" for line in lines], "app.log")
    (event,) = reading.observations.events
    assert event.member == "my_group_node_7"
    _, (case,) = build(reading.observations)
    assert (case.group, case.in_zookeeper, len(case.events)) == ("my_group", True, 1)
    assert ("consumer my_group_node_7", "rebalance.max.retries", "2") in {
        (row.of, row.name, row.value) for row in reading.observations.settings
    }
    assert reading.observations.known_groups == {}


@pytest.mark.parametrize(
    "mark", ["zookeeper.connect", "zookeeper.session.timeout.ms", "rebalance.max.retries"]
)
def test_settings_of_a_consumer_are_known_without_zookeeper_connect(mark: str, tmp_path: Path) -> None:
    """The console consumer has that one on its command line, and not in its file."""
    (tmp_path / "c.properties").write_text(f"group.id=g\nconsumer.id=c\n{mark}=4711\n")
    (tmp_path / "other.properties").write_text("group.id=h\nsession.timeout.ms=4711\n")
    settings = read_evidence([tmp_path]).settings
    assert {(row.of, row.name) for row in settings} >= {("consumer g_c", "group.id")}
    assert not [row for row in settings if row.of.startswith("consumer h") or row.of == "group h"]
