"""A real cluster of three brokers with topics, a producer, and two processes of members."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kelpie.real.cluster import RealCluster
from tests.doctor.matrix.members import ARCHIVE, INVOICES, STATES, TOPIC

VERSION = "4.3.1"
BROKERS = 3
PARTITIONS = 4
OLD_GROUP = "old"
CONFIG = {
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 8,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": 3,
    "min.insync.replicas": 2,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1000,
    "log.cleaner.backoff.ms": 500,
}
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}
_LIMIT_S = 60.0
_ROOT = Path(__file__).parents[3]


class World:
    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.hosts: dict[int, subprocess.Popen[bytes]] = {}
        self._over = Event()
        self._writer = Thread(target=self._write, daemon=True)
        self._examined = 0

    # What situations do.

    def let_pass(self, moments: int) -> None:
        """Comes back when the doctor has looked so many times more."""
        end = self._examined + moments
        self._wait(lambda: self._examined >= end, _LIMIT_S + 10 * moments)

    def deploy(self, number: int) -> None:
        """Starts the process with one member of each group."""
        command = [sys.executable, "-m", "tests.doctor.matrix.members", self.servers, str(number)]
        self.hosts[number] = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=_ROOT)

    def retire(self, number: int) -> None:
        """Ends it as a deployment does."""
        self.hosts[number].send_signal(signal.SIGTERM)
        self.hosts.pop(number).wait(_LIMIT_S)

    def pause(self, number: int) -> None:
        self.hosts[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        self.hosts[number].send_signal(signal.SIGCONT)

    def create(self, topic: str, config: Mapping[str, str] | None = None) -> None:
        """Tries again while a topic of this name is being deleted."""
        new = NewTopic(topic, PARTITIONS, BROKERS, config=dict(config or {}))

        def is_created() -> bool:
            (created,) = self.admin.create_topics([new]).values()
            return created.exception(_LIMIT_S) is None

        self._wait(is_created, _LIMIT_S)

    def delete(self, topic: str) -> None:
        (deleted,) = self.admin.delete_topics([topic]).values()
        deleted.result(_LIMIT_S)

    def add_partitions(self, topic: str, count: int) -> None:
        (grown,) = self.admin.create_partitions([NewPartitions(topic, count)]).values()
        grown.result(_LIMIT_S)

    def until_whole(self) -> None:
        """Waits until every partition has all of its replicas in sync."""

        def is_whole() -> bool:
            topics = self.admin.list_topics(timeout=_LIMIT_S).topics.values()
            rows = [row for topic in topics for row in topic.partitions.values()]
            return bool(rows) and all(len(row.isrs) == len(row.replicas) for row in rows)

        self._wait(is_whole, 2 * _LIMIT_S)

    # How it lives.

    @contextmanager
    def alive(self) -> Iterator[None]:
        self._prepare()
        self._writer.start()
        for number in (0, 1):
            self.deploy(number)
        try:
            yield
        finally:
            self._over.set()
            self._writer.join(_LIMIT_S)
            for host in self.hosts.values():
                host.kill()
                host.wait(_LIMIT_S)
                if host.stdin is not None:
                    host.stdin.close()

    def examined(self) -> None:
        """The doctor has looked once more."""
        self._examined += 1

    def _prepare(self) -> None:
        for topic in (TOPIC, INVOICES, ARCHIVE):
            self.create(topic)
        self.create(STATES, _COMPACTED)
        producer = self._producer()
        for number in range(40):
            producer.produce(ARCHIVE, b"v", partition=number % PARTITIONS)
        assert producer.flush(_LIMIT_S) == 0
        self._wait(self._commit_of_old_group, _LIMIT_S)

    def _commit_of_old_group(self) -> bool:
        """False while its coordinator is not there yet."""
        old = Consumer({"bootstrap.servers": self.servers, "group.id": OLD_GROUP, "log_level": 0})
        places = [TopicPartition(ARCHIVE, number, 10) for number in range(PARTITIONS)]
        try:
            old.commit(offsets=places, asynchronous=False)
        except KafkaException:
            return False
        finally:
            old.close()
        return True

    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "acks": "all", "log_level": 0})

    def _write(self) -> None:
        producer = self._producer()
        number = 0
        while not self._over.wait(0.05):
            number += 1
            for topic, key in ((TOPIC, None), (STATES, str(number % 7))):
                try:
                    producer.produce(topic, b"v", key)
                except (KafkaException, BufferError):  # The topic is gone, and nobody may write to it.
                    continue
            producer.poll(0)
        producer.flush(5)

    @staticmethod
    def _wait(condition: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"did not come true within {limit_s:.0f} s")
            time.sleep(0.1)
