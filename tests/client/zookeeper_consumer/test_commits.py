"""When offsets are committed, on real brokers."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from kelpie.client.settings import Settings
from kelpie.consumer.positions.reset_policy import LATEST
from kelpie.model.names import TopicPartition
from kelpie.real.cluster import RealCluster
from tests.client.consumer.producing import produce
from tests.client.zookeeper_client import kazoo_client
from tests.client.zookeeper_consumer.group import GroupTree, Member, until

pytestmark = pytest.mark.real


def _play(cluster: RealCluster, scene: Callable[[GroupTree, str], Coroutine[Any, Any, None]]) -> None:
    """With a topic of two partitions, three records in each."""
    hosts, topic = str(cluster.zookeeper_connect), f"commits-{uuid.uuid4().hex[:8]}"
    created = cluster.tool(
        *("kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")
    )
    assert created.status == 0, created.stdout

    async def play(tree: GroupTree) -> None:
        for number in range(2):
            await produce(
                Settings.of(cluster.bootstrap_servers), TopicPartition(topic, number), ["a", "b", "c"]
            )
        async with asyncio.timeout(90):
            await scene(tree, hosts)

    with kazoo_client(hosts) as client:
        asyncio.run(play(GroupTree(client, topic, topic)))


def test_where_reading_begins_is_committed_before_the_first_record(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """Else the next owner would begin at the end, behind records that came in between: they would be lost."""

    async def scene(tree: GroupTree, hosts: str) -> None:
        member = await Member.start(hosts, tree.group, tree.topic, reset=LATEST)
        await until(lambda: tree.offsets() == {0: 3, 1: 3}, member)
        assert member.values == []
        await member.consumer.close()

    _play(real_kafka("0.9.0.1"), scene)


def test_records_in_hand_at_a_rebalance_are_not_committed_and_come_again(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """The application may not have dealt with them yet, and another member may have the partition now."""

    async def scene(tree: GroupTree, hosts: str) -> None:
        one = await Member.start(hosts, tree.group, tree.topic)
        await until(lambda: len(one.consumer.owned) == 2)
        assert await one.consumer.poll(10.0)
        two = await Member.start(hosts, tree.group, tree.topic)
        await until(lambda: len(one.consumer.owned) == 1 and len(two.consumer.owned) == 1)
        (partition,) = one.consumer.owned
        again = await one.consumer.poll(10.0)
        assert [record.value for record in again] == [b"a", b"b", b"c"]
        assert one.consumer.owned[partition] <= 0, "nothing of them counts as consumed"
        await one.read()
        await until(lambda: tree.offsets().get(partition.partition) == 3, one)
        await two.consumer.close()
        await one.consumer.close()

    _play(real_kafka("0.9.0.1"), scene)


def test_an_exception_of_the_application_leaves_its_last_records_uncommitted(
    real_kafka: Callable[..., RealCluster],
) -> None:
    """They may not have been dealt with; the others have."""

    async def scene(tree: GroupTree, hosts: str) -> None:
        one = await Member.start(hosts, tree.group, tree.topic)
        with suppress(ZeroDivisionError):
            async with one.consumer as consumer:
                first = await consumer.poll(10.0, most=1)
                second = await consumer.poll(10.0, most=1)
                assert (first[0].offset, second[0].offset) == (0, 1)
                raise ZeroDivisionError
        assert tree.offsets()[first[0].partition] == 1
        assert tree.members() == set()

    _play(real_kafka("0.9.0.1"), scene)
