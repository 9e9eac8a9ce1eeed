"""Reading without a group's help: where to begin, and what there is."""

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import EARLIEST, LATEST
from tests.lab.clients.scenarios.scenario import Scenario, numbered, take, values

DAY_MS = 86_400_000
BEGIN_MS = 1_600_000_000_000


class Consuming(Scenario):
    def dated(self, kafka: Kafka) -> str:
        """A topic with ten records, one a day."""
        topic = kafka.create_topic(retention_ms=-1)
        with self.producer(kafka) as producer:
            for day, value in enumerate(numbered(10)):
                producer.send(topic, value, timestamp_ms=BEGIN_MS + day * DAY_MS)
                producer.flush()  # Each in a batch of its own.
        return topic

    @pytest.mark.parametrize(("start", "first"), [(EARLIEST, 0), (7, 7)])
    def test_reading_begins_where_it_is_told_to(self, kafka: Kafka, start: int | str, first: int) -> None:
        """From the beginning, or from an offset in the middle of the log."""
        topic = self.dated(kafka)
        with self.consumer(kafka) as consumer:
            consumer.assign(topic, {0: start})
            assert values(take(consumer, 10 - first)) == numbered(10 - first, first)
            assert consumer.position(0) == 10

    def test_reading_from_the_end_sees_only_what_comes(self, kafka: Kafka) -> None:
        """Latest is the high watermark at the time of asking."""
        topic = self.dated(kafka)
        with self.consumer(kafka, reset=LATEST) as consumer:
            consumer.assign(topic, {0: LATEST})
            assert self.first_to_come(kafka, topic, consumer)[0].value == b"new"

    def test_reading_in_the_middle_of_a_batch_skips_its_head(self, kafka: Kafka) -> None:
        """The broker sends whole batches; the reader asked for offset 37."""
        topic = kafka.create_topic()
        self.fill(kafka, topic, numbered(50))
        with self.consumer(kafka) as consumer:
            consumer.assign(topic, {0: 37})
            assert values(take(consumer, 13)) == numbered(13, 37)

    def test_reading_from_a_time(self, kafka: Kafka) -> None:
        """The first record at or after it; none when all are older."""
        topic = self.dated(kafka)
        with self.consumer(kafka) as consumer:
            assert consumer.offset_for_time(topic, 0, 0) == 0
            assert consumer.offset_for_time(topic, 0, BEGIN_MS + 3 * DAY_MS) == 3
            assert consumer.offset_for_time(topic, 0, BEGIN_MS + 3 * DAY_MS + 1) == 4
            assert consumer.offset_for_time(topic, 0, BEGIN_MS + 10 * DAY_MS) is None
            consumer.assign(topic, {0: 4})
            assert values(take(consumer, 6)) == numbered(6, 4)

    def test_bounds_tell_the_first_offset_and_the_next(self, kafka: Kafka) -> None:
        """What lag is computed from."""
        topic = self.dated(kafka)
        with self.consumer(kafka) as consumer:
            assert consumer.bounds(topic, 0) == (0, 10)

    @pytest.mark.parametrize(("reset", "expected"), [(EARLIEST, b"00000"), (LATEST, b"new")])
    def test_offset_out_of_range_is_reset(self, kafka: Kafka, reset: str, expected: bytes) -> None:
        """OFFSET_OUT_OF_RANGE makes a client fall back on what auto.offset.reset says."""
        topic = self.dated(kafka)
        with self.consumer(kafka, reset=reset) as consumer:
            consumer.assign(topic, {0: 1_000})
            assert self.first_to_come(kafka, topic, consumer)[0].value == expected

    def test_small_fetches_deliver_large_logs(self, kafka: Kafka) -> None:
        """More than one fetch can carry, from several partitions on several leaders."""
        topic = kafka.create_topic(partitions=6)
        self.fill(kafka, topic, (value * 200 for value in numbered(3000)), partitions=6)
        messages = self.read(kafka, topic, 3000, partitions=6)
        assert sorted(values(messages)) == [value * 200 for value in numbered(3000)]
