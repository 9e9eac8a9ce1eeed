"""The rules on positions against real Kafka 4.3.1, with real consumers where consumers matter."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.errors import ErrorCode
from kelpie.examination import Examination
from kelpie.real.cluster import RealCluster
from kelpie.store import Store
from kelpie.wire.api.init_producer_id import InitProducerIdRequest
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.client.inhabitants import Inhabitants, until

pytestmark = pytest.mark.real

LIMIT_S = 40.0
COMMIT_S = 0.2
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.retention.check.interval.ms": 500,
    "transaction.partition.verification.enable": False,
}
"""The last one lets a transaction hang: a broker that verifies refuses it (KIP-890)."""
_REBALANCING = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS)
TOPICS = ("orders", "growing", "lost", "held", "kept")
COMMITTING = ("well", "stalled", "stopped", "growing", "slow")
TRUTH = {
    "KLP301": {"growing"},
    "KLP302": {"expired"},
    "KLP303": {"lost"},
    "KLP304": {"beyond"},
    "KLP306": {"held"},
    "KLP307": {"pending"},
    "KLP308": {"rewound"},
    "KLP309": {"stalled"},
    "KLP310": {"stopped"},
    "KLP312": {"never"},
    "KLP313": {"slow"},
    "KLP314": {"anew"},
}
"""The group "well" has nothing."""
NOTICES = {("KLP310", "stopped"), ("KLP301", "growing")}
"""What is a notice at first: for a minute, and until consumers must have seen partitions that were added."""


class Run:
    """Consumers and a producer, each in a thread, until the end."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.over = threading.Event()
        self.stops = threading.Event()
        self.threads: list[threading.Thread] = []
        self.failed: list[BaseException] = []
        self.commits: Counter[str] = Counter()

    def start(self, play: Callable[..., None], *arguments: Any) -> None:
        def guarded() -> None:
            try:
                play(*arguments)
            except BaseException as error:
                self.failed.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self.threads.append(thread)

    def until_committed(self, times: int) -> None:
        """Comes back when everyone who commits has a rhythm."""
        deadline = time.monotonic() + LIMIT_S
        while any(self.commits[group] < times for group in COMMITTING):
            assert not self.failed, self.failed
            assert time.monotonic() < deadline, self.commits
            time.sleep(0.05)

    def end(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(LIMIT_S)
        assert not self.failed, self.failed

    def write(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        while not self.over.wait(0.05):
            for topic in ("orders", "kept"):
                for _ in range(5):
                    producer.produce(topic, b"v", partition=0)
            producer.poll(0)
        producer.flush(LIMIT_S)

    def read(self, group: str, topic: str) -> None:
        """Commits its positions all the time, as Java's consumer does, unless its name says otherwise."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 1500,
                "heartbeat.interval.ms": 300,
            }
        )
        consumer.subscribe([topic])
        next_commit, steps = 0.0, 0
        while not self.over.is_set() and not (group == "stopped" and self.stops.is_set()):
            consumer.poll(0.02)
            if time.monotonic() >= next_commit and group != "never":
                next_commit = time.monotonic() + COMMIT_S
                for place in consumer.position(consumer.assignment()):
                    if place.offset >= 0:
                        steps += 1
                        limit = {"stalled": 5, "slow": steps}.get(group, place.offset)
                        offset = min(place.offset, limit)
                        _commit(consumer, TopicPartition(topic, place.partition, offset))
                        self.commits[group] += 1
        consumer.close()


def _commit(consumer: Consumer, place: TopicPartition) -> None:
    try:
        consumer.commit(offsets=[place], asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in _REBALANCING:
            raise


async def _spoil(servers: str) -> None:
    """What people and accidents do to groups that nobody is in."""
    async with await Nodes.open(Settings.of(servers)) as nodes:
        life = Inhabitants(nodes)
        await life.commit("lost", "lost", {0: 10})
        await life.commit("beyond", "lost", {0: 5000}, epoch=0)
        await life.commit("anew", "lost", {0: 80}, epoch=7)
        await life.commit("rewound", "lost", {0: 100}, epoch=0)
        await life.commit("rewound", "lost", {0: 70})
        await life.commit("held", "held", {0: 20}, epoch=0)
        await life.commit("pending", "orders", {0: 0}, epoch=0)
        await life.commit_in_open_transaction("pending", "orders", 1)
        node = await life.coordinator("expired")
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=40, committed_metadata="")
        asked = OffsetCommitRequestTopic(name="lost", partitions=[part])
        old = OffsetCommitRequest(group_id="expired", retention_time_ms=300, topics=[asked])
        answer = await nodes.ask(node, old, 4)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

        async def producer_id() -> Any:
            request = InitProducerIdRequest(transactional_id="hanging", transaction_timeout_ms=60_000)
            given = await nodes.ask(min(nodes.brokers), request, 1)
            return given if given.error_code == ErrorCode.NONE else None

        given = await until(producer_id)
        await life.produce(
            "held",
            count=5,
            transactional=True,
            base_sequence=0,
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
        )
        await life.produce("held", count=30)


def _prepare(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    kept = {"kept": {"retention.ms": "6000"}}
    topics = [NewTopic(name, 1, 1, config=kept.get(name, {})) for name in TOPICS]
    for created in admin.create_topics(topics).values():
        created.result(LIMIT_S)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for topic, count in {"growing": 20, "lost": 100, "held": 20}.items():
        for _ in range(count):
            producer.produce(topic, b"v", partition=0)
    assert producer.flush(LIMIT_S) == 0


def _delete_and_grow(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records([TopicPartition("lost", 0, 60)]).values():
        deleted.result(LIMIT_S)
    for grown in admin.create_partitions([NewPartitions("growing", 2)]).values():
        grown.result(LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while len(admin.list_topics("growing", timeout=LIMIT_S).topics["growing"].partitions) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for _ in range(30):
        producer.produce("growing", b"v", partition=1)
    assert producer.flush(LIMIT_S) == 0


def _found(diagnosis: Diagnosis) -> dict[str, set[str | None]]:
    found: dict[str, set[str | None]] = {}
    for finding in diagnosis.findings:
        told = finding.severity >= Severity.WARNING or (finding.code, finding.group) in NOTICES
        if finding.code.startswith("KLP3") and told:
            found.setdefault(finding.code, set()).add(finding.group)
    return found


async def _diagnosed(servers: str, store: Store) -> Diagnosis:
    """Looks again and again, as `kelpie doctor --watch` does, until all is found or time is up."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        diagnosis, _, _ = await Examination(Settings.of(servers), store=store).examine()
        if _found(diagnosis) == TRUTH or time.monotonic() > deadline:
            return diagnosis
        await asyncio.sleep(0.5)


@pytest.fixture(scope="module")
def diagnosis(real_kafka: Callable[..., RealCluster], tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    servers = real_kafka(**CONFIG).bootstrap_servers
    folder: Path = tmp_path_factory.mktemp("positions")
    _prepare(servers)
    run = Run(servers)
    try:
        run.start(run.write)
        for group in ("well", "stalled", "stopped", "never"):
            run.start(run.read, group, "orders")
        run.start(run.read, "growing", "growing")
        run.start(run.read, "slow", "kept")
        asyncio.run(_spoil(servers))
        run.until_committed(10)
        _delete_and_grow(servers)
        run.stops.set()
        return asyncio.run(_diagnosed(servers, Store(folder / "store")))
    finally:
        run.end()


def test_every_ill_group_is_named_and_no_other(diagnosis: Diagnosis) -> None:
    """Thirteen groups on one broker; each has what was done to it, and the well one has nothing."""
    assert _found(diagnosis) == TRUTH, "\n".join(f"{it.code} {it.summary}" for it in diagnosis.findings)


def test_findings_have_the_numbers_of_the_broker(diagnosis: Diagnosis) -> None:
    """Offsets, producers and times as they were set up."""
    told: dict[tuple[str, str | None], Finding] = {(it.code, it.group): it for it in diagnosis.findings}
    assert "growing-1, which holds 30 records" in told["KLP301", "growing"].summary
    assert "--to-offset 40" in told["KLP302", "expired"].remedies[0].command
    assert "has lost 50 records" in told["KLP303", "lost"].summary
    assert "is 5000, and the log ends at 100" in told["KLP304", "beyond"].summary
    assert "leader epoch 7" in told["KLP314", "anew"].summary
    assert "stable offset of held-0 is 20, the log ends at 55" in told["KLP306", "held"].summary
    assert "open since offset 20" in told["KLP306", "held"].evidence[-1].text
    assert not any(" abort " in it.command for it in told["KLP306", "held"].remedies), "it is seconds old"
    assert "88 UNSTABLE_OFFSET_COMMIT" in told["KLP307", "pending"].evidence[0].text
    assert "lost-0 from 100 to 70" in told["KLP308", "rewound"].summary
    assert "commits offset 5 again and again" in told["KLP309", "stalled"].summary
    assert "it has no members" in told["KLP310", "stopped"].summary
    assert "1 member held orders-0" in told["KLP312", "never"].summary
    assert "the topic keeps 6 s" in told["KLP313", "slow"].summary
