"""The shell alone on a real ZooKeeper: sessions, watches, owners. No broker answers, so nothing is read."""

import asyncio
import json
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from kelpie.client.zookeeper import ZooKeeperError
from kelpie.client.zookeeper_consumer import ZookeeperGroupConsumer
from kelpie.client.zookeeper_consumer.session import ZookeeperSession
from kelpie.model.names import TopicPartition
from kelpie.real.ports import free
from kelpie.real.zookeeper import RealZooKeeper
from kelpie.zookeeper.effects import PartitionsLost, PartitionsOwned, PartitionsReleased
from kelpie.zookeeper.requests import CreateEphemeral, Done
from kelpie.zookeeper.steps import (
    Cause,
    Conflict,
    Disconnected,
    NodeIgnored,
    Reconnected,
    RegistrationWaits,
    SessionExpired,
    Triggered,
)
from tests.client.zookeeper_client import kazoo_client
from tests.client.zookeeper_consumer.group import GroupTree, Member, config, expire, until

pytestmark = pytest.mark.real
GROUP, TOPIC = "billing", "orders"
EVERYTHING = {0, 1, 2, 3}


@pytest.fixture
def hosts(real_zookeeper: RealZooKeeper) -> str:
    return real_zookeeper.connect


@pytest.fixture
def tree(hosts: str) -> Iterator[GroupTree]:
    """A cluster of one broker, which is down, and a topic of four partitions."""
    with kazoo_client(hosts) as client:
        broker = {"jmx_port": -1, "timestamp": "1", "host": "127.0.0.1", "version": 1, "port": free(1)[0]}
        client.create("/brokers/ids/1", json.dumps(broker).encode(), makepath=True)
        partitions = {str(number): [1] for number in EVERYTHING}
        topic = json.dumps({"version": 1, "partitions": partitions}).encode()
        client.create(f"/brokers/topics/{TOPIC}", topic, makepath=True)
        yield GroupTree(client, GROUP, TOPIC)


def _run(scene: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(90):
            await scene

    asyncio.run(limited())


def _owns(tree: GroupTree, member: Member, *partitions: int) -> bool:
    own = {TopicPartition(TOPIC, number) for number in partitions}
    share = tree.shares().get(member.consumer.consumer_id, set())
    return share == set(partitions) and set(member.consumer.owned) == own


def test_two_consumers_in_one_process_share_the_partitions_and_leave_no_node_behind(
    hosts: str, tree: GroupTree
) -> None:
    """The nodes are those that Kafka 0.8.2.2 writes, so that its consumers can be in the group."""

    async def scene() -> None:
        one = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, one, 0, 1, 2, 3), one)
        two = await Member.start(hosts, GROUP, TOPIC)
        first, second = sorted([one, two], key=lambda member: member.consumer.consumer_id)
        await until(lambda: _owns(tree, first, 0, 1) and _owns(tree, second, 2, 3), one, two)
        value, stat = tree.client.get(f"/consumers/{GROUP}/ids/{one.consumer.consumer_id}")
        written = json.loads(value)
        assert written.pop("timestamp").isdigit()
        assert written == {"version": 1, "subscription": {TOPIC: 1}, "pattern": "static"}
        owner = tree.client.get(f"/consumers/{GROUP}/owners/{TOPIC}/0")
        assert owner[0].decode() == f"{first.consumer.consumer_id}-0"
        assert stat.ephemeralOwner, "it goes with the session"
        await two.consumer.close()
        assert tree.members() == {one.consumer.consumer_id}
        await until(lambda: _owns(tree, one, 0, 1, 2, 3), one)
        await one.consumer.close()
        assert (tree.members(), tree.owners()) == (set(), {})

    _run(scene())


