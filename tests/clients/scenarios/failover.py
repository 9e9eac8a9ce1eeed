"""Brokers crash while clients work; what was acknowledged stays, and nothing comes twice."""

import threading
from collections import Counter

from tests.clients.clusters import Kafka
from tests.clients.contract import Message
from tests.clients.scenarios.scenario import Scenario, name, numbered, poll_until, share, values

BEFORE, TOTAL = 100, 400
PARTITIONS = 3


class Failover(Scenario):
    def test_leader_and_coordinator_crash_while_a_group_consumes(self, kafka: Kafka) -> None:
        """One broker leads the partition and coordinates the group. It dies, work goes on; it returns.

        acks=all loses nothing, idempotence writes nothing twice, and the group goes on at the right record.
        """
        topic, group = kafka.create_topic(PARTITIONS), name("group")
        seen: Counter[bytes | None] = Counter()

        def count(_: int, message: Message) -> None:
            seen[message.value] += 1

        with (
            self.consumer(kafka, group=group) as first,
            self.consumer(kafka, group=group) as second,
            self.producer(kafka, idempotent=True) as producer,
        ):
            members = [first, second]
            for one in members:
                one.subscribe(topic)
            poll_until(members, lambda: share(members, PARTITIONS))
            victim = kafka.coordinator_of(group)
            led = next(number for number, leader in kafka.leaders(topic).items() if leader == victim)
            for number, value in enumerate(numbered(BEFORE)):
                producer.send(topic, value, partition=number % PARTITIONS)
            producer.flush()
            poll_until(members, lambda: len(seen) == BEFORE, count)
            for one in members:
                one.commit()

            kafka.kill(victim)
            failed: list[BaseException] = []
            writing = threading.Thread(target=self._write, args=(producer, topic, failed))
            writing.start()
            poll_until(members, lambda: not writing.is_alive() and len(seen) == TOTAL, count)
            writing.join()
            assert not failed

            assert kafka.leader_of(topic, led) != victim
            assert kafka.coordinator_of(group) != victim
            poll_until(members, lambda: kafka.is_stable(group, members=2), count)
            for one in members:
                one.commit()
            places = range(PARTITIONS)
            assert sum(first.committed(topic, places)[number] or 0 for number in places) == TOTAL

            kafka.start(victim)
            poll_until(members, lambda: kafka.in_sync(topic), count)
            poll_until(members, lambda: share(members, PARTITIONS), count)
            for number, value in enumerate(numbered(PARTITIONS, TOTAL)):
                producer.send(topic, value, partition=number)
            producer.flush()
            poll_until(members, lambda: len(seen) == TOTAL + PARTITIONS, count)

        # The log holds every record once. A consumer may see one again whose commit the crash swallowed.
        assert sorted(values(self.read(kafka, topic, TOTAL + PARTITIONS, PARTITIONS))) == sorted(
            numbered(TOTAL + PARTITIONS)
        )
        assert all(seen[value] == 1 for value in numbered(BEFORE))

    @staticmethod
    def _write(producer: object, topic: str, failed: list[BaseException]) -> None:
        try:
            for number, value in enumerate(numbered(TOTAL - BEFORE, BEFORE)):
                producer.send(topic, value, partition=number % PARTITIONS)  # type: ignore[attr-defined]
            producer.flush()  # type: ignore[attr-defined]
        except BaseException as error:
            failed.append(error)
