"""One member of each kind of group, in one process: `python -m tests.doctor.matrix.members SERVERS 0 KINDS`.

Two such processes make groups of two members. Those of the second one fetch from the replica in their own
rack (KIP-392). KINDS are names with commas between them. SIGTERM ends a process as a deployment does: members
leave their groups. It also ends when its standard input is closed, that is, with whoever started it.
"""

import signal
import sys
import time
from collections.abc import Callable, Container, Mapping
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer, TopicPartition

from tests.doctor.matrix.kinds import ARCHIVE, INVOICES, STATES, TOPIC

_COMMIT_MS = 1000
_LOOK_FOR_PARTITIONS_S = 3.0
_LIMIT_S = 30.0


def rack_of(node: int) -> str:
    """Each broker has a rack of its own."""
    return f"rack-{node}"


class Members:
    """`number` tells the two processes apart, also for static members and transactions."""

    def __init__(self, servers: str, number: int) -> None:
        self.servers = servers
        self.number = number
        self.over = Event()

    def consumer(self, group: str, **settings: object) -> Consumer:
        """Settings of librdkafka, with underscores for dots."""
        chosen = {
            "bootstrap.servers": self.servers,
            "group.id": group,
            "client.id": f"{group}-{self.number}",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": _COMMIT_MS,
            "topic.metadata.refresh.interval.ms": 3000,
            "log_level": 0,
            **({"client.rack": rack_of(2)} if self.number else {}),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        if chosen.get("group.protocol") != "consumer":
            chosen = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000, **chosen}
        return Consumer(chosen)

    def subscribed(self, group: str, topic: str = TOPIC, **settings: object) -> None:
        """Reads and commits until the end."""
        consumer = self.consumer(group, **settings)
        try:
            consumer.subscribe([topic])
            while not self.over.is_set():
                consumer.poll(0.2)
        finally:
            consumer.close()

    def manual(self) -> None:
        """Chooses its partitions itself, and looks for new ones from time to time."""
        consumer = self.consumer("manual")
        chosen: list[int] = []
        next_look = 0.0
        try:
            while not self.over.is_set():
                if time.monotonic() > next_look:
                    next_look = time.monotonic() + _LOOK_FOR_PARTITIONS_S
                    there = consumer.list_topics(TOPIC, timeout=_LIMIT_S).topics[TOPIC].partitions
                    mine = sorted(number for number in there if number % 2 == self.number)
                    if mine != chosen:
                        chosen = mine
                        consumer.assign([TopicPartition(TOPIC, number) for number in mine])
                consumer.poll(0.2)
        finally:
            consumer.close()

    def shared(self) -> None:
        """Acknowledges what it was given with the next poll."""
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "share",
            "client.id": f"share-{self.number}",
            "log_level": 0,
        }
        consumer = ShareConsumer(settings)
        try:
            consumer.subscribe([TOPIC])
            while not self.over.is_set():
                consumer.poll(0.2)
        finally:
            consumer.close()

    def transactional(self) -> None:
        """Reads orders and writes invoices; the offsets are committed with them."""
        consumer = self.consumer("transactional", enable_auto_commit=False, isolation_level="read_committed")
        settings = {
            "bootstrap.servers": self.servers,
            "transactional.id": f"billing-{self.number}",
            "transaction.timeout.ms": 10_000,
            "log_level": 0,
        }
        producer = Producer(settings)
        try:
            producer.init_transactions(_LIMIT_S)
            consumer.subscribe([TOPIC])
            while not self.over.is_set():
                messages = [each for each in consumer.consume(50, 1.0) if each.error() is None]
                if messages and not self.over.is_set():
                    _in_transaction(consumer, producer, len(messages))
        finally:
            consumer.close()

    def tasks(self) -> dict[str, Callable[[], None]]:
        """By group, what its member does."""
        return {
            "eager": lambda: self.subscribed("eager"),
            "cooperative": lambda: self.subscribed(
                "cooperative", partition_assignment_strategy="cooperative-sticky"
            ),
            "static": lambda: self.subscribed("static", group_instance_id=f"static-{self.number}"),
            "kip848": lambda: self.subscribed("kip848", group_protocol="consumer"),
            "manual": self.manual,
            "transactional": self.transactional,
            "committed": lambda: self.subscribed("committed", INVOICES, isolation_level="read_committed"),
            "compacted": lambda: self.subscribed("compacted", STATES),
            "quiet": lambda: self.subscribed("quiet", ARCHIVE),
            "share": self.shared,
        }

    def keep_up(self, task: Callable[[], None]) -> None:
        """Starts a member again when it fails, as whatever runs applications does."""
        while not self.over.is_set():
            try:
                task()
            except (KafkaException, KeyError):
                self.over.wait(1.0)

    def run(self, kinds: Container[str]) -> None:
        tasks = [task for kind, task in self.tasks().items() if kind in kinds]
        threads = [Thread(target=self.keep_up, args=(task,), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _in_transaction(consumer: Consumer, producer: Producer, count: int) -> None:
    positions = [place for place in consumer.position(consumer.assignment()) if place.offset >= 0]
    try:
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(INVOICES, b"v")
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _LIMIT_S)
        producer.commit_transaction(_LIMIT_S)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(_LIMIT_S)
        for place in consumer.committed(consumer.assignment(), timeout=_LIMIT_S):
            consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


def main(arguments: Mapping[int, str]) -> None:
    members = Members(arguments[1], int(arguments[2]))
    signal.signal(signal.SIGTERM, lambda *_: members.over.set())

    def until_closed() -> None:
        sys.stdin.read()
        members.over.set()

    Thread(target=until_closed, daemon=True).start()
    members.run(arguments[3].split(","))


if __name__ == "__main__":
    main(dict(enumerate(sys.argv)))
