"""What is produced can be read, as it was, wherever the client puts the work."""

import pytest

from tests.lab.clients.clusters import Kafka
from tests.lab.clients.contract import Message, Refused
from tests.lab.clients.scenarios.scenario import Scenario, numbered, values

MESSAGE_TOO_LARGE = 10


class Producing(Scenario):
    @pytest.mark.parametrize("acks", [0, 1, "all"])
    def test_records_arrive_with_any_acks(self, kafka: Kafka, acks: int | str) -> None:
        """With 0 nobody answers the client, and still nothing is lost on a sound cluster."""
        topic = kafka.create_topic()
        with self.producer(kafka, acks=acks) as producer:
            for value in numbered(50):
                producer.send(topic, value)
            delivered = producer.flush()

        messages = self.read(kafka, topic, 50)

        assert values(messages) == numbered(50)
        assert [message.offset for message in messages] == list(range(50))
        if acks:
            assert delivered == [(0, offset) for offset in range(50)]

    def test_every_compression_comes_back(self, kafka: Kafka) -> None:
        """Compressed batches are kept as they are, and their offsets are counted by the broker."""
        codecs = self.client.compressions
        topic = kafka.create_topic(partitions=len(codecs))
        for partition, codec in enumerate(codecs):
            with self.producer(kafka, compression=codec) as producer:
                for value in numbered(50):
                    producer.send(topic, value * 40, partition=partition)
                assert producer.flush()[-1] == (partition, 49)

        messages = self.read(kafka, topic, 50 * len(codecs), partitions=len(codecs))

        for partition in range(len(codecs)):
            assert [m.value for m in messages if m.partition == partition] == [v * 40 for v in numbered(50)]

    def test_broker_compresses_where_the_topic_says_so(self, kafka: Kafka) -> None:
        """compression.type=gzip: the broker writes the batch anew, and nothing else about it changes."""
        topic = kafka.create_topic(compression_type="gzip")
        with self.producer(kafka) as producer:
            for value in numbered(50):
                producer.send(
                    topic, value * 40, key=value, headers=[("h", value)], timestamp_ms=1_700_000_000_000
                )
            producer.flush()

        messages = self.read(kafka, topic, 50)

        assert messages == [
            Message(0, offset, value * 40, value, (("h", value),), 1_700_000_000_000)
            for offset, value in enumerate(numbered(50))
        ]

    def test_idempotent_producer_writes_each_record_once(self, kafka: Kafka) -> None:
        """Its batches carry a producer id and sequences, which the broker must accept in order."""
        topic = kafka.create_topic()
        with self.producer(kafka, idempotent=True) as producer:
            for batch in range(5):
                for value in numbered(20, first=batch * 20):
                    producer.send(topic, value)
                assert producer.flush() == [(0, batch * 20 + offset) for offset in range(20)]

        assert values(self.read(kafka, topic, 100)) == numbered(100)

    def test_key_value_headers_and_timestamp_come_back(self, kafka: Kafka) -> None:
        """Null, empty and binary: three different things, in that order of neglect."""
        topic = kafka.create_topic()
        sent = [
            Message(
                0, 0, b"value", b"key", (("origin", b"farm"), ("origin", b"\x00\xff")), 1_600_000_000_000
            ),
            Message(0, 1, None, b"tombstone", (), 1_600_000_000_001),
            Message(0, 2, b"", None, (("empty", b""),), 1_600_000_000_002),
            Message(0, 3, b"\x00\xff", b"", (("Größe", b"1"),), 1_600_000_000_003),
        ]
        with self.producer(kafka) as producer:
            for message in sent:
                producer.send(
                    topic,
                    message.value,
                    key=message.key,
                    headers=message.headers,
                    timestamp_ms=message.timestamp_ms,
                )
            producer.flush()

        assert self.read(kafka, topic, 4) == sent

    def test_broker_stamps_the_time_where_the_topic_says_so(self, kafka: Kafka) -> None:
        """message.timestamp.type=LogAppendTime: the producer's time is not what consumers see."""
        topic = kafka.create_topic(message_timestamp_type="LogAppendTime")
        with self.producer(kafka) as producer:
            producer.send(topic, b"hay", timestamp_ms=1_600_000_000_000)
            producer.flush()

        (message,) = self.read(kafka, topic, 1)

        assert message.timestamp_ms > 1_700_000_000_000

    def test_too_large_a_record_is_refused_and_nothing_is_written(self, kafka: Kafka) -> None:
        """The topic's max.message.bytes, not the client's limit, is what refuses it."""
        topic = kafka.create_topic(max_message_bytes=1000)
        with self.producer(kafka) as producer:
            producer.send(topic, b"x" * 2000)
            with pytest.raises(Refused) as refused:
                producer.flush()
            producer.send(topic, b"small")
            producer.flush()

        assert refused.value.code == MESSAGE_TOO_LARGE
        assert values(self.read(kafka, topic, 1)) == [b"small"]
