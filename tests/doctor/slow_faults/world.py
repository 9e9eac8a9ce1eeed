"""A real broker with the groups at work, and the doctor that looks at it from time to time."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kelpie.client.settings import Settings
from kelpie.doctor.case import Case
from kelpie.examination import Examination
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.store import Store
from tests.doctor.matrix.watching import Moment, Watching
from tests.doctor.slow_faults.course import Course
from tests.doctor.slow_faults.groups import POISON_OFFSET

EVERY_S = 30.0
_LIMIT_S = 60.0
_TICK_S = 0.5
_ROOT = Path(__file__).parents[3]


def a_patient_broker() -> RealCluster:
    """On a busy machine, neither the broker nor a member loses its session."""
    sessions = {"broker.session.timeout.ms": 120_000, "group.consumer.session.timeout.ms": 60_000}
    return RealCluster("4.3.1", config=sessions)


class World:
    def __init__(self, cluster: RealCluster, course: Course) -> None:
        self.servers = cluster.bootstrap_servers
        self.course = course
        self._over = Event()

    def watched(self, folder: Path) -> list[Moment]:
        """What the doctor sees in so long a time, with one store."""
        watching = Watching(Settings.of(self.servers), store=Store(folder)).repeated()
        moments: list[Moment] = []
        with self._at_work():
            self._await_work()
            end = time.monotonic() + 60 * self.course.minutes
            while time.monotonic() < end:
                examined = asyncio.run(watching.examine())
                moments.append(Moment(*watching.judged.pop(), examined.diagnosis.findings))
                self._over.wait(EVERY_S)
        return moments

    def _await_work(self) -> None:
        """Until each group has committed, and one is held up: all are older than the first look at them."""
        deadline = time.monotonic() + 2 * _LIMIT_S
        examination = Examination(Settings.of(self.servers))
        while lacking := self.course.groups - {
            case.group for case in asyncio.run(examination.examine()).cases if self._works(case)
        }:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not at work: {sorted(lacking)}")
            self._over.wait(1.0)

    def _works(self, case: Case) -> bool:
        held_up = case.committed.get(TopicPartition("payments", 0))
        if case.group == self.course.held_up:
            return held_up is not None and held_up.offset == POISON_OFFSET
        return bool(case.committed) and len(case.members or ()) >= self.course.members.get(case.group, 1)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._prepare()
        writer = Thread(target=self._write, daemon=True)
        writer.start()
        command = [sys.executable, "-m", "tests.doctor.slow_faults.members", self.course.name, self.servers]
        members = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=_ROOT)
        try:
            yield
        finally:
            self._over.set()
            writer.join(_LIMIT_S)
            members.kill()
            members.communicate()

    def _prepare(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        topics = [NewTopic(topic, len(rates), 1) for topic, rates in self.course.writes.items()]
        for created in admin.create_topics(topics).values():
            created.result(_LIMIT_S)
        # Members fetch little at a time, and a broker sends a whole batch at least.
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "linger.ms": 100,
                "batch.num.messages": 50,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        for topic, count in self.course.backlog.items():
            for number in range(count * len(self.course.writes[topic])):
                producer.produce(topic, b"v", partition=number % len(self.course.writes[topic]))
                if not number % 1000:
                    producer.poll(0.05)
        assert producer.flush(_LIMIT_S) == 0

    def _write(self) -> None:
        """As much as is due, whatever the machine has time for."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        begun = time.monotonic()
        written: dict[tuple[str, int], int] = {}
        while not self._over.wait(_TICK_S):
            for topic, rates in self.course.writes.items():
                for partition, rate in enumerate(rates):
                    due = int((time.monotonic() - begun) * rate)
                    for _ in range(due - written.get((topic, partition), 0)):
                        producer.produce(topic, b"v", partition=partition)
                    written[topic, partition] = due
            producer.poll(0)
        producer.flush(5)
