"""The Java client of Kafka 4.3.1 as Python tests use it: strings in, plain tuples out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from tests.lab.clients.clusters import Kafka
from tests.lab.java.jvm import KafkaJvm

_SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"
_DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer"


class Clients:
    """Producers and consumers of one cluster; those that are still open at the end are closed."""

    def __init__(self, java: KafkaJvm, kafka: Kafka) -> None:
        self._java = java
        self._kafka = kafka
        self._jvm = java.jvm
        self._open: list[JavaObject] = []

    def producer(self, settings: Mapping[str, object] | None = None) -> JavaObject:
        config = {"key.serializer": _SERIALIZER, "value.serializer": _SERIALIZER, "linger.ms": 0}
        return self._opened(self._clients.producer.KafkaProducer(self._config(config, settings)))

    def consumer(self, group: str | None = None, settings: Mapping[str, object] | None = None) -> JavaObject:
        config: dict[str, object] = {
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.max.wait.ms": 50,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
        }
        if group is not None:
            config["group.id"] = group
        return self._opened(self._clients.consumer.KafkaConsumer(self._config(config, settings)))

    def send(
        self, producer: JavaObject, topic: str, value: str, *, partition: int = 0, time_ms: int | None = None
    ) -> int:
        """Waits for the acknowledgement, and gives the offset."""
        record = self._clients.producer.ProducerRecord(topic, partition, time_ms, None, value)
        return int(producer.send(record).get().offset())

    def poll(self, consumer: JavaObject, wait_ms: int = 100) -> list[tuple[int, int, str]]:
        """Partition, offset and value of what came."""
        records = consumer.poll(self._jvm.java.time.Duration.ofMillis(wait_ms))
        return [(it.partition(), it.offset(), it.value()) for it in records.iterator()]

    def poll_for(self, consumer: JavaObject, count: int) -> list[tuple[int, int, str]]:
        """At least so many, in order."""
        got: list[tuple[int, int, str]] = []

        def enough() -> bool:
            got.extend(self.poll(consumer))
            return len(got) >= count

        self._kafka.wait_until(enough)
        return sorted(got)

    def read(self, topic: str, count: int, isolation: str = "read_uncommitted") -> list[tuple[int, str]]:
        """Offset and value of the records of partition 0, without a group."""
        consumer = self.consumer(settings={"isolation.level": isolation})
        consumer.assign([self.partition(topic, 0)])
        consumer.seekToBeginning([self.partition(topic, 0)])
        return [(offset, value) for _, offset, value in self.poll_for(consumer, count)]

    def partition(self, topic: str, number: int) -> JavaObject:
        return self._jvm.org.apache.kafka.common.TopicPartition(topic, number)

    def offset(self, value: int) -> JavaObject:
        return self._clients.consumer.OffsetAndMetadata(value)

    def close(self) -> None:
        while self._open:
            self._open.pop().close(self._jvm.java.time.Duration.ofSeconds(5))

    @property
    def _clients(self) -> Any:
        return self._jvm.org.apache.kafka.clients

    def _opened(self, client: JavaObject) -> JavaObject:
        self._open.append(client)
        return client

    def _config(self, ours: Mapping[str, object], given: Mapping[str, object] | None) -> JavaObject:
        values = {"bootstrap.servers": self._kafka.bootstrap_servers, **ours, **(given or {})}
        return self._java.properties(
            {
                name: str(value).lower() if isinstance(value, bool) else value
                for name, value in values.items()
                if value != ""
            }
        )


def numbers(partitions: Any) -> list[int]:
    return sorted(partition.partition() for partition in partitions)


@contextmanager
def throws(*names: str) -> Iterator[None]:
    """The block throws a Java exception of one of these classes, itself or as a cause."""
    with pytest.raises(Py4JJavaError) as caught:
        yield
    seen = []
    thrown = caught.value.java_exception
    while thrown is not None:
        seen.append(thrown.getClass().getSimpleName())
        thrown = thrown.getCause()
    assert set(seen) & set(names), str(caught.value)
