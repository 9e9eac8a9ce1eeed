"""What goes on in the lab while a stream watches: all that leaves records, logs and scrapes.

Members come and go; a transactional one commits and aborts; offsets are set anew, expire and are deleted;
brokers die, alone and in pairs, so that partitions of the offsets topic have no leader for a while; a log is
rotated; and somebody scrapes the metrics.

Transactions and tools of administrators begin and end while all brokers are there: in librdkafka, a producer
that has seen one go may wait for it for ever, and an admin client may end the whole process.
"""

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from kelpie.lab import SyncCluster
from kelpie.observations import OFFSETS_TOPIC

TOPIC, PARTITIONS = "orders", 3
_READERS, _TRANSACTIONAL = ("billing-0", "billing-1", "billing-2"), "ledger"
_OPS, _DELETED = "reset-by-hand", "deleted"
_OURS = "soak-"
_LIMIT_S, _PATIENCE_S, _TRANSACTION_S = 15.0, 60.0, 10


@dataclass
class Deeds:
    """How often things were done: a load that has come to a halt proves nothing."""

    breaks: int = 0
    transactions: int = 0
    rotations: int = 0


@dataclass
class _Scene:
    """What all who do something share."""

    cluster: SyncCluster
    logs: Path
    scrapes: Path
    stopped: threading.Event = field(default_factory=threading.Event)
    calm: threading.Lock = field(default_factory=threading.Lock)
    """Held by who needs all brokers, and by who takes some of them away."""
    done: Deeds = field(default_factory=Deeds)

    def wait(self, seconds: float) -> bool:
        """False: it is over."""
        return not self.stopped.wait(seconds)


@contextmanager
def at_work(cluster: SyncCluster, logs: Path, scrapes: Path, chance: random.Random) -> Iterator[Deeds]:
    """All of it, until the end of the block; then every broker is back."""
    cluster.create_topic(TOPIC, partitions=PARTITIONS, replication=3)
    scene = _Scene(cluster, logs, scrapes)
    jobs: list[Callable[[_Scene, random.Random], None]] = [
        _produce,
        _administer,
        _transact,
        _break,
        _keep_records,
    ]
    # The first has two members.
    jobs += [partial(_consume, group=group) for group in (*_READERS, _READERS[0])]
    people = [
        threading.Thread(target=job, args=(scene, random.Random(chance.random())), daemon=True)
        for job in jobs
    ]
    for person in people:
        person.start()
    try:
        yield scene.done
    finally:
        scene.stopped.set()
        ends = time.monotonic() + _PATIENCE_S
        for person in people:
            person.join(max(0.0, ends - time.monotonic()))
        if any(person.is_alive() for person in people):
            # librdkafka may wait for ever. It must not write any more; and its transaction ends.
            cluster.disconnect(client=f"{_OURS}*")
            time.sleep(2 * _TRANSACTION_S)


def wait_for_rest(cluster: SyncCluster) -> None:
    """Returns when nothing is left that writes by itself. To be called when nobody is at work any more.

    A member that could not leave, because its coordinator was dead, is removed when its session expires; a
    transaction that could not be ended is aborted when its time is over. Both write to logs and to the topic.
    """
    cluster.wait_until(_is_at_rest, _PATIENCE_S)
    admin, deadline = AdminClient(_client(cluster)), time.monotonic() + _PATIENCE_S
    while _end(admin, cluster, IsolationLevel.READ_COMMITTED) != _end(
        admin, cluster, IsolationLevel.READ_UNCOMMITTED
    ):
        assert time.monotonic() < deadline, "a transaction does not end"
        time.sleep(0.2)


def _is_at_rest(state: Mapping[str, Any]) -> bool:
    """Every partition of the offsets topic has all its replicas, and no group has a member."""
    partitions = state["topics"].get(OFFSETS_TOPIC, ())
    is_whole = all(sorted(each["isr"]) == sorted(each["replicas"]) for each in partitions)
    return is_whole and all(group["state"] in ("Empty", "Dead") for group in state["groups"])


def _end(admin: AdminClient, cluster: SyncCluster, isolation: IsolationLevel) -> list[int]:
    count = len(cluster.describe()["topics"][OFFSETS_TOPIC])
    latest = {TopicPartition(OFFSETS_TOPIC, number): OffsetSpec.latest() for number in range(count)}  # type: ignore[no-untyped-call]
    asked = admin.list_offsets(latest, isolation_level=isolation, request_timeout=_LIMIT_S)
    return [asked[partition].result(_LIMIT_S + 5).offset for partition in latest]


