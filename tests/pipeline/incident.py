"""An incident on real Kafka 4.3.1, struck and recorded: `python -m tests.pipeline.incident FOLDER`.

FOLDER/evidence is what an operator would have in the end: logs and configurations of the nodes, disks of the
brokers, outputs of Kafka's own tools. FOLDER/truth.json says what was done, and is not to be read by whoever
diagnoses.

Three brokers and a controller of its own; the offsets topic has two replicas, and brokers 2 and 3 are killed,
so that partitions that live on both have no leader. Before that, in order: a group is left alone until its
offsets expire, and in the meantime groups of all protocols consume, two of them are shaken by members that
come and go, transactions commit and abort offsets, an administrator sets offsets back and forth and deletes.
"""

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from kelpie.model.partitioning import partition_for
from kelpie.real.cluster import RealCluster

VERSION = "4.3.1"
KILLED = (2, 3)
OFFSETS_PARTITIONS = 12
TOPICS = {"orders": 6, "payments": 3}
RECORDS = 120
"""In each partition, before anybody consumes."""
STORM = 7
"""How often a member comes and goes."""
RETENTION_S = 60
"""The shortest that offsets.retention.minutes can say."""
_CONFIG = {
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
    "offsets.topic.replication.factor": 2,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1000,
    "default.replication.factor": 3,
    "min.insync.replicas": 1,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
}
_CLASSIC = {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 300}
_ADMINISTRATION_S = 5
_LIMIT_S = 60.0


@dataclass
class Group:
    """A group, where it lives, and what was done to it."""

    name: str
    offsets_partition: int
    hit: bool
    did: str


