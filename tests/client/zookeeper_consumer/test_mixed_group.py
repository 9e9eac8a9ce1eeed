"""Kelpie's consumer and Kafka's own ZookeeperConsumerConnector in one group, on real brokers.

While members come, go and die, records are produced all the time. In the end every partition has one owner,
every record that a broker took was delivered, and no offset went backwards under a consumer of Kelpie's.
Kafka 0.8 reads offsets before it claims a partition, so under its own consumers an offset can go back by a
moment's work; that is counted, not forbidden.
"""

import asyncio
import logging
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kelpie.client.client_errors import ClientError
from kelpie.client.settings import Settings
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from kelpie.real.process import Jvm
from kelpie.zookeeper.effects import PartitionsLost
from tests.client.consumer.producing import produce, speak_as_kafka_0_8
from tests.client.zookeeper_client import kazoo_client
from tests.client.zookeeper_consumer.group import GroupTree, Member, expire, until

pytestmark = pytest.mark.real
PARTITIONS = 6
AWAY_S = 130.0
JAVA_SETTINGS = {
    "zookeeper.session.timeout.ms": 6_000,
    "rebalance.max.retries": 60,
    "rebalance.backoff.ms": 300,
    "auto.commit.interval.ms": 300,
}


class MixedGroup:
    """The members of both kinds, what was produced, and what ZooKeeper has of the group."""

    def __init__(self, cluster: RealCluster, client: Any, folder: Path) -> None:
        assert cluster.zookeeper_connect is not None
        self.cluster, self.hosts, self.folder = cluster, cluster.zookeeper_connect, folder
        self.topic = f"mixed-{uuid.uuid4().hex[:8]}"
        self.tree = GroupTree(client, self.topic, self.topic)
        self.members: dict[str, Member] = {}
        self.gone: list[Member] = []
        self.java: dict[str, Jvm] = {}
        self.gone_java: list[Jvm] = []
        self.produced: set[bytes] = set()
        self.backwards: list[tuple[int, int, int, str]] = []
        self._offsets: dict[int, int] = {}
        settings = Settings.of(cluster.bootstrap_servers)
        if cluster.release.version == "0.8.2.2":
            speak_as_kafka_0_8(settings)
        self._settings = settings
        self._stopped = asyncio.Event()
        created = cluster.tool(
            *("kafka-topics", "--create", "--topic", self.topic, "--partitions", str(PARTITIONS)),
            *("--replication-factor", str(cluster.size)),
        )
        assert created.status == 0, created.stdout + created.stderr

    # Members.

    async def join(self, name: str) -> Member:
        member = await Member.start(self.hosts, self.topic, self.topic)
        self.members[name] = member
        return member

    async def leave(self, name: str) -> None:
        member = self.members.pop(name)
        self.gone.append(member)
        await member.consumer.close()

    async def kill(self, name: str) -> None:
        member = self.members.pop(name)
        self.gone.append(member)
        await member.consumer.crash()

    def join_java(self, name: str) -> None:
        file = self.folder / f"{name}.properties"
        settings = {"group.id": self.topic, "consumer.id": name, **JAVA_SETTINGS}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        arguments = ("--topic", self.topic, "--consumer.config", str(file))
        self.java[name] = self.cluster.spawn_tool("kafka-console-consumer", *arguments)

    def end_java(self, name: str, how: signal.Signals) -> None:
        process = self.java.pop(name)
        self.gone_java.append(process)
        process.signal(how)
        assert process.wait(30)

    def stop_java(self, name: str) -> Jvm:
        """As a long garbage collection does: it is alive, and ZooKeeper hears nothing of it."""
        process = self.java.pop(name)
        process.signal(signal.SIGSTOP)
        return process

    def continue_java(self, name: str, process: Jvm) -> None:
        process.signal(signal.SIGCONT)
        self.java[name] = process

    # The state of the group.

    async def until_shared(self) -> None:
        """Every partition has one owner, and every living member its even share."""
        await self.until(self._is_shared)

    async def until(self, condition: Callable[[], object]) -> None:
        def look() -> object:
            self._look_at_offsets()
            return condition()

        await until(look, *self.members.values(), limit_s=90)

    def _is_shared(self) -> bool:
        ids = [f"{self.topic}_{name}" for name in self.java]
        ids += [member.consumer.consumer_id for member in self.members.values()]
        shares = self.tree.shares()
        reads = all(
            shares.get(member.consumer.consumer_id) == {each.partition for each in member.consumer.owned}
            for member in self.members.values()
        )
        even = {name: PARTITIONS // len(ids) for name in ids}
        return reads and {name: len(share) for name, share in shares.items()} == even

    def _look_at_offsets(self) -> None:
        owners = self.tree.owners()
        for partition, offset in self.tree.offsets().items():
            before = self._offsets.get(partition, 0)
            if offset < before:
                self.backwards.append((partition, before, offset, owners.get(partition, ("none", 0))[0]))
            self._offsets[partition] = offset

    # Records.

    async def produce(self) -> None:
        """Small batches to all partitions in turn, until stopped. Only what a broker confirmed counts."""
        for number in count():
            if self._stopped.is_set():
                return
            values = [f"{number}-{each}" for each in range(5)]
            with suppress(ClientError):
                await produce(self._settings, TopicPartition(self.topic, number % PARTITIONS), values)
                self.produced |= {value.encode() for value in values}

    def stop_producing(self) -> None:
        self._stopped.set()

    def delivered(self) -> Counter[bytes]:
        counts: Counter[bytes] = Counter()
        for member in [*self.members.values(), *self.gone]:
            counts.update(member.values)
        for process in [*self.java.values(), *self.gone_java]:
            counts.update(process.said().encode().splitlines())
        return counts

    async def finish(self) -> Counter[bytes]:
        """Wait for the last record, and judge."""
        self.stop_producing()
        with suppress(AssertionError):
            await self.until(lambda: self.produced <= set(self.delivered()))
        delivered = self.delivered()
        lost = sorted(self.produced - set(delivered))
        assert not lost, f"{len(lost)} of {len(self.produced)} records lost: {lost[:10]}"
        assert len(self.produced) > 100, "there was something to lose"
        owned_by_ours = {member.consumer.consumer_id for member in [*self.members.values(), *self.gone]}
        assert [each for each in self.backwards if each[3] in owned_by_ours] == []
        return delivered


@pytest.fixture
def mixed_group(tmp_path: Path) -> Iterator[Callable[[RealCluster], MixedGroup]]:
    clients: list[Any] = []
    stack = []

    def group(cluster: RealCluster) -> MixedGroup:
        context = kazoo_client(str(cluster.zookeeper_connect))
        stack.append(context)
        clients.append(context.__enter__())
        return MixedGroup(cluster, clients[-1], tmp_path)

    yield group
    for context in stack:
        context.__exit__(None, None, None)


def _play(group: MixedGroup, scene: Callable[[MixedGroup], Any]) -> None:
    async def play() -> None:
        producing = asyncio.create_task(group.produce())
        try:
            async with asyncio.timeout(540):
                await scene(group)
                delivered = await group.finish()
            logging.getLogger(__name__).info(
                "%d records, %d delivered again, %d offsets went back under Kafka's own consumers",
                len(group.produced),
                sum(delivered.values()) - len(delivered),
                len(group.backwards),
            )
        finally:
            group.stop_producing()
            await asyncio.gather(*(member.consumer.close() for member in group.members.values()))
            await producing
            for name in list(group.java):
                group.end_java(name, signal.SIGKILL)

    asyncio.run(play())


async def _come_and_go(group: MixedGroup) -> None:
    await group.join("a")
    await group.until_shared()
    await group.until(lambda: len(group.tree.offsets()) == PARTITIONS)
    group.join_java("java-1")
    await group.until_shared()
    b = await group.join("b")
    await group.until_shared()
    group.end_java("java-1", signal.SIGKILL)
    await group.until_shared()
    await asyncio.to_thread(expire, group.hosts, b.consumer._session)
    await group.until(lambda: any(isinstance(event, PartitionsLost) for event in b.events))
    await group.until_shared()
    await group.leave("a")
    await group.until_shared()


async def _lose_more(group: MixedGroup) -> None:
    group.join_java("java-2")
    await group.until_shared()
    group.join_java("java-3")
    await group.until_shared()
    await asyncio.to_thread(group.cluster.kill, 2)
    before = len(group.produced)
    await group.until(lambda: len(group.produced) > before + 60)
    await group.until(lambda: len(set(group.delivered()) & group.produced) > before + 30)
    await group.until_shared()
    await asyncio.to_thread(group.cluster.start, 2)
    group.end_java("java-2", signal.SIGTERM)
    await group.until_shared()
    await group.join("c")
    await group.until_shared()
    await group.kill("b")
    await group.until_shared()
    await group.leave("c")
    await group.until_shared()


def test_members_of_both_kinds_share_a_group_through_joins_leaves_kill_and_expiry(
    real_kafka: Callable[..., RealCluster],
    mixed_group: Callable[[RealCluster], MixedGroup],
) -> None:
    """One protocol: neither kind may notice that the other one is not its own."""
    _play(mixed_group(real_kafka("0.9.0.1")), _come_and_go)


@pytest.mark.long
@pytest.mark.parametrize("version", ["0.8.2.2", "0.9.0.1"])
def test_a_mixed_group_survives_the_loss_of_a_broker_too(
    version: str,
    fresh_real_kafka: Callable[..., RealCluster],
    mixed_group: Callable[[RealCluster], MixedGroup],
) -> None:
    """All that can happen, one after the other, on two brokers, of which one is killed and comes back."""

    async def scene(group: MixedGroup) -> None:
        await _come_and_go(group)
        await _lose_more(group)

    _play(mixed_group(fresh_real_kafka(version, 2)), scene)


async def _pause_java(group: MixedGroup) -> None:
    await group.join("a")
    group.join_java("java-1")
    await group.until_shared()
    await group.until(lambda: len(group.tree.offsets()) == PARTITIONS)
    member = f"{group.topic}_java-1"

    def nodes() -> dict[int, int]:
        """Its partitions, with the session of each owner node."""
        return {at: session for at, (owner, session) in group.tree.owners().items() if owner == member}

    before, start = nodes(), group.tree.offsets()
    stopped = group.stop_java("java-1")
    try:
        await group.until_shared()  # Its session has expired, and "a" owns everything.
        await group.until(lambda: all(offset > start[at] for at, offset in group.tree.offsets().items()))
        reached = group.tree.offsets()
    finally:
        group.continue_java("java-1", stopped)
    seen = len(group.backwards)
    await group.until_shared()
    await group.until(lambda: nodes() and not set(nodes().values()) & set(before.values()))
    # Before it noticed, it may have written its old offsets over those of "a", which owned them by then.
    by_java = group.backwards[seen:]
    assert {at for at, *_ in by_java} <= set(before)
    logging.getLogger(__name__).info("the stopped member put %d offsets back", len(by_java))
    del group.backwards[seen:]
    await group.until(lambda: all(group.tree.offsets()[at] >= offset for at, offset in reached.items()))
    await group.until_shared()


async def _lose_zookeeper(group: MixedGroup) -> None:
    a = await group.join("a")
    await group.join("b")
    group.join_java("java-1")
    await group.until_shared()
    await group.until(lambda: len(group.tree.offsets()) == PARTITIONS)
    offsets = group.tree.offsets()
    await asyncio.to_thread(group.cluster.kill, "zookeeper")
    back_at = time.monotonic() + AWAY_S
    await until(lambda: time.monotonic() > back_at, *group.members.values(), limit_s=2 * AWAY_S)
    assert not a.consumer.owned, "it stops when its session may have expired"
    await asyncio.to_thread(group.cluster.start, "zookeeper")
    await until(lambda: group.tree.client.connected, *group.members.values())
    await group.until_shared()
    assert all(group.tree.offsets()[partition] >= offset for partition, offset in offsets.items())
    before = len(group.produced)
    await group.until(lambda: len(group.produced) > before + 60)
    await group.until(lambda: len(set(group.delivered()) & group.produced) > before + 30)


@pytest.mark.long
@pytest.mark.parametrize("version", ["0.8.2.2", "0.9.0.1"])
def test_a_member_of_kafkas_own_that_is_stopped_past_its_session_comes_back_into_a_mixed_group(
    version: str,
    real_kafka: Callable[..., RealCluster],
    mixed_group: Callable[[RealCluster], MixedGroup],
) -> None:
    """It reads on for a moment and delivers again; nothing is lost."""
    _play(mixed_group(real_kafka(version)), _pause_java)


@pytest.mark.long
@pytest.mark.parametrize("version", ["0.8.2.2", "0.9.0.1"])
def test_a_mixed_group_consumes_again_when_zookeeper_was_away_for_minutes(
    version: str,
    fresh_real_kafka: Callable[..., RealCluster],
    mixed_group: Callable[[RealCluster], MixedGroup],
) -> None:
    """Every session is older than its timeout by then. No record is lost, no committed offset goes back."""
    _play(mixed_group(fresh_real_kafka(version)), _lose_zookeeper)