def _client(cluster: SyncCluster, **more: Any) -> dict[str, Any]:
    own = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": f"{_OURS}1", "log_level": 0}
    return own | more


def _produce(scene: _Scene, _: random.Random) -> None:
    producer = Producer(_client(scene.cluster))
    number = 0
    while scene.wait(0.02):
        producer.produce(TOPIC, f"order {number}", partition=number % PARTITIONS)
        producer.poll(0)
        number += 1
    producer.flush(10)


def _consume(scene: _Scene, chance: random.Random, *, group: str) -> None:
    own = {"group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    settings = _client(scene.cluster, **own)
    while not scene.stopped.is_set():
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe([TOPIC])
        leaves, committed = time.monotonic() + chance.uniform(5, 20), time.monotonic()
        while not scene.stopped.is_set() and time.monotonic() < leaves:
            message = consumer.poll(0.2)
            if message is None or message.error() or time.monotonic() - committed < 0.3:
                continue
            with suppress(KafkaException):  # A broker has just died; the next one may do.
                consumer.commit(asynchronous=False)
            committed = time.monotonic()
        consumer.close()


def _transact(scene: _Scene, chance: random.Random) -> None:
    """Offsets in transactions, one of three aborted."""
    consumer = Consumer(_client(scene.cluster, **{"group.id": _TRANSACTIONAL}))
    while scene.wait(chance.uniform(0.5, 2.0)):
        with scene.calm, suppress(KafkaException):
            _some_transactions(scene, consumer.consumer_group_metadata(), chance)
    consumer.close()


def _some_transactions(scene: _Scene, metadata: Any, chance: random.Random) -> None:
    own = {"transactional.id": "ledger", "transaction.timeout.ms": _TRANSACTION_S * 1000}
    producer = Producer(_client(scene.cluster, **own))
    producer.init_transactions(_LIMIT_S)
    for _ in range(chance.randrange(1, 4)):
        scene.done.transactions += 1
        producer.begin_transaction()
        places = [TopicPartition(TOPIC, number, scene.done.transactions) for number in range(PARTITIONS)]
        producer.send_offsets_to_transaction(places, metadata, _LIMIT_S)
        if chance.random() < 0.3:
            producer.abort_transaction(_LIMIT_S)
        else:
            producer.commit_transaction(_LIMIT_S)


def _administer(scene: _Scene, chance: random.Random) -> None:
    """Offsets set by hand, back and forth; a group deleted, again and again; offsets that expire."""
    while scene.wait(chance.uniform(2, 6)):
        with scene.calm, suppress(KafkaException):
            _set_and_delete(AdminClient(_client(scene.cluster)), chance)
        if chance.random() < 0.2:
            scene.cluster.expire_offsets(_OPS)


def _set_and_delete(admin: AdminClient, chance: random.Random) -> None:
    for group in (_OPS, _DELETED):
        places = [TopicPartition(TOPIC, 0, chance.randrange(500))]
        wanted = [ConsumerGroupTopicPartitions(group, places)]
        for done in admin.alter_consumer_group_offsets(wanted, request_timeout=_LIMIT_S).values():
            done.result(_LIMIT_S + 5)
    for gone in admin.delete_consumer_groups([_DELETED], request_timeout=_LIMIT_S).values():
        gone.result(_LIMIT_S + 5)


def _break(scene: _Scene, chance: random.Random) -> None:
    """One broker dies, or two at once; both come back."""
    while scene.wait(chance.uniform(8, 16)):
        with scene.calm:
            dead = [scene.cluster.kill(node) for node in chance.choice([(3,), (2,), (2, 3)])]
            scene.wait(chance.uniform(5, 12))
            for each in dead:
                each.lift()
        scene.done.breaks += 1


def _keep_records(scene: _Scene, chance: random.Random) -> None:
    """A scrape now and then; and a log that is copied away and begun anew, as logrotate does it."""
    number = 0
    while scene.wait(chance.uniform(2, 5)):
        number += 1
        (scene.scrapes / f"{number:04}.prom").write_text(scene.cluster.metrics())
        if number % 8 == 0:
            log = scene.logs / "broker-1.log"
            shutil.copyfile(log, scene.logs / f"broker-1.log.{number // 8}")
            with log.open("r+") as file:
                file.truncate()
            scene.done.rotations += 1