@dataclass
class Truth:
    """What was done, by whom, when; times are milliseconds."""

    killed: tuple[int, ...] = KILLED
    killed_at: tuple[int, int] = (0, 0)
    """Before, and after, the brokers were killed."""
    described_at: tuple[int, int] = (0, 0)
    """Between these times Kafka's tools described the groups; nothing changed meanwhile, nor later."""
    leaderless: list[int] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    """By what they are in the story: "steady", "storm" …"""
    rebalances: dict[str, int] = field(default_factory=dict)
    """At least so many, by group."""
    lost: dict[str, dict[str, int]] = field(default_factory=dict)
    """Offsets that were removed, by group and partition."""
    moved: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Where an administrator found offsets, and where he put them."""
    committed: dict[str, int] = field(default_factory=dict)
    aborted: dict[str, int] = field(default_factory=dict)


def main() -> None:
    began = time.monotonic()

    def tell(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {text}\n")
        sys.stdout.flush()

    record(Path(sys.argv[1]), announce=tell)
    tell(f"done: {sys.argv[1]}/evidence, and what is right in truth.json")


def record(into: Path, *, announce: Callable[[str], None] = lambda _: None) -> Truth:
    """Strikes the incident, and leaves evidence and truth.json in the folder, which must be new."""
    into.mkdir(parents=True)
    announce("starting the cluster")
    with RealCluster(VERSION, 3, config=_CONFIG) as cluster:
        story = _Story(cluster, into / "evidence", announce)
        try:
            story.play()
        finally:
            story.end()
        (into / "truth.json").write_text(json.dumps(asdict(story.truth), indent=1))
        return story.truth


class _Story:
    def __init__(self, cluster: RealCluster, evidence: Path, announce: Callable[[str], None]) -> None:
        self.truth = Truth()
        self._cluster, self._evidence, self._announce = cluster, evidence, announce
        self._quietly: dict[str, str | int | float | bool] = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
        }
        self._admin = AdminClient(self._quietly)
        self._members: list[_Member] = []

    def play(self) -> None:
        self._announce("topics and records")
        self._make_topics()
        self._name_groups()
        expired = self._consume_once("expired", "orders")
        left_alone = time.monotonic()
        self._announce("groups of all protocols, and storms")
        self._settle()
        with self._producing():
            self._storms()
        self._calm()
        rest_s = RETENTION_S - (time.monotonic() - left_alone)
        self._announce(f"offsets expire in {rest_s:.0f} s")
        # Groups without members are the next to expire, so they come late.
        time.sleep(max(0.0, rest_s - _ADMINISTRATION_S))
        self._announce("transactions and an administrator")
        self._transactions()
        self._administer()
        self._wait(lambda: not self._offsets("expired"), RETENTION_S + _LIMIT_S)
        self.truth.lost[self._name("expired")] = expired
        self._announce("Kafka's tools before the outage")
        began = _now()
        self._describe("before")
        self.truth.described_at = (began, _now())
        self._announce(f"brokers {KILLED} die")
        began = _now()
        for broker in KILLED:
            self._cluster.kill(broker)
        self.truth.killed_at = (began, _now())
        self._wait(self._is_noticed)
        self._describe("during")
        for node in [*self._cluster.brokers, self._cluster.find("controller")]:
            if node.up:
                self._cluster.kill(node.name)
        self._announce("keeping what is left")
        self._keep()

    def end(self) -> None:
        """Members are abandoned: who leaves would be missing on the disks, and nobody is there to be told."""
        for member in self._members:
            member.abandon()
        for member in self._members:
            member.join(_LIMIT_S)

    def _make_topics(self) -> None:
        made = self._admin.create_topics([NewTopic(name, number, 3) for name, number in TOPICS.items()])
        for future in made.values():
            future.result(_LIMIT_S)
        self._produce(RECORDS)
        # The offsets topic comes into being when somebody asks for a coordinator.
        with _closing(self._consumer("anybody")) as consumer:
            self._wait(lambda: consumer.committed([TopicPartition("orders", 0)], timeout=5))

    def _name_groups(self) -> None:
        described = self._admin.list_topics("__consumer_offsets", timeout=_LIMIT_S)
        replicas = {
            it.id: set(it.replicas) for it in described.topics["__consumer_offsets"].partitions.values()
        }
        assert len(replicas) == OFFSETS_PARTITIONS
        self.truth.leaderless = sorted(number for number, own in replicas.items() if own <= set(KILLED))
        for role, hit, did in _CAST:
            name = next(
                name
                for name in (f"{role}-{number}" for number in count())
                if (partition_for(name, OFFSETS_PARTITIONS) in self.truth.leaderless) == hit
            )
            self.truth.groups[role] = Group(name, partition_for(name, OFFSETS_PARTITIONS), hit, did)

    def _settle(self) -> None:
        """Members come one after the other, so that each makes a rebalance of its own."""
        for role, settings, topics, members in (
            ("eager", _EAGER, ["orders"], 2),
            ("cooperative", _COOPERATIVE, ["orders"], 2),
            ("next", _NEXT, ["orders", "payments"], 3),
            ("storm", _EAGER, ["orders"], 2),
            ("next-storm", _NEXT, ["payments"], 2),
        ):
            for number in range(members):
                self._join(role, number, settings, topics)
            self.truth.rebalances[self._name(role)] = members

    def _storms(self) -> None:
        def shake(role: str, settings: dict[str, Any], topic: str) -> None:
            for _ in range(STORM):
                restless = self._join(role, 9, settings, [topic])
                restless.stop()
                self._members.remove(restless)

        storms = [
            _Task(lambda: shake("storm", _EAGER, "orders")),
            _Task(lambda: shake("next-storm", _NEXT, "payments")),
        ]
        for storm in storms:
            storm.result()
        # In a classic group, who comes while the others still make up for who left is part of one rebalance.
        self.truth.rebalances[self._name("storm")] += STORM
        self.truth.rebalances[self._name("next-storm")] += 2 * STORM

    def _transactions(self) -> None:
        producer = Producer({**self._quietly, "transactional.id": "incident"})
        producer.init_transactions(_LIMIT_S)
        with _closing(self._consumer(self._name("transactional"))) as consumer:
            for offset, ending, told in (
                (40, producer.commit_transaction, self.truth.committed),
                (70, producer.abort_transaction, self.truth.aborted),
            ):
                producer.begin_transaction()
                positions = [TopicPartition("orders", number, offset + number) for number in range(3)]
                producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _LIMIT_S)
                ending(_LIMIT_S)
                told |= {_text(it): it.offset for it in positions}

    def _administer(self) -> None:
        """As kafka-consumer-groups --reset-offsets --to-earliest, --to-latest and --delete do it."""
        for role, to in (("rewound", 0), ("skipped", OFFSET_END)):
            before = self._consume_once(role, "payments", most=60)
            name = self._name(role)
            after = {it: self._end(it) if to == OFFSET_END else to for it in before}
            self._alter(name, after)
            self.truth.moved[name] = {it: [before[it], after[it]] for it in before}
        self.truth.lost[self._name("deleted")] = self._consume_once("deleted", "payments")
        deleted = self._admin.delete_consumer_groups([self._name("deleted")])
        for future in deleted.values():
            future.result(_LIMIT_S)

    def _alter(self, group: str, offsets: dict[str, int]) -> None:
        positions = [_position(name, offset) for name, offset in offsets.items()]
        altered = self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, positions)])
        for future in altered.values():
            future.result(_LIMIT_S)

    def _calm(self) -> None:
        """Until everybody has read and committed everything: from then on nobody has anything to write."""
        for role, topics in (
            ("eager", ["orders"]),
            ("cooperative", ["orders"]),
            ("next", ["orders", "payments"]),
            ("storm", ["orders"]),
            ("next-storm", ["payments"]),
        ):
            wanted = {name: self._end(name) for topic in topics for name in _names(topic)}
            self._wait(partial(self._has_committed, role, wanted))

    def _has_committed(self, role: str, offsets: dict[str, int]) -> bool:
        return self._offsets(role) == offsets

    def _is_noticed(self) -> bool:
        """The surviving broker knows that partitions have no leader."""
        described = self._admin.list_topics("__consumer_offsets", timeout=_LIMIT_S)
        leaders = {it.id: it.leader for it in described.topics["__consumer_offsets"].partitions.values()}
        return {number for number, leader in leaders.items() if leader < 0} == set(self.truth.leaderless)

    def _describe(self, when: str) -> None:
        """All tools at once: each is a JVM that waits most of its time."""
        folder = self._evidence / "commands"
        folder.mkdir(parents=True, exist_ok=True)
        groups = ("kafka-consumer-groups", "--timeout", "20000", "--describe", "--all-groups")
        asked: dict[str, tuple[str, ...]] = {"topics": ("kafka-topics", "--describe")}
        if when == "before":
            asked |= {
                "groups-offsets": (*groups, "--offsets"),
                "groups-members": (*groups, "--members", "--verbose"),
                "groups-state": (*groups, "--state"),
            }
        else:
            asked |= {"groups-list": ("kafka-consumer-groups", "--timeout", "5000", "--list")}
        with_survivor = ("--bootstrap-server", f"127.0.0.1:{self._cluster.find(1).port}")
        answers = {
            name: _Task(partial(self._cluster.tool, tool[0], *with_survivor, *tool[1:]))
            for name, tool in asked.items()
        }
        for name, task in answers.items():
            answer = task.result()
            (folder / f"{when}-{name}.txt").write_text(answer.stdout)
            assert when == "during" or answer.status == 0, answer

    def _keep(self) -> None:
        for node in self._cluster.nodes.values():
            folder = self._evidence / str(node).replace(" ", "-")
            folder.mkdir(parents=True)
            shutil.copy2(node.log, folder / "server.log")
            shutil.copy2(node.config, folder / "server.properties")
            if node.kind == "broker":
                _copy_disk(node.data, folder / "data")

    # Groups.

    def _name(self, role: str) -> str:
        return self.truth.groups[role].name

    def _consumer(self, group: str, **settings: Any) -> Consumer:
        return Consumer(
            {
                **self._quietly,
                "group.id": group,
                "client.id": "incident",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                **settings,
            }
        )

    def _join(self, role: str, number: int, settings: dict[str, Any], topics: Sequence[str]) -> "_Member":
        """A member that has its share of the partitions already."""
        name = self._name(role)
        member = _Member(self._consumer(name, **settings, **{"client.id": f"{name}-{number}"}), topics)
        self._members.append(member)
        self._wait(member.assigned.is_set)
        return member

    def _consume_once(self, role: str, topic: str, most: int = sys.maxsize) -> dict[str, int]:
        """A group reads, commits and is left; returns where it stands."""
        with _closing(
            self._consumer(self._name(role), **_EAGER, **{"enable.auto.commit": False})
        ) as consumer:
            consumer.subscribe([topic])
            wanted = {name: min(most, self._end(name)) for name in _names(topic)}
            seen: dict[str, int] = {}
            deadline = time.monotonic() + _LIMIT_S
            while any(seen.get(name, 0) < offset for name, offset in wanted.items()):
                assert time.monotonic() < deadline, (seen, wanted)
                message = consumer.poll(0.5)
                if message is not None and not message.error():
                    offset = message.offset()
                    assert offset is not None
                    name = f"{message.topic()}-{message.partition()}"
                    seen[name] = min(offset + 1, wanted[name])
            # With the leader epoch, as consumers commit; who resets by hand has none.
            consumer.commit(
                offsets=[_position(name, offset, leader_epoch=0) for name, offset in wanted.items()],
                asynchronous=False,
            )
        return wanted

    def _offsets(self, role: str) -> dict[str, int]:
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self._name(role))])
        (answer,) = (future.result(_LIMIT_S) for future in asked.values())
        return {_text(it): it.offset for it in answer.topic_partitions if it.offset >= 0}

    # Records.

    def _produce(self, number: int) -> None:
        producer = Producer(self._quietly)
        for topic, partitions in TOPICS.items():
            for partition in range(partitions):
                for _ in range(number):
                    producer.produce(topic, b"record", partition=partition)
        assert producer.flush(_LIMIT_S) == 0

    @contextmanager
    def _producing(self) -> Iterator[None]:
        over = threading.Event()

        def slowly() -> None:
            while not over.wait(0.5):
                self._produce(1)

        task = _Task(slowly)
        try:
            yield
        finally:
            over.set()
            task.result()

    def _end(self, name: str) -> int:
        with _closing(self._consumer("nobody")) as consumer:
            return int(consumer.get_watermark_offsets(_position(name), timeout=_LIMIT_S)[1])

    def _wait(self, condition: Callable[[], object], limit_s: float = _LIMIT_S) -> None:
        deadline = time.monotonic() + limit_s
        while not _holds(condition):
            assert time.monotonic() < deadline, f"did not come true within {limit_s} s"
            time.sleep(0.1)


_EAGER = {**_CLASSIC, "partition.assignment.strategy": "range"}
_COOPERATIVE = {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}
_NEXT = {"group.protocol": "consumer"}
_CAST = (
    # What they are in the story; whether their coordinator is among the dead; what happens to them.
    ("expired", False, "classic: consumed, committed, left; its offsets expired"),
    ("eager", True, "classic, range: two members, steady"),
    ("cooperative", False, "classic, cooperative-sticky: two members, steady"),
    ("next", True, "KIP-848: three members, steady"),
    ("storm", False, "classic, range: two members, and one that came and went"),
    ("next-storm", True, "KIP-848: two members, and one that came and went"),
    ("transactional", True, "offsets in transactions: one committed, one aborted"),
    ("rewound", False, "classic: consumed, left, set back to the earliest offsets"),
    ("skipped", True, "classic: consumed, left, set to the latest offsets"),
    ("deleted", False, "classic: consumed, left, deleted"),
)


class _Member(threading.Thread):
    """Polls until it is stopped."""

    def __init__(self, consumer: Consumer, topics: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.assigned = threading.Event()
        self._consumer, self._over, self._leaves = consumer, threading.Event(), True
        consumer.subscribe(list(topics))
        self.start()

    def run(self) -> None:
        while not self._over.is_set():
            self._consumer.poll(0.1)
            if not self.assigned.is_set() and self._consumer.assignment():
                self.assigned.set()
        if self._leaves:
            self._consumer.close()

    def stop(self) -> None:
        """It leaves its group."""
        self._over.set()
        self.join(_LIMIT_S)

    def abandon(self) -> None:
        self._leaves = False
        self._over.set()


class _Task(threading.Thread):
    """A function beside us; `result` waits for it, and raises what it raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        self.join(3 * _LIMIT_S)
        assert not self.is_alive(), "did not end in time"
        if self._error is not None:
            raise self._error
        return self._value


@contextmanager
def _closing(consumer: Consumer) -> Iterator[Consumer]:
    try:
        yield consumer
    finally:
        consumer.close()


def _holds(condition: Callable[[], object]) -> bool:
    """Coordinators that load, and leaders that are elected, answer with errors for a while."""
    try:
        return bool(condition())
    except KafkaException:
        return False


def _copy_disk(data: Path, into: Path) -> None:
    """The offsets topic and who the disk belongs to: what an operator would save."""
    into.mkdir()
    shutil.copy2(data / "meta.properties", into)
    # An index is as large as it may ever become as long as its segment is written to.
    without = shutil.ignore_patterns("*.index", "*.timeindex", "*.txnindex")
    for partition in sorted(data.glob("__consumer_offsets-*")):
        shutil.copytree(partition, into / partition.name, ignore=without)


def _names(topic: str) -> Iterable[str]:
    return (f"{topic}-{number}" for number in range(TOPICS[topic]))


def _text(position: TopicPartition) -> str:
    return f"{position.topic}-{position.partition}"


def _position(name: str, offset: int = 0, **more: Any) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition), offset, **more)


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
