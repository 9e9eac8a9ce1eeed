"""What all scenarios share: a client, a cluster, and waiting with an end."""

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Client, Consumer, ConsumerOptions, Message, Producer, ProducerOptions

LIMIT_S = 90.0


class Scenario:
    """A test class of one client is made by naming the client."""

    client: Client

    def producer(self, kafka: Kafka, **options: Any) -> Producer:
        return self.client.producer(kafka.bootstrap_servers, ProducerOptions(**options))

    def consumer(self, kafka: Kafka, **options: Any) -> Consumer:
        return self.client.consumer(kafka.bootstrap_servers, ConsumerOptions(**options))

    def admin(self, kafka: Kafka) -> Any:
        return self.client.admin(kafka.bootstrap_servers)

    def fill(self, kafka: Kafka, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
        """Write values to the partitions in turn."""
        with self.producer(kafka) as producer:
            for partition, value in zip(itertools.cycle(range(partitions)), values):
                producer.send(topic, value, partition=partition)
            producer.flush()

    def read(
        self, kafka: Kafka, topic: str, count: int, partitions: int = 1, **options: Any
    ) -> list[Message]:
        """So many messages from the beginning of the partitions, without a group."""
        with self.consumer(kafka, **options) as consumer:
            consumer.assign(topic, dict.fromkeys(range(partitions), "earliest"))
            return take(consumer, count)

    def first_to_come(self, kafka: Kafka, topic: str, consumer: Consumer) -> list[Message]:
        """Write until the consumer sees some of it: it may not have found its place yet."""
        found: list[Message] = []
        deadline = time.monotonic() + LIMIT_S
        with self.producer(kafka) as producer:
            while not found:
                assert time.monotonic() < deadline, f"nothing came within {LIMIT_S} s"
                producer.send(topic, b"new")
                producer.flush()
                found = consumer.poll()
        return found


def name(what: str) -> str:
    """One that no other test uses."""
    return f"{what}-{uuid.uuid4().hex[:8]}"


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%05d" % number for number in range(first, first + count)]


def values(messages: Iterable[Message]) -> list[bytes]:
    """The values of messages, none of which is a tombstone."""
    values = [message.value for message in messages]
    assert None not in values, "a message has no value"
    return [value for value in values if value is not None]


def take(consumer: Consumer, count: int) -> list[Message]:
    """Poll until so many have come; more may have come with the last of them."""
    found: list[Message] = []
    poll_until([consumer], lambda: len(found) >= count, lambda _, message: found.append(message))
    return found


def poll_until(
    consumers: Sequence[Consumer],
    condition: Callable[[], object],
    on_message: Callable[[int, Message], object] = lambda _, __: None,
    limit_s: float = LIMIT_S,
) -> None:
    """Each consumer polls in a thread of its own, without a pause, until the condition holds.

    Most libraries rebalance only while they poll; kafka-python even begins anew, and so disturbs the others,
    when its answer comes while it does not.
    """
    enough = threading.Event()
    lock = threading.Lock()

    def poll(number: int) -> None:
        while not enough.is_set():
            for message in consumers[number].poll():
                with lock:
                    on_message(number, message)

    deadline = time.monotonic() + limit_s
    with ThreadPoolExecutor(len(consumers)) as pool:
        polling = [pool.submit(poll, number) for number in range(len(consumers))]
        try:
            while not condition():
                assert time.monotonic() < deadline, f"did not come true within {limit_s} s"
                assert not any(future.done() for future in polling), "a consumer gave up"
                time.sleep(0.02)
        finally:
            enough.set()
            for future in polling:
                future.result()


def share(consumers: Sequence[Consumer], partitions: int) -> bool:
    """Whether every partition has one owner among them, and every one of them has some."""
    owned = [consumer.assignment() for consumer in consumers]
    together = frozenset().union(*owned)
    return all(owned) and together == frozenset(range(partitions)) and sum(map(len, owned)) == partitions
