"""kcat against the lab and against Kafka 4.3.1."""

import json
import signal

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.drivers.kcat import MANY, Kcat, Running
from tests.lab.clients.scenarios.scenario import name, numbered, values

GROUP_OPTIONS = (
    *("-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=1500", "-X", "heartbeat.interval.ms=200"),
    *("-q", "-J", "-u"),
)


@pytest.fixture
def tool(kcat: str, kafka: Kafka) -> Kcat:
    return Kcat(kcat, kafka.bootstrap_servers)


@pytest.mark.parametrize(
    "options",
    [
        ("-X", "acks=0"),
        ("-X", "acks=1"),
        ("-X", "acks=all"),
        ("-X", "enable.idempotence=true"),
        ("-z", "gzip"),
        ("-z", "snappy"),
        ("-z", "lz4"),
        ("-z", "zstd"),
    ],
    ids=" ".join,
)
def test_lines_arrive_as_records(kafka: Kafka, tool: Kcat, options: tuple[str, ...]) -> None:
    """Any acks and any compression."""
    topic = kafka.create_topic()
    tool.produce(topic, numbered(50), *options)
    kafka.wait_until(lambda: len(tool.consume(topic)) >= 50)  # With acks below all, replicas come later.
    messages = tool.consume(topic)
    assert values(messages) == numbered(50)
    assert [message.offset for message in messages] == list(range(50))


def test_keys_headers_and_nulls_come_back(kafka: Kafka, tool: Kcat) -> None:
    """-K splits the key off, -Z makes nothing of nothing, -H adds headers."""
    topic = kafka.create_topic()
    tool.produce(topic, [b"a:1", b"b:"], "-K", ":", "-Z", "-H", "farm=north", "-H", "farm=south")
    headers = (("farm", b"north"), ("farm", b"south"))
    assert [(it.key, it.value, it.headers) for it in tool.consume(topic)] == [
        (b"a", b"1", headers),
        (b"b", None, headers),
    ]


def test_reading_begins_and_ends_where_it_is_told_to(kafka: Kafka, tool: Kcat) -> None:
    """By offset, counted from the end, and by time; -Q asks for the offset of a time."""
    topic = kafka.create_topic()
    for value in numbered(5):
        tool.produce(topic, [value])
    times = [message.timestamp_ms for message in tool.consume(topic)]
    assert values(tool.consume(topic, "-o", "3")) == numbered(2, 3)
    assert values(tool.consume(topic, "-o", "-1")) == numbered(1, 4)
    assert values(tool.consume(topic, "-o", "end")) == []
    assert values(tool.consume(topic, "-o", f"s@{times[2]}")) == numbered(3, 2)
    assert values(tool.consume(topic, "-o", f"s@{times[1]}", "-o", f"e@{times[3]}")) == numbered(2, 1)
    assert tool.run("-Q", "-t", f"{topic}:0:{times[2]}") == f"{topic} [0] offset 2\n".encode()


def test_metadata_is_listed(kafka: Kafka, tool: Kcat) -> None:
    """Brokers, controller, leaders and replicas, as JSON."""
    topic = kafka.create_topic(partitions=3)
    listed = json.loads(tool.run("-L", "-J", "-t", topic))
    (described,) = listed["topics"]
    assert sorted(broker["id"] for broker in listed["brokers"]) == [1, 2, 3]
    assert {it["partition"]: it["leader"] for it in described["partitions"]} == kafka.leaders(topic)
    assert all(len(it["replicas"]) == len(it["isrs"]) == 3 for it in described["partitions"])


def test_group_shares_partitions_goes_on_and_survives_a_killed_member(kafka: Kafka, tool: Kcat) -> None:
    """Two processes, a guest comes and goes; one is killed, the other takes over; another goes on then."""
    topic, group = kafka.create_topic(partitions=4), name("group")

    def read(*members: Running) -> list[bytes]:
        return sorted(value for member in members for value in values(member.read()) if value)

    with tool.running("-G", group, *GROUP_OPTIONS, topic) as first:
        with tool.running("-G", group, *GROUP_OPTIONS, topic) as second:
            kafka.wait_until(lambda: kafka.is_stable(group, members=2))
            for partition in range(4):
                tool.produce(topic, numbered(5, partition * 5), "-p", str(partition))
            kafka.wait_until(lambda: read(first, second) == numbered(20))
            assert read(first)
            assert read(second)
            with tool.running("-G", group, *GROUP_OPTIONS, topic) as guest:
                # They commit every five seconds, which cannot be changed, and when they hand over partitions.
                kafka.wait_until(lambda: kafka.is_stable(group, members=3))
                guest.end(signal.SIGTERM)
            kafka.wait_until(lambda: kafka.is_stable(group, members=2))
            assert sum(kafka.committed(group).values()) == 20
            second.end(signal.SIGKILL)
            kafka.wait_until(lambda: kafka.is_stable(group, members=1))
            before = len(read(first))
            tool.produce(topic, [b"a"], "-p", "0")
            tool.produce(topic, [b"b"], "-p", "3")
            kafka.wait_until(lambda: read(first)[before:] == [b"a", b"b"])
        first.end(signal.SIGTERM)
    kafka.wait_until(lambda: kafka.group(group).group_state == "Empty")
    tool.produce(topic, [b"c"], "-p", "1")
    with tool.running("-G", group, *GROUP_OPTIONS, topic) as third:
        kafka.wait_until(lambda: read(third))
        assert read(third) == [b"c"]


def test_transaction_is_committed_at_the_end_of_input_and_one_left_open_by_the_successor_aborted(
    kafka: Kafka, tool: Kcat
) -> None:
    """What was aborted is in the log, and readers of committed records do not see it."""
    topic = kafka.create_topic()
    transactional = ("-X", f"transactional.id={name('tx')}")
    uncommitted = ("-X", "isolation.level=read_uncommitted")
    with tool.running("-P", "-t", topic, *transactional) as producer:
        producer.send(numbered(MANY))
        kafka.wait_until(lambda: tool.consume(topic, *uncommitted))
        producer.end(signal.SIGKILL)
    assert values(tool.consume(topic)) == []
    tool.produce(topic, [b"committed"], *transactional)

    kafka.wait_until(lambda: values(tool.consume(topic)) == [b"committed"])
    everything = values(tool.consume(topic, *uncommitted))
    assert everything == [*numbered(len(everything) - 1), b"committed"]
