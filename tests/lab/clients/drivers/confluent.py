"""confluent-kafka, which is librdkafka."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import confluent_kafka as ck
from confluent_kafka import admin as ck_admin

from tests.lab.clients import contract
from tests.lab.clients.contract import EARLIEST, Fenced, Group, Member, Message, Refused

TIMEOUT_S = 60.0
_QUICK: Mapping[str, str | int | float | bool] = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2000,
    "log_level": 2,
}
_FENCED = (
    ck.KafkaError._FENCED,
    ck.KafkaError.INVALID_PRODUCER_EPOCH,
    90,  # PRODUCER_FENCED, which has no name there.
)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ck.KafkaException as error:
        raise _refusal(error.args[0]) from error


def _refusal(error: ck.KafkaError) -> Exception:
    return Fenced(error.str()) if error.code() in _FENCED else Refused(error.code(), error.str())


def _meet(client: ck.Producer | ck.Consumer) -> None:
    """Waits until it has spoken to the cluster.

    Who wants a producer id or the beginning of a partition before that, waits half a second, each time.
    """
    client.list_topics(timeout=TIMEOUT_S)


class Producer(contract.Producer):
    def __init__(self, bootstrap: str, options: contract.ProducerOptions) -> None:
        settings = {**_QUICK, "bootstrap.servers": bootstrap, "acks": options.acks, "linger.ms": 5}
        if options.compression:
            settings["compression.type"] = options.compression
        if options.idempotent:
            settings["enable.idempotence"] = True
        if options.transactional_id:
            settings["transactional.id"] = options.transactional_id
        self._producer = ck.Producer(settings)
        self._delivered: list[tuple[int, int]] = []
        self._errors: list[ck.KafkaError] = []
        if options.idempotent or options.transactional_id:
            _meet(self._producer)
        if options.transactional_id:
            with _translated():
                self._producer.init_transactions(TIMEOUT_S)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
    ) -> None:
        with _translated():
            self._producer.produce(
                topic,
                value,
                key,
                partition,
                on_delivery=self._on_delivery,
                headers=list(headers),
                timestamp=timestamp_ms or 0,
            )
        self._producer.poll(0)

    def _on_delivery(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            self._errors.append(error)
        else:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            # Without an acknowledgement nobody knows the offset.
            self._delivered.append((partition, -1 if offset is None else offset))

    def flush(self) -> list[tuple[int, int]]:
        left = self._producer.flush(TIMEOUT_S)
        assert left == 0, f"{left} messages were not delivered within {TIMEOUT_S} s"
        if self._errors:
            error = self._errors[0]
            self._errors = []
            raise _refusal(error)
        delivered, self._delivered = self._delivered, []
        return delivered

    def begin(self) -> None:
        with _translated():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with _translated():
            self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        with _translated():
            self._producer.abort_transaction(TIMEOUT_S)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], consumer: contract.Consumer) -> None:
        assert isinstance(consumer, Consumer)
        places = [ck.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        with _translated():
            self._producer.send_offsets_to_transaction(places, consumer.metadata(), TIMEOUT_S)

    def close(self) -> None:
        self._producer.purge()
        with suppress(ck.KafkaException):  # One that was fenced complains once more.
            self._producer.close()


class Consumer(contract.Consumer):
    def __init__(self, bootstrap: str, options: contract.ConsumerOptions) -> None:
        settings = {
            **_QUICK,
            "bootstrap.servers": bootstrap,
            "client.id": options.client_id,
            "group.id": options.group or "nobody",
            "auto.offset.reset": options.reset,
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if options.committed_only else "read_uncommitted",
            "partition.assignment.strategy": options.assignor,
            "session.timeout.ms": options.session_ms,
            "heartbeat.interval.ms": contract.HEARTBEAT_MS,
            "fetch.wait.max.ms": 30,
            "fetch.error.backoff.ms": 100,
        }
        if options.instance:
            settings["group.instance.id"] = options.instance
        self._consumer = ck.Consumer(settings)
        self._topic = ""
        self._owned: frozenset[int] = frozenset()
        self.changes = []
        self.errors: list[int] = []

    def metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def subscribe(self, topic: str) -> None:
        def assigned(_: object, places: Sequence[ck.TopicPartition]) -> None:
            partitions = frozenset(place.partition for place in places)
            self._owned |= partitions
            self.changes.append(("assigned", partitions))

        def revoked(_: object, places: Sequence[ck.TopicPartition]) -> None:
            partitions = frozenset(place.partition for place in places)
            self._owned -= partitions
            self.changes.append(("revoked", partitions))

        self._topic = topic
        self._consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)

    def assign(self, topic: str, positions: Mapping[int, int | str]) -> None:
        self._topic = topic
        special = {EARLIEST: ck.OFFSET_BEGINNING, contract.LATEST: ck.OFFSET_END}
        _meet(self._consumer)
        self._consumer.assign(
            [
                ck.TopicPartition(topic, partition, special[at] if isinstance(at, str) else at)
                for partition, at in positions.items()
            ]
        )

    def assignment(self) -> frozenset[int]:
        # Not the library's own: that one waits for a thread that polls, and holds Python's lock meanwhile.
        return self._owned

    def poll(self) -> list[Message]:
        found = []
        first = self._consumer.poll(0.03)
        for message in [] if first is None else [first, *self._consumer.consume(500, 0)]:
            if error := message.error():
                self.errors.append(error.code())
            else:
                found.append(_message(message))
        return found

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        places = (
            {"offsets": [ck.TopicPartition(self._topic, number, at) for number, at in offsets.items()]}
            if offsets is not None
            else {}
        )
        with _translated():
            for place in self._consumer.commit(asynchronous=False, **places):
                if place.error:
                    raise ck.KafkaException(place.error)

    def commit_later(self) -> None:
        self._consumer.commit(asynchronous=True)

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int | None]:
        places = [ck.TopicPartition(topic, partition) for partition in partitions]
        with _translated():
            found = self._consumer.committed(places, TIMEOUT_S)
        return {place.partition: place.offset if place.offset >= 0 else None for place in found}

    def position(self, partition: int) -> int | None:
        offset = self._consumer.position([ck.TopicPartition(self._topic, partition)])[0].offset
        return offset if offset >= 0 else None

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        with _translated():
            place = self._consumer.offsets_for_times(
                [ck.TopicPartition(topic, partition, timestamp_ms)], TIMEOUT_S
            )[0]
        return place.offset if place.offset >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        with _translated():
            return self._consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), TIMEOUT_S)

    def close(self) -> None:
        self._consumer.close()


def _message(message: ck.Message) -> Message:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    return Message(partition, offset, message.value(), message.key(), tuple(headers), message.timestamp()[1])


class Admin(contract.GroupAdmin):
    def __init__(self, bootstrap: str) -> None:
        self.raw = ck_admin.AdminClient({**_QUICK, "bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        new = ck_admin.NewTopic(topic, partitions, replication, config=dict(config))
        _result(self.raw.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        _result(self.raw.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self.raw.list_topics(timeout=TIMEOUT_S).topics)

    def replicas(self, topic: str) -> dict[int, list[int]]:
        described = _result(self.raw.describe_topics(ck.TopicCollection([topic])))
        return {part.id: [node.id for node in part.replicas] for part in described.partitions}

    def add_partitions(self, topic: str, total: int) -> None:
        _result(self.raw.create_partitions([ck_admin.NewPartitions(topic, total)]))

    def config(self, topic: str) -> dict[str, str | None]:
        resource = ck_admin.ConfigResource(ck_admin.ResourceType.TOPIC, topic)
        entries = _result(self.raw.describe_configs([resource]))
        return {name: entry.value for name, entry in entries.items()}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        changes = [
            ck_admin.ConfigEntry(name, value, incremental_operation=ck_admin.AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ck_admin.ConfigResource(ck_admin.ResourceType.TOPIC, topic, incremental_configs=changes)
        _result(self.raw.incremental_alter_configs([resource]))

    def groups(self) -> set[str]:
        with _translated():
            listed = self.raw.list_consumer_groups().result(TIMEOUT_S)
        assert not listed.errors
        return {group.group_id for group in listed.valid}

    def describe_group(self, group: str) -> Group:
        described = _result(self.raw.describe_consumer_groups([group]))
        members = tuple(
            Member(
                member.client_id,
                member.group_instance_id,
                frozenset(place.partition for place in member.assignment.topic_partitions),
            )
            for member in described.members
        )
        state = described.state.name.title().replace("_", "")
        return Group(state, described.partition_assignor, members)

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        found = _result(self.raw.list_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group)]))
        return {(place.topic, place.partition): place.offset for place in found.topic_partitions}

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        deleted = _result(self.raw.delete_records([ck.TopicPartition(topic, partition, before)]))
        return int(deleted.low_watermark)

    def delete_group(self, group: str) -> None:
        _result(self.raw.delete_consumer_groups([group]))

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = [ck.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        altered = _result(
            self.raw.alter_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group, places)])
        )
        for place in altered.topic_partitions:
            if place.error:
                raise _refusal(place.error)

    def elect_preferred(self, topic: str, partition: int) -> None:
        place = ck.TopicPartition(topic, partition)
        with _translated():
            elected = self.raw.elect_leaders(ck.ElectionType.PREFERRED, [place]).result(TIMEOUT_S)
        for error in elected.values():
            if error is not None:
                raise _refusal(error)

    def close(self) -> None:
        del self.raw


def _result(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    with _translated():
        return future.result(TIMEOUT_S)


class Confluent(contract.Client):
    def producer(self, bootstrap: str, options: contract.ProducerOptions) -> Producer:
        return Producer(bootstrap, options)

    def consumer(self, bootstrap: str, options: contract.ConsumerOptions) -> Consumer:
        return Consumer(bootstrap, options)

    def admin(self, bootstrap: str) -> Admin:
        return Admin(bootstrap)


CLIENT = Confluent("confluent", ("gzip", "snappy", "lz4", "zstd"))