def test_an_expired_session_is_told_and_the_consumer_comes_back_in_a_new_one(
    hosts: str, tree: GroupTree
) -> None:
    """Kafka 0.8 tries once, in a thread of ZkClient's, and a failure dies there."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        before = {session for _, session in tree.owners().values()}
        await asyncio.to_thread(expire, hosts, member.consumer._session)
        await until(lambda: member.has_seen(SessionExpired), member)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        assert not before & {session for _, session in tree.owners().values()}
        kinds = [type(event) for event in member.events]
        assert kinds == [PartitionsOwned, PartitionsLost, PartitionsOwned]
        await member.consumer.close()
        assert tree.members() == set()

    _run(scene())


def test_nodes_of_its_own_earlier_session_are_waited_out(hosts: str, tree: GroupTree) -> None:
    """Kafka 0.8 takes an owner node with its own name for a claim, and it vanishes with the old session."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        before = {session for _, session in tree.owners().values()}
        # The client gives its session up and breaks the connection; the server keeps the session for now.
        member.consumer.session_expired(member.consumer._session)
        await until(lambda: member.has_seen(RegistrationWaits), member)
        assert {session for _, session in tree.owners().values()} <= before
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        assert not before & {session for _, session in tree.owners().values()}
        await member.consumer.close()

    _run(scene())


class _Heard:
    """A listener that only remembers."""

    def __init__(self) -> None:
        self.session_ids: list[int] = []
        self.is_expired = False

    def session_connected(self, _: ZookeeperSession, session_id: int) -> None:
        self.session_ids.append(session_id)

    def session_disconnected(self, _: ZookeeperSession) -> None: ...

    def session_expired(self, _: ZookeeperSession) -> None:
        self.is_expired = True

    def session_watch_fired(self, _: ZookeeperSession, path: str) -> None: ...


def test_a_request_for_an_expired_session_is_never_carried_out_in_a_new_one(
    hosts: str, tree: GroupTree
) -> None:
    """Kazoo goes on with a new session by itself; an owner node in it would be one that nobody knows of."""

    async def scene() -> None:
        heard = _Heard()
        session = ZookeeperSession(hosts, 3_000, heard)
        session.start()
        await until(lambda: heard.session_ids)
        assert await session.carry_out([CreateEphemeral("/before", b"")]) == (Done(),)
        await asyncio.to_thread(expire, hosts, session)
        await until(lambda: heard.is_expired)
        assert await session.carry_out([CreateEphemeral("/after", b"")]) is None
        # Kazoo's thread ends. If it went on, it would now begin a session, and send what waits to be sent.
        ended = await asyncio.to_thread(session._client._connection.connection_stopped.wait, 5)
        created = [name for name in tree.client.get_children("/") if name in ("before", "after")]
        await session.abandon()
        assert created == []
        assert ended, "kazoo goes on"
        assert heard.session_ids[1:] == []

    _run(scene())


def test_partitions_of_a_killed_member_are_taken_over_when_its_session_ends(
    hosts: str, tree: GroupTree
) -> None:
    """More attempts fail than rebalance.max.retries allows; the consumer says so and goes on."""

    async def scene() -> None:
        one = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, one, 0, 1, 2, 3), one)
        await one.consumer.crash()
        two = await Member.start(hosts, GROUP, TOPIC, rebalance_max_retries=2, rebalance_backoff_ms=100)
        await until(lambda: two.has_seen(Conflict), two)
        assert tree.members() == {one.consumer.consumer_id, two.consumer.consumer_id}
        await until(lambda: _owns(tree, two, 0, 1, 2, 3), two)
        await two.consumer.close()

    _run(scene())


def test_reading_goes_on_when_zookeeper_comes_back_within_the_session(
    real_zookeeper: RealZooKeeper, hosts: str, tree: GroupTree
) -> None:
    """A restart of ZooKeeper is no reason to stop: the session and its nodes survive."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC, session_timeout_ms=60_000)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        await asyncio.to_thread(real_zookeeper.kill, "zookeeper")
        await until(lambda: member.has_seen(Disconnected), member)
        await asyncio.to_thread(real_zookeeper.start, "zookeeper")
        await until(lambda: member.has_seen(Reconnected), member)
        assert [type(event) for event in member.events] == [PartitionsOwned]
        tree.client.set(f"/brokers/topics/{TOPIC}", b'{"version":1,"partitions":{"0":[1]}}')
        await until(lambda: _owns(tree, member, 0), member)  # Its watches are set again.
        assert [type(event) for event in member.events] == [
            PartitionsOwned,
            PartitionsReleased,
            PartitionsOwned,
        ]
        await member.consumer.close()

    _run(scene())


def test_what_changed_while_the_connection_was_lost_is_seen(hosts: str, tree: GroupTree) -> None:
    """Kazoo forgets its watches then; ZooKeeper's own client does not."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC, session_timeout_ms=60_000)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        kazoo = member.consumer._session._client
        kazoo.set_hosts("127.0.0.1:1")  # Nobody listens there.
        kazoo._connection._socket.shutdown(socket.SHUT_RDWR)
        await until(lambda: member.has_seen(Disconnected), member)
        tree.client.set(f"/brokers/topics/{TOPIC}", b'{"version":1,"partitions":{"0":[1]}}')
        kazoo.set_hosts(hosts)
        await until(lambda: _owns(tree, member, 0), member)
        triggers = [made.step.cause for made in member.consumer.steps if isinstance(made.step, Triggered)]
        assert triggers == [Cause.PARTITIONS]
        await member.consumer.close()

    _run(scene())


