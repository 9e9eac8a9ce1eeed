"""kafka-python, which is pure Python."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import kafka
from kafka import admin as kp_admin
from kafka import codec, errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.lab.clients import contract
from tests.lab.clients.contract import EARLIEST, Fenced, Group, Member, Message, Refused

TIMEOUT_MS = 60_000
_QUICK: Mapping[str, Any] = {
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,
    "retry_backoff_ms": 50,
}
_ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (errors.ProducerFencedError, errors.InvalidProducerEpochError) as error:
        raise Fenced(str(error)) from error
    except errors.BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


class Producer(contract.Producer):
    def __init__(self, bootstrap: str, options: contract.ProducerOptions) -> None:
        transactional = {"transactional_id": options.transactional_id} if options.transactional_id else {}
        self._producer = kafka.KafkaProducer(
            **_QUICK,
            bootstrap_servers=bootstrap.split(","),
            acks=options.acks,
            compression_type=options.compression,
            enable_idempotence=options.idempotent or bool(transactional),
            linger_ms=5,
            metrics_enabled=False,
            **transactional,
        )
        self._sent: list[Any] = []
        if transactional:
            with _translated():
                self._producer.init_transactions()

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
            self._sent.append(self._producer.send(topic, value, key, list(headers), partition, timestamp_ms))

    def flush(self) -> list[tuple[int, int]]:
        sent, self._sent = self._sent, []
        with _translated():
            self._producer.flush(TIMEOUT_MS / 1000)
            placed = [future.get(TIMEOUT_MS / 1000) for future in sent]
        return [(place.partition, place.offset) for place in placed]

    def begin(self) -> None:
        with _translated():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with _translated():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _translated():
            self._producer.abort_transaction()

    def send_offsets(self, topic: str, offsets: Mapping[int, int], consumer: contract.Consumer) -> None:
        assert isinstance(consumer, Consumer)
        with _translated():
            self._producer.send_offsets_to_transaction(_places(topic, offsets), consumer.metadata())

    def close(self) -> None:
        self._producer.close(TIMEOUT_MS / 1000)


class Consumer(contract.Consumer):
    def __init__(self, bootstrap: str, options: contract.ConsumerOptions) -> None:
        self._consumer = kafka.KafkaConsumer(
            **_QUICK,
            bootstrap_servers=bootstrap.split(","),
            client_id=options.client_id,
            group_id=options.group,
            group_instance_id=options.instance,
            auto_offset_reset=options.reset,
            enable_auto_commit=False,
            isolation_level="read_committed" if options.committed_only else "read_uncommitted",
            partition_assignment_strategy=[_ASSIGNORS[options.assignor]],
            session_timeout_ms=options.session_ms,
            heartbeat_interval_ms=contract.HEARTBEAT_MS,
            fetch_max_wait_ms=100,
            metrics_enabled=False,
        )
        self._topic = ""
        self.changes = []

    def metadata(self) -> Any:
        return self._consumer.group_metadata()

    def subscribe(self, topic: str) -> None:
        self._topic = topic
        # A leader that joins before it knows the topic assigns nothing, and forgets it if the metadata comes
        # before its SyncGroup is answered. The quicker the cluster, the likelier. Whoever hears of the topic
        # after the rebalance begins another one. So it asks before, and once more when it has subscribed.
        assert self._consumer.partitions_for_topic(topic)
        self._consumer.subscribe([topic], listener=_Listener(self.changes))
        assert topic in self._consumer.topics()

    def assign(self, topic: str, positions: Mapping[int, int | str]) -> None:
        self._topic = topic
        self._consumer.assign([kafka.TopicPartition(topic, partition) for partition in positions])
        for partition, at in positions.items():
            place = kafka.TopicPartition(topic, partition)
            if isinstance(at, int):
                self._consumer.seek(place, at)
            elif at == EARLIEST:
                self._consumer.seek_to_beginning(place)
            else:
                self._consumer.seek_to_end(place)

    def assignment(self) -> frozenset[int]:
        return frozenset(place.partition for place in self._consumer.assignment())

    def poll(self) -> list[Message]:
        found = self._consumer.poll(timeout_ms=50)
        if not found and self._consumer._coordinator.rejoining:
            # The seldomer it comes back in the middle of that, the seldomer it begins anew: see `poll_until`.
            self._consumer._coordinator.ensure_active_group(timeout_ms=1000)
        return [_message(record) for records in found.values() for record in records]

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        with _translated():
            self._consumer.commit(
                None if offsets is None else _places(self._topic, offsets), timeout_ms=TIMEOUT_MS
            )

    def commit_later(self) -> None:
        self._consumer.commit_async()

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int | None]:
        with _translated():
            return {
                partition: self._consumer.committed(
                    kafka.TopicPartition(topic, partition), timeout_ms=TIMEOUT_MS
                )
                for partition in partitions
            }

    def position(self, partition: int) -> int | None:
        position: int | None = self._consumer.position(
            kafka.TopicPartition(self._topic, partition), TIMEOUT_MS
        )
        return position

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = kafka.TopicPartition(topic, partition)
        with _translated():
            found = self._consumer.offsets_for_times({place: timestamp_ms}, TIMEOUT_MS)[place]
        return found.offset if found is not None and found.offset >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = kafka.TopicPartition(topic, partition)
        with _translated():
            low = self._consumer.beginning_offsets([place], TIMEOUT_MS)[place]
            return low, self._consumer.end_offsets([place], TIMEOUT_MS)[place]

    def close(self) -> None:
        self._consumer.close()


class _Listener(kafka.ConsumerRebalanceListener):
    def __init__(self, changes: list[tuple[str, frozenset[int]]]) -> None:
        self._changes = changes

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._changes.append(("revoked", frozenset(place.partition for place in revoked)))

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._changes.append(("assigned", frozenset(place.partition for place in assigned)))


def _message(record: Any) -> Message:
    return Message(
        record.partition,
        record.offset,
        record.value,
        record.key,
        tuple((name, value) for name, value in record.headers),
        record.timestamp,
    )


def _places(topic: str, offsets: Mapping[int, int]) -> dict[Any, Any]:
    return {
        kafka.TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
        for partition, offset in offsets.items()
    }


class Admin(contract.GroupAdmin):
    def __init__(self, bootstrap: str) -> None:
        self.raw = kafka.KafkaAdminClient(**_QUICK, bootstrap_servers=bootstrap.split(","))

    def create_topic(self, topic: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        new = {"num_partitions": partitions, "replication_factor": replication, "configs": dict(config)}
        with _translated():
            self.raw.create_topics({topic: new})

    def delete_topic(self, topic: str) -> None:
        with _translated():
            self.raw.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self.raw.list_topics())

    def replicas(self, topic: str) -> dict[int, list[int]]:
        (described,) = self.raw.describe_topics([topic])
        return {part["partition_index"]: part["replica_nodes"] for part in described["partitions"]}

    def add_partitions(self, topic: str, total: int) -> None:
        with _translated():
            self.raw.create_partitions({topic: total})

    def config(self, topic: str) -> dict[str, str | None]:
        resource = kp_admin.ConfigResource("topic", topic)
        described = self.raw.describe_configs([resource], config_filter="all")["topic"][topic]
        return {name: entry["value"] for name, entry in described.items()}

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        resource = kp_admin.ConfigResource("topic", topic, dict(config))
        said = self.raw.alter_configs([resource])["topic"][topic]
        if said != "OK":
            raise _named(said)

    def groups(self) -> set[str]:
        return {group["group_id"] for group in self.raw.list_groups()}

    def describe_group(self, group: str) -> Group:
        described = self.raw.describe_groups([group])[group]
        members = tuple(
            Member(
                member["client_id"],
                member["group_instance_id"],
                frozenset(
                    partition
                    for topic in member["member_assignment"]["assigned_partitions"]
                    for partition in topic["partitions"]
                ),
            )
            for member in described["members"]
        )
        return Group(described["group_state"], described["protocol_data"], members)

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        with _translated():
            found = self.raw.list_group_offsets(group)[group]
        return {(place.topic, place.partition): at.offset for place, at in found.items()}

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = kafka.TopicPartition(topic, partition)
        with _translated():
            return int(self.raw.delete_records({place: before})[place]["low_watermark"])

    def delete_group(self, group: str) -> None:
        said = self.raw.delete_groups([group])[group]
        if said != "OK":
            raise _named(said)

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        for error in self.raw.alter_group_offsets(group, _places(topic, offsets)).values():
            if error.errno:
                raise Refused(error.errno)

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        places = [kafka.TopicPartition(topic, partition) for partition in partitions]
        with _translated():
            deleted = self.raw.delete_group_offsets(group, places)
        for error in deleted.values():
            if error.errno:
                raise Refused(error.errno)

    def elect_preferred(self, topic: str, partition: int) -> None:
        response = self.raw.elect_leaders(0, {topic: [partition]}, raise_errors=False)
        for result in response.replica_election_results:
            for place in result.partition_result:
                if place.error_code:
                    raise Refused(place.error_code)

    def close(self) -> None:
        self.raw.close()


def _named(said: str) -> Refused:
    """The library tells some errors by the names of its classes only."""
    found = re.search(r"\w+Error\b", said)
    assert found is not None, said
    return Refused(getattr(errors, found.group()).errno, said)


class KafkaPython(contract.Client):
    def producer(self, bootstrap: str, options: contract.ProducerOptions) -> Producer:
        return Producer(bootstrap, options)

    def consumer(self, bootstrap: str, options: contract.ConsumerOptions) -> Consumer:
        return Consumer(bootstrap, options)

    def admin(self, bootstrap: str) -> Admin:
        return Admin(bootstrap)


_CODECS = {"gzip": codec.has_gzip, "snappy": codec.has_snappy, "lz4": codec.has_lz4, "zstd": codec.has_zstd}
CLIENT = KafkaPython("kafka-python", tuple(name for name, has in _CODECS.items() if has()))
