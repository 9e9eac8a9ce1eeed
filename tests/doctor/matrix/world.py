"""A real cluster with topics, a producer, and the processes of two hosts with members."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kelpie.real import ports
from tests.doctor.matrix import connect, streams
from tests.doctor.matrix.cluster import AUDITOR, BROKERS, MatrixCluster
from tests.doctor.matrix.kinds import (
    ARCHIVE,
    CONNECT,
    COUNTS,
    INVOICES,
    LINES,
    OLD_GROUP,
    STATES,
    STREAMS,
    TOPIC,
    WITH_JAVA,
    kinds_of,
)

PARTITIONS = 4
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}
_LIMIT_S = 60.0
_ROOT = Path(__file__).parents[3]


class World:
    def __init__(self, cluster: MatrixCluster) -> None:
        self.cluster = cluster
        self.kinds = kinds_of(cluster.release.version)
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.hosts: dict[int, list[subprocess.Popen[bytes]]] = {}
        self._over = Event()
        self._writer = Thread(target=self._write, daemon=True)
        self._examined = 0
        self._worker_ports = ports.free(2)

    # What situations do.

    def let_pass(self, moments: int) -> None:
        """Comes back when the doctor has looked so many times more."""
        end = self._examined + moments
        self._wait(lambda: self._examined >= end, _LIMIT_S + 10 * moments)

    def deploy(self, number: int) -> None:
        """Starts the processes with one member of each group."""
        kinds = ",".join(sorted(self.kinds - WITH_JAVA))
        command = [sys.executable, "-m", "tests.doctor.matrix.members", self.servers, str(number), kinds]
        self.hosts[number] = [subprocess.Popen(command, stdin=subprocess.PIPE, cwd=_ROOT)]
        in_java = {CONNECT: connect.worker(self.cluster, number, self._worker_ports[number])}
        if STREAMS in self.kinds:
            in_java[STREAMS] = streams.application(self.cluster, number)
        for name, command in in_java.items():
            with (self.cluster.root / f"{name}-{number}.log").open("ab") as log:
                self.hosts[number].append(subprocess.Popen(command, stdout=log, stderr=log))

    def retire(self, number: int) -> None:
        """Ends them as a deployment does."""
        processes = self.hosts.pop(number)
        for process in processes:
            process.send_signal(signal.SIGTERM)
        self._await_end(processes)

    def stop(self, number: int) -> None:
        """They live, and do nothing any more."""
        for process in self.hosts[number]:
            process.send_signal(signal.SIGSTOP)

    def pause(self, number: int, seconds: float) -> None:
        """They do nothing for so long, whatever the doctor takes for a look."""
        self.stop(number)
        end = time.monotonic() + seconds
        self._wait(lambda: time.monotonic() >= end, _LIMIT_S + seconds)
        for process in self.hosts[number]:
            process.send_signal(signal.SIGCONT)

    @staticmethod
    def _await_end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            process.wait(_LIMIT_S)
            if process.stdin is not None:
                process.stdin.close()

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

    def allow_auditor(self, groups: Iterable[str], topics: Iterable[str]) -> None:
        """To describe these; and to see the cluster."""
        names = [(ResourceType.GROUP, group) for group in groups]
        names += [(ResourceType.TOPIC, topic) for topic in topics]
        names.append((ResourceType.BROKER, "kafka-cluster"))
        rights = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{AUDITOR}",
                "*",
                AclOperation.DESCRIBE,
                AclPermissionType.ALLOW,
            )
            for kind, name in names
        ]
        for created in self.admin.create_acls(rights).values():
            created.result(_LIMIT_S)

    def replace_broker(self, old: int, new: int) -> None:
        """Moves all replicas of a broker to another one."""
        replicas = {
            (name, row.id): [new if node == old else node for node in row.replicas]
            for name, topic in self.admin.list_topics(timeout=_LIMIT_S).topics.items()
            for row in topic.partitions.values()
            if old in row.replicas
        }
        self.cluster.reassign(replicas)
        self.until_whole()

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
            connect.start_sink(self._worker_ports[0])
            yield
        finally:
            self._over.set()
            self._writer.join(_LIMIT_S)
            for processes in self.hosts.values():
                for process in processes:
                    process.kill()
                self._await_end(processes)

    def examined(self) -> None:
        """The doctor has looked once more."""
        self._examined += 1

    def _prepare(self) -> None:
        for topic in (TOPIC, INVOICES, ARCHIVE, *((LINES, COUNTS) if STREAMS in self.kinds else ())):
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
            written = [(TOPIC, None), (STATES, str(number % 7))]
            if STREAMS in self.kinds:
                written.append((LINES, None))
            for topic, key in written:
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
