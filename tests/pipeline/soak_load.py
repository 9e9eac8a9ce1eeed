"""What goes on in the lab while a stream watches: all that leaves records, logs and scrapes.

Members come and go, in classic groups and in one of KIP-848; a transactional one commits and aborts; offsets
are set anew, expire and are deleted; brokers die, alone and in pairs, so that partitions of the offsets topic
have no leader for a while; a log is rotated; and somebody scrapes the metrics.
"""

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from kelpie.lab import SyncCluster

TOPIC, PARTITIONS = "orders", 3
_CLASSIC, _NEWER, _TRANSACTIONAL = ("billing-0", "billing-1", "billing-2"), "shipping", "ledger"
_OPS, _DELETED = "reset-by-hand", "deleted"
_OURS = "soak-"
_LIMIT_S, _PATIENCE_S, _TRANSACTION_S = 15.0, 60.0, 10


@contextmanager
def at_work(cluster: SyncCluster, logs: Path, scrapes: Path, chance: random.Random) -> Iterator[None]:
    """All of it, until the end of the block; then every broker is back."""
    cluster.create_topic(TOPIC, partitions=PARTITIONS, replication=3)
    stopped, calm = threading.Event(), threading.Lock()
    jobs: list[Callable[[random.Random], None]] = [
        lambda _: _produce(cluster, stopped),
        lambda chance: _administer(cluster, chance, stopped),
        lambda chance: _transact(cluster, calm, chance, stopped),
        lambda chance: _break(cluster, calm, chance, stopped),
        lambda chance: _keep_records(cluster, logs, scrapes, chance, stopped),
        partial(_consume, cluster, _NEWER, stopped=stopped, own={"group.protocol": "consumer"}),
    ]
    own = {"session.timeout.ms": 6000}
    jobs += [
        partial(_consume, cluster, group, stopped=stopped, own=own)
        for group in (*_CLASSIC, _CLASSIC[0])  # The first has two members.
    ]
    people = [
        threading.Thread(target=job, args=(random.Random(chance.random()),), daemon=True) for job in jobs
    ]
    for person in people:
        person.start()
    try:
        yield
    finally:
        stopped.set()
        ends = time.monotonic() + _PATIENCE_S
        for person in people:
            person.join(max(0.0, ends - time.monotonic()))
        if any(person.is_alive() for person in people):
            # librdkafka may wait for ever in a transaction. It must not write any more; its transaction ends.
            cluster.disconnect(client=f"{_OURS}*")
            time.sleep(2 * _TRANSACTION_S)


def _client(cluster: SyncCluster, **more: Any) -> dict[str, Any]:
    own = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": f"{_OURS}1", "log_level": 0}
    return own | more


def _produce(cluster: SyncCluster, stopped: threading.Event) -> None:
    producer = Producer(_client(cluster))
    number = 0
    while not stopped.wait(0.02):
        producer.produce(TOPIC, f"order {number}", partition=number % PARTITIONS)
        producer.poll(0)
        number += 1
    producer.flush(10)


def _consume(
    cluster: SyncCluster, group: str, chance: random.Random, stopped: threading.Event, own: dict[str, Any]
) -> None:
    settings = _client(cluster, **{"group.id": group, "auto.offset.reset": "earliest"}, **own)
    while not stopped.is_set():
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe([TOPIC])
        leaves, committed = time.monotonic() + chance.uniform(5, 20), time.monotonic()
        while not stopped.is_set() and time.monotonic() < leaves:
            message = consumer.poll(0.2)
            if message is None or message.error() or time.monotonic() - committed < 0.3:
                continue
            with suppress(KafkaException):  # A broker has just died; the next one may do.
                consumer.commit(asynchronous=False)
            committed = time.monotonic()
        consumer.close()


def _transact(
    cluster: SyncCluster, calm: threading.Lock, chance: random.Random, stopped: threading.Event
) -> None:
    """Offsets in transactions, one of three aborted. While brokers are dead, librdkafka may wait for ever."""
    offset = 0
    consumer = Consumer(_client(cluster, **{"group.id": _TRANSACTIONAL}))
    while not stopped.is_set():
        producer = Producer(
            _client(
                cluster, **{"transactional.id": "ledger", "transaction.timeout.ms": _TRANSACTION_S * 1000}
            )
        )
        with suppress(KafkaException):
            with calm:
                producer.init_transactions(_LIMIT_S)
            while not stopped.wait(chance.uniform(0.2, 1.0)):
                offset += 1
                with calm:
                    producer.begin_transaction()
                    places = [TopicPartition(TOPIC, number, offset) for number in range(PARTITIONS)]
                    metadata = consumer.consumer_group_metadata()
                    producer.send_offsets_to_transaction(places, metadata, _LIMIT_S)
                    if chance.random() < 0.3:
                        producer.abort_transaction(_LIMIT_S)
                    else:
                        producer.commit_transaction(_LIMIT_S)
        stopped.wait(1.0)
    consumer.close()


def _administer(cluster: SyncCluster, chance: random.Random, stopped: threading.Event) -> None:
    """Offsets set by hand, back and forth; a group deleted, again and again; offsets that expire."""
    admin = AdminClient(_client(cluster))
    while not stopped.wait(chance.uniform(2, 6)):
        for group in (_OPS, _DELETED):
            places = [TopicPartition(TOPIC, 0, chance.randrange(500))]
            wanted = [ConsumerGroupTopicPartitions(group, places)]
            with suppress(KafkaException):
                for done in admin.alter_consumer_group_offsets(wanted, request_timeout=_LIMIT_S).values():
                    done.result(_LIMIT_S + 5)
        with suppress(KafkaException):
            for gone in admin.delete_consumer_groups([_DELETED], request_timeout=_LIMIT_S).values():
                gone.result(_LIMIT_S + 5)
        if chance.random() < 0.2:
            cluster.expire_offsets(_OPS)


def _break(
    cluster: SyncCluster, calm: threading.Lock, chance: random.Random, stopped: threading.Event
) -> None:
    """One broker dies, or two at once; both come back."""
    while not stopped.wait(chance.uniform(8, 16)):
        with calm:
            dead = [cluster.kill(node) for node in chance.choice([(3,), (2,), (2, 3)])]
            stopped.wait(chance.uniform(5, 12))
            for each in dead:
                each.lift()


def _keep_records(
    cluster: SyncCluster, logs: Path, scrapes: Path, chance: random.Random, stopped: threading.Event
) -> None:
    """A scrape now and then; and a log that is copied away and begun anew, as logrotate does it."""
    number = 0
    while not stopped.wait(chance.uniform(2, 5)):
        number += 1
        (scrapes / f"{number:04}.prom").write_text(cluster.metrics())
        if number % 8 == 0:
            log = logs / "broker-1.log"
            shutil.copyfile(log, logs / f"broker-1.log.{number // 8}")
            with log.open("r+") as file:
                file.truncate()