def test_reading_stops_while_zookeeper_is_away_for_long_and_begins_again(
    real_zookeeper: RealZooKeeper, hosts: str, tree: GroupTree
) -> None:
    """The session may have expired, and another consumer may own the partitions."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        await asyncio.to_thread(real_zookeeper.kill, "zookeeper")
        await until(lambda: not member.consumer.owned, member)
        assert isinstance(member.events[-1], PartitionsLost), "the application is told"
        await asyncio.to_thread(real_zookeeper.start, "zookeeper")
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        await member.consumer.close()
        assert tree.members() == set()

    _run(scene())


def test_a_consumer_closes_in_time_without_zookeeper(
    real_zookeeper: RealZooKeeper, hosts: str, tree: GroupTree
) -> None:
    """Ctrl-C must end a program also in an outage."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        await asyncio.to_thread(real_zookeeper.kill, "zookeeper")
        await member.consumer.close(limit_s=1.0)
        with pytest.raises(RuntimeError, match="closed"):
            await member.consumer.poll(0.1)

    _run(scene())
    real_zookeeper.start("zookeeper")


def test_a_node_that_no_kafka_writes_ends_the_consumer_with_a_reason_and_frees_its_partitions(
    hosts: str, tree: GroupTree
) -> None:
    """A consumer that cannot go on must not hold partitions that nobody reads."""

    async def scene() -> None:
        member = await Member.start(hosts, GROUP, TOPIC)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        tree.client.create(f"/consumers/{GROUP}/ids/garbage", b"no json", ephemeral=True)
        await until(lambda: member.has_seen(NodeIgnored), member)
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        member.consumer._fail(ZooKeeperError("put to the test"))
        with pytest.raises(ZooKeeperError, match="put to the test"):
            await member.read(5.0)
        await until(lambda: tree.owners() == {} and tree.members() == {"garbage"})
        await member.consumer.close()

    _run(scene())


@pytest.mark.parametrize("group", ["billing eu", "биллинг", "a%2Fb", "$(id)", '"quoted"\\'])
def test_strange_names_of_groups_work(hosts: str, tree: GroupTree, group: str) -> None:
    """ZooKeeper takes nearly every name, and so does Kafka 0.8's layout."""

    async def scene() -> None:
        member = await Member.start(hosts, group, TOPIC)
        tree.group = group
        await until(lambda: _owns(tree, member, 0, 1, 2, 3), member)
        await member.consumer.close()
        assert tree.members() == set()

    _run(scene())


def test_what_is_not_there_is_said_at_once(hosts: str, real_zookeeper: RealZooKeeper) -> None:
    """A wrong address or path is the most frequent mistake."""

    async def refused(address: str, limit_s: float = 10.0) -> str:
        with pytest.raises(ZooKeeperError) as error:
            await ZookeeperGroupConsumer.open(address, config(GROUP, TOPIC), limit_s=limit_s)
        return str(error.value)

    async def scene() -> None:
        assert "keeps no Kafka cluster" in await refused(hosts)
        assert "has no node /kafka" in await refused(f"{hosts}/kafka")
        assert "did not answer within 0.5 s" in await refused(f"127.0.0.1:{free(1)[0]}", 0.5)

    _run(scene())
