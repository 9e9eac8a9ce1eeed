"""Nodes as Kafka 0.8.2.2 writes and reads them."""

import json

import pytest

from kelpie.zookeeper.config import PatternKind, Subscription
from kelpie.zookeeper.nodes import (
    Broker,
    UnreadableNode,
    consumer_id,
    read_broker,
    read_offset,
    read_partitions,
    read_registration,
    registration,
)

RECORDED = (
    b'{"version":1,"subscription":{"orders-events":1},"pattern":"white_list","timestamp":"1794780690527"}'
)


def test_a_registration_is_written_byte_for_byte_as_by_0_8_2_2() -> None:
    """Kafka's consumers parse it; the value is one that a real console consumer wrote."""
    subscription = Subscription({"orders-events": 1}, PatternKind.WHITE_LIST)
    assert registration(subscription, 1794780690527) == RECORDED
    assert read_registration("/x", RECORDED) == subscription


def test_a_pattern_is_escaped_as_0_8_2_2_escapes_it() -> None:
    """Utils.JSONEscapeString also escapes the slash."""
    pattern = 'a/b\\.\t"|\x01'
    value = registration(Subscription({pattern: 2}, PatternKind.BLACK_LIST), 1)
    assert b'"a\\/b\\\\.\\t\\"|\\u0001":2' in value
    assert json.loads(value)["subscription"] == {pattern: 2}
    assert read_registration("/x", value).threads == {pattern: 2}


def test_a_consumer_is_named_as_by_0_8_2_2() -> None:
    """group_host-millis-hex: the default if consumer.id is not set."""
    assert consumer_id("g", "host-1", 1794780686637, 0x8FBFAF34) == "g_host-1-1794780686637-8fbfaf34"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"subscription":{"t":1}}',
        b'{"subscription":3,"pattern":"static"}',
        b'{"subscription":{"(":1},"pattern":"white_list"}',
        b'{"subscription":{"t":1},"pattern":"odd"}',
    ],
)
def test_a_value_that_is_no_registration_is_named(value: bytes) -> None:
    """Anyone may write there: no other exception may escape."""
    with pytest.raises(UnreadableNode, match="/consumers/g/ids/c"):
        read_registration("/consumers/g/ids/c", value)


def test_brokers_topics_and_offsets_are_read() -> None:
    """Values of 0.8.2 and of 0.9, which adds endpoints."""
    new = b'{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:1"],"host":"h","version":2,"port":1}'
    assert read_broker("/brokers/ids/7", new) == Broker(7, "h", 1)
    assert read_partitions("/t", b'{"version":1,"partitions":{"10":[1],"2":[1,0]}}') == (2, 10)
    assert read_offset("/o", b"42") == 42
    for read in (read_broker, read_partitions, read_offset):
        with pytest.raises(UnreadableNode):
            read("/n", b'{"partitions":3}')


def test_a_white_list_names_matching_topics_and_a_black_list_the_others() -> None:
    """The whole name must match, and Kafka's own topic is never meant."""
    existing = ["orders", "orders-2", "pay", "__consumer_offsets"]
    assert Subscription({"orders|p.*": 3}, PatternKind.WHITE_LIST).topics(existing) == {"orders": 3, "pay": 3}
    assert Subscription({"orders": 1}, PatternKind.BLACK_LIST).topics(existing) == {"orders-2": 1, "pay": 1}
