"""Clients of today that still speak to brokers of then: the life of a group, on the lab and on real Kafka."""

from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonPartition

from tests.lab.personas import personas
from tests.lab.personas.cluster import Cluster

VALUES = [b"a", b"b", b"c"]
API_VERSIONS = {"0.9": (0, 9), "2.8": (2, 8), "3.9": (3, 9)}


@pytest.fixture
def topic(cluster: Cluster) -> str:
    name = cluster.group
    cluster.has_topic(name, cluster.client())
    return name


def librdkafka(cluster: Cluster, **more: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": cluster.brokers.bootstrap_servers} | more
    if cluster.is_first:
        # It would wait ten seconds for an answer to ApiVersions that never comes.
        settings |= {"api.version.request": False, "broker.version.fallback": "0.9.0.1"}
    return settings


def read(consumer: Consumer, cluster: Cluster, count: int) -> list[Any]:
    found: list[Any] = []

    def enough() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message)
        return len(found) == count

    cluster.until(enough)
    return found


@personas()
def test_librdkafka_produces_consumes_and_commits(cluster: Cluster, topic: str) -> None:
    """confluent-kafka, with the settings that its manual names for brokers before 0.10."""
    producer = Producer(librdkafka(cluster))
    for value in VALUES:
        producer.produce(topic, value, key=b"k")
    assert producer.flush(60) == 0
    settings = librdkafka(
        cluster,
        **{"group.id": cluster.group, "auto.offset.reset": "earliest", "enable.auto.commit": False},
        **{"session.timeout.ms": 30_000, "heartbeat.interval.ms": 500},
    )
    first = Consumer(settings)
    first.subscribe([topic])
    messages = read(first, cluster, 3)
    assert [message.value() for message in messages] == VALUES
    first.commit(message=messages[1], asynchronous=False)
    first.close()
    second = Consumer(settings)
    second.subscribe([topic])
    assert [message.value() for message in read(second, cluster, 1)] == [b"c"]
    (committed,) = second.committed([TopicPartition(topic, 0)], timeout=60)
    assert committed.offset == 2
    second.close()


@personas()
def test_librdkafka_shares_partitions_between_two_members(cluster: Cluster, topic: str) -> None:
    """One gets the only partition, the other none; when the first leaves, the other takes over."""
    settings = librdkafka(
        cluster,
        **{"group.id": cluster.group, "auto.offset.reset": "earliest", "enable.auto.commit": False},
        **{"session.timeout.ms": 30_000, "heartbeat.interval.ms": 300},
    )
    members = [Consumer(settings), Consumer(settings)]
    try:
        for member in members:
            member.subscribe([topic])

        def assigned() -> list[int]:
            for member in members:
                message = member.poll(0.05)
                error = None if message is None else message.error()
                assert message is None or (error and error.code() == KafkaError._PARTITION_EOF)
            return [len(member.assignment()) for member in members]

        owner = cluster.until(assigned, lambda seen: sorted(seen) == [0, 1]).index(1)
        members.pop(owner).close()
        cluster.until(assigned, lambda seen: seen == [1])
    finally:
        for member in members:
            member.close()


@personas()
def test_kafka_python_produces_consumes_and_commits(cluster: Cluster, topic: str) -> None:
    """It is told the release, and then asks for nothing that the release does not know."""
    common: dict[str, Any] = {
        "bootstrap_servers": cluster.brokers.bootstrap_servers,
        "api_version": API_VERSIONS[cluster.persona],
    }
    with closing(KafkaProducer(**common)) as producer:
        for value in VALUES:
            producer.send(topic, value, partition=0).get(timeout=60)
    place = PythonPartition(topic, 0)
    consumer = {
        **common,
        "group_id": cluster.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "consumer_timeout_ms": 60_000,
        "session_timeout_ms": 30_000,
    }
    with closing(KafkaConsumer(topic, **consumer)) as first:
        assert [next(first).value for _ in VALUES] == VALUES
        first.commit({place: OffsetAndMetadata(1, "half", -1)})
        assert first.committed(place) == 1
    with closing(KafkaConsumer(topic, **consumer)) as second:
        assert [next(second).value for _ in VALUES[1:]] == VALUES[1:]
