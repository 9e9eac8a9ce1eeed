"""Records that a consumer could not read, in the words of Java's client, Streams and Spring."""

# ruff: noqa: E501 - lines of logs are quoted as they stand.

import pytest

from kelpie.evidence.logs import read_log
from kelpie.observations import EventKind

_AT = "2026-11-15 20:56:40,123 ERROR "
ENTRIES = [
    [
        "[NetworkClient] Uncaught error in request completion:",
        "org.apache.kafka.common.KafkaException: Error deserializing key/value for partition my.orders-1 at offset 155884487",
    ],
    [
        "[Worker] it went wrong",
        "org.apache.kafka.common.errors.SerializationException: Error deserializing key/value for partition my.orders-1 at offset 155884487. If needed, please seek past the record to continue consumption.",
    ],
    [
        "[Worker] it went wrong",
        "org.apache.kafka.common.errors.RecordDeserializationException: Error deserializing VALUE for partition my.orders-1 at offset 155884487. If needed, please seek past the record to continue consumption.",
        "Caused by: org.apache.kafka.common.errors.SerializationException: Unknown magic byte!",
    ],
    [
        "[Worker] it went wrong",
        "org.apache.kafka.common.KafkaException: Record batch for partition my.orders-1 at offset 155884487 is invalid, cause: Record is corrupt (stored crc = 1, computed crc = 2)",
    ],
    [
        "stream-thread [app-1-StreamThread-1] Exception caught during Deserialization, taskId: 0_1, topic: my.orders, partition: 1, offset: 155884487",
        "org.apache.kafka.common.errors.SerializationException: Size of data received by LongDeserializer is not 8",
    ],
    [
        "[Worker] it went wrong",
        "org.apache.kafka.common.errors.RecordTooLargeException: There are some messages at [Partition=Offset]: {my.orders-1=155884487} whose size is larger than the fetch size 1048576 and hence cannot be ever returned. Increase the fetch size, or decrease the maximum message size the broker will allow.",
    ],
    [
        "Backoff FixedBackOff{interval=0, currentAttempts=10, maxAttempts=9} exhausted for my.orders-1@155884487",
        "org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed",
    ],
    [
        "Backoff FixedBackOff{interval=0, currentAttempts=10, maxAttempts=9} exhausted for ConsumerRecord(topic = my.orders, partition = 1, leaderEpoch = 0, offset = 155884487, CreateTime = 1, key = null, value = x)",
        "org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed",
    ],
    [
        "Exception caught during Deserialization, topic: my.orders, partition: 1, offset: 155884487",
        "org.apache.kafka.common.errors.SerializationException: Size of data received by LongDeserializer is not 8",
    ],
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_place_of_the_record_is_read(entry: list[str]) -> None:
    """Topic, partition and offset, whoever wrote the line."""
    joined = f"{_AT}[Consumer clientId=c, groupId=billing] Adding newly assigned partitions: my.orders-1"
    lines = [joined, f"{_AT}{entry[0]}", *entry[1:], "\tat shop.Worker.run(Worker.java:7)"]
    _, event = read_log(lines, "client-billing.log").observations.events
    assert event.kind is EventKind.RECORD_UNREADABLE
    assert (event.topic, event.partition, event.offset) == ("my.orders", 1, 155884487)
    assert event.group == "billing"


def test_an_error_without_a_place_means_nothing() -> None:
    """A serializer of a producer fails with the same class."""
    lines = [
        f"{_AT}it went wrong",
        "org.apache.kafka.common.errors.SerializationException: Error serializing Avro message",
    ]
    assert not read_log(lines, "client-billing.log").observations.events
