"""aiokafka; every producer, consumer and administrator has an event loop in a thread of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import aiokafka
from aiokafka import admin as ak_admin
from aiokafka import errors
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from kelpie.client.loop_thread import LoopThread
from kelpie.wire import consumer_protocol
from tests.lab.clients import contract
from tests.lab.clients.contract import EARLIEST, Fenced, Group, Member, Message, Refused

_FENCED = (errors.ProducerFenced, errors.InvalidProducerEpoch)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _FENCED as error:
        raise Fenced(str(error)) from error
    except errors.BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


class _OnLoop:
    """What runs on the loop; closing ends the loop and its thread."""

    def __init__(self) -> None:
        self._loop = LoopThread("aiokafka")
        self._loop.start()

    def _run(self, work: Callable[[], Awaitable[Any] | Any]) -> Any:
        with _translated():
            return self._loop.run(work)

    def _opened(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """As above; should it fail, nothing is left."""
        try:
            return self._run(work)
        except BaseException:
            self._loop.stop()
            raise

    def _end(self, work: Callable[[], Awaitable[Any]]) -> None:
        if self._loop.runs:
            try:
                self._run(work)
            finally:
                self._loop.stop()


class Producer(_OnLoop, contract.Producer):
    def __init__(self, bootstrap: str, options: contract.ProducerOptions) -> None:
        super().__init__()
        self._sent: list[Any] = []

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                acks=options.acks,
                compression_type=options.compression,
                enable_idempotence=options.idempotent,
                transactional_id=options.transactional_id,
                linger_ms=5,
            )
            await producer.start()
            return producer

        self._producer = self._opened(start)

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
        self._sent.append(
            self._run(
                lambda: _wrapped(
                    self._producer.send(
                        topic,
                        value,
                        key,
                        partition=partition,
                        timestamp_ms=timestamp_ms,
                        headers=list(headers),
                    )
                )
            )
        )

    def flush(self) -> list[tuple[int, int]]:
        sent, self._sent = self._sent, []

        async def flush() -> list[Any]:
            await self._producer.flush()
            return [await future for (future,) in sent]

        placed = self._run(flush)
        return [(place.partition, place.offset) for place in placed if place is not None]

    def begin(self) -> None:
        self._run(self._producer.begin_transaction)

    def commit(self) -> None:
        self._run(self._producer.commit_transaction)

    def abort(self) -> None:
        self._run(self._producer.abort_transaction)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], consumer: contract.Consumer) -> None:
        assert isinstance(consumer, Consumer)
        places = {aiokafka.TopicPartition(topic, number): at for number, at in offsets.items()}
        self._run(lambda: self._producer.send_offsets_to_transaction(places, consumer.group))

    def close(self) -> None:
        self._end(self._producer.stop)


async def _wrapped(sending: Awaitable[Any]) -> tuple[Any]:
    """A future inside a tuple is handed over; a bare one would be waited for."""
    return (await sending,)


class Consumer(_OnLoop, contract.Consumer):
    def __init__(self, bootstrap: str, options: contract.ConsumerOptions) -> None:
        super().__init__()
        self.group = options.group
        self._topic = ""
        self.changes = []
        assert options.assignor == "range"

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                client_id=options.client_id,
                group_id=options.group,
                group_instance_id=options.instance,
                auto_offset_reset=options.reset,
                enable_auto_commit=False,
                isolation_level="read_committed" if options.committed_only else "read_uncommitted",
                partition_assignment_strategy=[RangePartitionAssignor],
                session_timeout_ms=options.session_ms,
                heartbeat_interval_ms=contract.HEARTBEAT_MS,
                fetch_max_wait_ms=30,
            )
            await consumer.start()
            return consumer

        self._consumer = self._opened(start)

    def subscribe(self, topic: str) -> None:
        self._topic = topic
        self._run(lambda: self._consumer.subscribe([topic], listener=_Listener(self.changes)))

    def assign(self, topic: str, positions: Mapping[int, int | str]) -> None:
        self._topic = topic

        async def assign() -> None:
            self._consumer.assign([aiokafka.TopicPartition(topic, number) for number in positions])
            for number, at in positions.items():
                place = aiokafka.TopicPartition(topic, number)
                if isinstance(at, int):
                    self._consumer.seek(place, at)
                elif at == EARLIEST:
                    await self._consumer.seek_to_beginning(place)
                else:
                    await self._consumer.seek_to_end(place)

        self._run(assign)

    def assignment(self) -> frozenset[int]:
        return frozenset(place.partition for place in self._run(self._consumer.assignment))

    def poll(self) -> list[Message]:
        found = self._run(lambda: self._consumer.getmany(timeout_ms=30))
        return [_message(record) for records in found.values() for record in records]

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        places = (
            None
            if offsets is None
            else {aiokafka.TopicPartition(self._topic, number): at for number, at in offsets.items()}
        )
        self._run(lambda: self._consumer.commit(places))

    def commit_later(self) -> None:
        self._run(lambda: (asyncio.ensure_future(self._consumer.commit()),))

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int | None]:
        return {
            number: self._run(partial(self._consumer.committed, _place(topic, number)))
            for number in partitions
        }

    def position(self, partition: int) -> int | None:
        position: int | None = self._run(lambda: self._consumer.position(_place(self._topic, partition)))
        return position

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = _place(topic, partition)
        found = self._run(lambda: self._consumer.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else found.offset

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = _place(topic, partition)
        low = self._run(lambda: self._consumer.beginning_offsets([place]))[place]
        return low, self._run(lambda: self._consumer.end_offsets([place]))[place]

    def close(self) -> None:
        self._end(self._consumer.stop)


class _Listener(aiokafka.ConsumerRebalanceListener):
    def __init__(self, changes: list[tuple[str, frozenset[int]]]) -> None:
        self._changes = changes

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._changes.append(("revoked", frozenset(place.partition for place in revoked)))

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._changes.append(("assigned", frozenset(place.partition for place in assigned)))


def _place(topic: str, partition: int) -> aiokafka.TopicPartition:
    return aiokafka.TopicPartition(topic, partition)


def _message(record: Any) -> Message:
    return Message(
        record.partition, record.offset, record.value, record.key, tuple(record.headers), record.timestamp
    )


class Admin(_OnLoop, contract.Admin):
    def __init__(self, bootstrap: str) -> None:
        super().__init__()

        async def start() -> ak_admin.AIOKafkaAdminClient:
            client = ak_admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await client.start()
            return client

        self.raw = self._opened(start)

    def create_topic(self, topic: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        new = ak_admin.NewTopic(topic, partitions, replication, topic_configs=dict(config))
        answer = self._run(lambda: self.raw.create_topics([new]))
        _check(error[1] for error in answer.topic_errors)

    def delete_topic(self, topic: str) -> None:
        answer = self._run(lambda: self.raw.delete_topics([topic]))
        _check(error[1] for error in answer.topic_error_codes)

    def topics(self) -> set[str]:
        return set(self._run(self.raw.list_topics))

    def replicas(self, topic: str) -> dict[int, list[int]]:
        (described,) = self._run(lambda: self.raw.describe_topics([topic]))
        return {part["partition"]: part["replicas"] for part in described["partitions"]}

    def add_partitions(self, topic: str, total: int) -> None:
        self._run(lambda: self.raw.create_partitions({topic: ak_admin.NewPartitions(total)}))

    def config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._run(lambda: self.raw.describe_configs([resource]))
        (described,) = answer.resources
        return {entry[0]: entry[1] for entry in described[4]}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))
        (answer,) = self._run(lambda: self.raw.alter_configs([resource]))
        _check(error[0] for error in answer.resources)

    def groups(self) -> set[str]:
        return {group[0] for group in self._run(self.raw.list_consumer_groups)}

    def describe_group(self, group: str) -> Group:
        (answer,) = self._run(lambda: self.raw.describe_consumer_groups([group]))
        ((_, _, state, _, assignor, members, *_),) = answer.groups
        return Group(state, assignor, tuple(_member(member) for member in members))

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        found = self._run(lambda: self.raw.list_consumer_group_offsets(group))
        return {(place.topic, place.partition): at.offset for place, at in found.items()}

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = _place(topic, partition)
        wanted = {place: ak_admin.RecordsToDelete(before)}
        return int(self._run(lambda: self.raw.delete_records(wanted))[place])

    def close(self) -> None:
        self._end(self.raw.close)


def _member(member: Any) -> Member:
    """Of version 3, which has no instance ids."""
    _, client_id, _, _, blob = member
    _, assignment = consumer_protocol.decode_assignment(blob)
    owned = frozenset(number for topic in assignment.assigned_partitions for number in topic.partitions)
    return Member(client_id, None, owned)


def _check(codes: Iterator[int]) -> None:
    for code in codes:
        if code:
            raise Refused(code)


class AioKafka(contract.Client):
    def producer(self, bootstrap: str, options: contract.ProducerOptions) -> Producer:
        return Producer(bootstrap, options)

    def consumer(self, bootstrap: str, options: contract.ConsumerOptions) -> Consumer:
        return Consumer(bootstrap, options)

    def admin(self, bootstrap: str) -> Admin:
        return Admin(bootstrap)


CLIENT = AioKafka("aiokafka", ("gzip", "snappy", "lz4", "zstd"))
