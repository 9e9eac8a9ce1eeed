"""Transactions: all of it or nothing, for readers who ask for that."""

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Fenced
from tests.lab.clients.scenarios.scenario import Scenario, name, numbered, take, values


class Transactions(Scenario):
    def test_readers_of_committed_records_see_what_was_committed(self, kafka: Kafka) -> None:
        """Two partitions; committed, aborted, committed. Others see the aborted records, too."""
        topic = kafka.create_topic(partitions=2)
        with self.producer(kafka, transactional_id=name("tx")) as producer:
            for number, end in enumerate((producer.commit, producer.abort, producer.commit)):
                producer.begin()
                for value in numbered(10, number * 10):
                    producer.send(topic, value, partition=number % 2)
                    producer.send(topic, value, partition=1 - number % 2)
                producer.flush()
                end()

        committed = self.read(kafka, topic, 40, partitions=2, committed_only=True)
        everything = self.read(kafka, topic, 60, partitions=2)

        for partition in range(2):
            mine = [m.value for m in committed if m.partition == partition]
            assert mine == numbered(10) + numbered(10, 20)
            assert [m.value for m in everything if m.partition == partition] == numbered(30)
            # Each transaction ends with a marker, which takes an offset and is shown to nobody.
            offsets = [m.offset for m in everything if m.partition == partition]
            assert offsets == [*range(10), *range(11, 21), *range(22, 32)]

    def test_open_transaction_holds_back_what_comes_after_it(self, kafka: Kafka) -> None:
        """The last stable offset: a reader of committed records waits at the first open transaction."""
        topic = kafka.create_topic()
        self.fill(kafka, topic, [b"before"])
        with (
            self.producer(kafka, transactional_id=name("tx")) as producer,
            self.consumer(kafka, committed_only=True) as careful,
            self.consumer(kafka) as careless,
        ):
            producer.begin()
            producer.send(topic, b"inside")
            producer.flush()
            self.fill(kafka, topic, [b"after"])
            careful.assign(topic, {0: 0})
            careless.assign(topic, {0: 0})

            assert values(take(careless, 3)) == [b"before", b"inside", b"after"]
            assert values(take(careful, 1)) == [b"before"]
            producer.commit()
            assert values(take(careful, 2)) == [b"inside", b"after"]

    def test_offsets_are_committed_with_the_transaction_or_not_at_all(self, kafka: Kafka) -> None:
        """Consume, transform, produce: an abort leaves the group where it was."""
        source, sink, group = kafka.create_topic(), kafka.create_topic(), name("group")
        self.fill(kafka, source, numbered(10))
        with (
            self.consumer(kafka, group=group) as consumer,
            self.producer(kafka, transactional_id=name("tx")) as producer,
        ):
            consumer.subscribe(source)
            batch = take(consumer, 10)
            for upto, end in ((4, producer.commit), (9, producer.abort)):
                producer.begin()
                for message in batch[:upto]:
                    producer.send(sink, message.value)
                producer.flush()
                producer.send_offsets(source, {0: upto}, consumer)
                end()
                kafka.wait_until(lambda: consumer.committed(source, [0]) == {0: 4})

        assert values(self.read(kafka, sink, 4, committed_only=True)) == numbered(4)

    def test_zombie_is_fenced_by_its_successor(self, kafka: Kafka) -> None:
        """The same transactional id again: the old one's open transaction is aborted, and it stays out."""
        topic, transactional_id = kafka.create_topic(), name("tx")
        with self.producer(kafka, transactional_id=transactional_id) as zombie:
            zombie.begin()
            zombie.send(topic, b"zombie")
            zombie.flush()
            with self.producer(kafka, transactional_id=transactional_id) as successor:
                successor.begin()
                successor.send(topic, b"successor")
                successor.flush()
                with pytest.raises(Fenced):
                    zombie.commit()
                successor.commit()

        assert values(self.read(kafka, topic, 1, committed_only=True)) == [b"successor"]
