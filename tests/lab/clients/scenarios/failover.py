"""A broker crashes while clients work; what was acknowledged stays, and nothing comes twice.

A story has three acts: the cluster is whole; the victim is down; it is back. Many stories share one crash,
for crashes take their time.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Client, Consumer, Message, Producer, Refused
from tests.lab.clients.drivers.kcat import MANY, Kcat
from tests.lab.clients.scenarios.scenario import (
    LIMIT_S,
    Scenario,
    name,
    numbered,
    poll_until,
    share,
    values,
)

BEFORE, TOTAL = 100, 400
PARTITIONS = 3
REBALANCE_IN_PROGRESS = 27


class Story(ABC):
    """`victim` leads a partition of its topic."""

    title: str

    def __init__(self, kafka: Kafka, victim: int) -> None:
        self.kafka, self.victim = kafka, victim
        self.topic = kafka.create_topic(PARTITIONS)
        self.led = next(number for number, leader in kafka.leaders(self.topic).items() if leader == victim)
        self.open = ExitStack()

    @abstractmethod
    def before(self) -> None: ...

    @abstractmethod
    def during(self) -> None: ...

    @abstractmethod
    def after(self) -> None: ...


class GroupStory(Story, Scenario):
    """A group with two members, whose coordinator the victim is, and a producer for it.

    acks=all loses nothing, idempotence writes nothing twice, and the group goes on at the right record.
    """

    members: Sequence[Consumer]
    producer_of_it: Producer

    def __init__(self, client: Client, kafka: Kafka, victim: int, group: str) -> None:
        super().__init__(kafka, victim)
        self.client, self.title, self.group = client, client.name, group
        self.seen: Counter[bytes | None] = Counter()

    def _count(self, _: int, message: Message) -> None:
        self.seen[message.value] += 1

    def _commit(self) -> None:
        """A member may still have to hear of a rebalance that is over for the broker."""
        deadline = time.monotonic() + LIMIT_S
        for one in self.members:
            while True:
                try:
                    one.commit()
                    break
                except Refused as refused:
                    if refused.code != REBALANCE_IN_PROGRESS or time.monotonic() > deadline:
                        raise
                    poll_until(self.members, lambda: share(self.members, PARTITIONS), self._count)

    def before(self) -> None:
        enter = self.open.enter_context
        self.members = [enter(self.consumer(self.kafka, group=self.group)) for _ in range(2)]
        self.producer_of_it = enter(self.producer(self.kafka, idempotent=True))
        for one in self.members:
            one.subscribe(self.topic)
        poll_until(self.members, lambda: share(self.members, PARTITIONS))
        self._write(0, BEFORE)
        poll_until(self.members, lambda: len(self.seen) == BEFORE, self._count)
        self._commit()

    def _write(self, first: int, end: int) -> None:
        for number, value in enumerate(numbered(end - first, first)):
            self.producer_of_it.send(self.topic, value, partition=number % PARTITIONS)
        self.producer_of_it.flush()

    def during(self) -> None:
        failed: list[BaseException] = []

        def write() -> None:
            try:
                self._write(BEFORE, TOTAL)
            except BaseException as error:
                failed.append(error)

        writing = threading.Thread(target=write)
        writing.start()
        poll_until(
            self.members, lambda: not writing.is_alive() and (failed or len(self.seen) == TOTAL), self._count
        )
        writing.join()
        assert not failed
        assert self.kafka.leader_of(self.topic, self.led) != self.victim
        assert self.kafka.coordinator_of(self.group) != self.victim
        poll_until(self.members, lambda: self.kafka.is_stable(self.group, members=2), self._count)
        self._commit()
        places = range(PARTITIONS)
        committed = self.members[0].committed(self.topic, places)
        assert sum(committed[number] or 0 for number in places) == TOTAL

    def after(self) -> None:
        poll_until(self.members, lambda: self.kafka.in_sync(self.topic), self._count)
        poll_until(self.members, lambda: share(self.members, PARTITIONS), self._count)
        self._write(TOTAL, TOTAL + PARTITIONS)
        poll_until(self.members, lambda: len(self.seen) == TOTAL + PARTITIONS, self._count)
        # The log holds every record once. A consumer may see one again whose commit the crash swallowed.
        everything = numbered(TOTAL + PARTITIONS)
        assert sorted(values(self.read(self.kafka, self.topic, len(everything), PARTITIONS))) == everything
        assert all(self.seen[value] == 1 for value in numbered(BEFORE))


class KcatStory(Story):
    """Lines go to the partition that the victim leads. None is lost or comes twice, and their order stays."""

    title = "kcat"

    def __init__(self, program: str, kafka: Kafka, victim: int) -> None:
        super().__init__(kafka, victim)
        self.tool = Kcat(program, kafka.bootstrap_servers)
        self.place = ("-p", str(self.led))

    def before(self) -> None:
        sent_to = ("-P", "-t", self.topic, *self.place)
        self.producer = self.open.enter_context(self.tool.running(*sent_to, "-X", "enable.idempotence=true"))
        self.producer.send(numbered(MANY))
        self.kafka.wait_until(lambda: self.tool.consume(self.topic, *self.place))

    def during(self) -> None:
        self.producer.send(numbered(MANY, MANY))
        self.producer.end()
        assert self.kafka.leader_of(self.topic, self.led) != self.victim
        assert values(self.tool.consume(self.topic, *self.place)) == numbered(2 * MANY)

    def after(self) -> None:
        self.kafka.wait_until(lambda: self.kafka.in_sync(self.topic))


def group_of(kafka: Kafka, coordinator: int) -> str:
    """The name of a group that this broker coordinates."""
    while True:
        group = name("group")
        if kafka.coordinator_of(group) == coordinator:
            return group
