"""Kafka's own verifiable producer and consumer, and a transaction, go on while brokers die under them."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kelpie.real.keeper import Keeper
from kelpie.real.process import Jvm
from tests.lab.clients.clusters import Kafka
from tests.lab.java.clients import Clients
from tests.lab.java.jvm import KafkaJvm, Said


class Program:
    """A tool in a JVM of its own that tells in JSON what it does."""

    def __init__(self, process: Jvm) -> None:
        self._process = process

    def told(self, name: str) -> list[dict[str, Any]]:
        """The whole lines so far that tell of this."""
        lines = self._process.said().split("\n")[:-1]
        return [told for line in lines if line.startswith("{") and (told := json.loads(line))["name"] == name]

    def stop(self) -> None:
        """It finishes what it has begun."""
        self._process.signal(signal.SIGTERM)
        assert self._process.wait(60), self._process.tail()


@pytest.fixture
def program(java: KafkaJvm, kafka: Kafka, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    keeper = Keeper()
    started: list[Jvm] = []

    def start(name: str, *arguments: str) -> Program:
        command = [*java.command(f"org.apache.kafka.tools.{name}"), "--bootstrap-server"]
        started.append(
            Jvm.spawn(
                [*command, kafka.bootstrap_servers, *arguments],
                folder=tmp_path,
                log=tmp_path / name,
                errors=tmp_path / f"{name}-errors",
                keeper=keeper,
            )
        )
        return Program(started[-1])

    yield start
    for process in started:
        process.kill()
    keeper.clean()


def test_nothing_is_lost_when_leader_and_coordinator_die(
    kafka: Kafka, program: Callable[..., Program], tool: Callable[..., Said]
) -> None:
    """What was acknowledged stays where it was acknowledged; the group reads all of it and commits.

    The producer does not try again: what it sends while nobody leads may be lost, or may not.
    """
    topic, group = kafka.create_topic(), "survivors"
    producer = program("VerifiableProducer", "--topic", topic, "--throughput", "100")
    consumer = program(
        "VerifiableConsumer", "--topic", topic, "--group-id", group, "--verbose", "--session-timeout", "6000"
    )

    def acknowledged() -> set[tuple[int, str]]:
        return {(told["offset"], told["value"]) for told in producer.told("producer_send_success")}

    def read() -> set[tuple[int, str]]:
        return {(told["offset"], told["value"]) for told in consumer.told("record_data")}

    def committed() -> int:
        offsets = [
            told["offsets"][0]["offset"] for told in consumer.told("offsets_committed") if told["success"]
        ]
        return max(offsets, default=0)

    kafka.wait_until(lambda: committed() > 50)
    leader = kafka.leader_of(topic, 0)
    kafka.kill(leader)
    before = len(acknowledged())
    kafka.wait_until(lambda: len(acknowledged()) > before + 100)
    kafka.start(leader)
    kafka.wait_until(lambda: kafka.in_sync(topic) and kafka.in_sync("__consumer_offsets"))
    kafka.kill(kafka.coordinator_of(group))
    before = committed()
    kafka.wait_until(lambda: committed() > before + 100)
    producer.stop()
    end = int(tool("kafka-get-offsets", "--topic", topic).stdout.rpartition(":")[2])
    kafka.wait_until(lambda: committed() == end)

    assert acknowledged() <= read()
    assert sorted(offset for offset, _ in read()) == list(range(end))


def test_transaction_survives_its_coordinator(
    clients: Clients, kafka: Kafka, tool: Callable[..., Said]
) -> None:
    """Its state is in the log: the next coordinator knows of it and ends it."""
    topic = kafka.create_topic()
    name = f"steady-{topic}"
    producer = clients.producer({"transactional.id": name, "reconnect.backoff.max.ms": 200})
    producer.initTransactions()
    producer.beginTransaction()
    clients.send(producer, topic, "before")
    described = tool("kafka-transactions", "describe", "--transactional-id", name).stdout.splitlines()
    coordinator = int(described[1].split()[0])
    kafka.wait_until(lambda: kafka.in_sync(topic) and kafka.in_sync("__transaction_state"))

    kafka.kill(coordinator)
    clients.send(producer, topic, "after")
    producer.commitTransaction()

    assert [value for _, value in clients.read(topic, 2, "read_committed")] == ["before", "after"]
