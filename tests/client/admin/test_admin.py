"""The admin client, on the lab and on a real broker: every question, every change, and partial answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kelpie.client import Admin, ClientError, Settings, SyncAdmin
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.lab import Cluster, SyncCluster
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.questions.offset_commit import OffsetToCommit
from kelpie.real.cluster import RealCluster
from tests.client.inhabitants import Inhabitants

PARTITIONS = 6
"""Of the offsets topic, with a single replica each: a dead broker takes its groups' coordinators away."""
GROUPS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
ORDERS = [TopicPartition("orders", number) for number in range(3)]


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60.0):
            await test()

    asyncio.run(limited())


@asynccontextmanager
async def _inhabited(persona: str = "4.3", **others: Any) -> AsyncIterator[tuple[Cluster, Inhabitants]]:
    """Three brokers, ten records in each partition of orders, and a commit of each group."""
    config = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0}
    async with Cluster(3, persona=persona, offsets_partitions=PARTITIONS, config=config, **others) as cluster:
        cluster.create_topic("orders", 3, replication=1)
        async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            living = Inhabitants(nodes)
            for name in ORDERS:
                await living.produce("orders", name.partition, 10)
            for group in GROUPS:
                await living.commit(group, "orders", {0: 4, 1: 5, 2: 6})
            yield cluster, living


def _fast(cluster: Cluster) -> Settings:
    return Settings.of(cluster.bootstrap_servers, request_timeout_s=0.5, connect_timeout_s=0.5)


@pytest.mark.parametrize("persona", ["4.3", "2.8"])
def test_questions_to_a_healthy_cluster(persona: str) -> None:
    """Each question returns rows of every item, and no failure."""

    async def test() -> None:
        async with _inhabited(persona) as (cluster, _), await Admin.open(cluster.bootstrap_servers) as admin:
            assert [broker.alive for broker in await admin.brokers()] == [True, True, True]
            assert {view.name for view in await admin.topics(["orders"])} == set(ORDERS)
            assert set(GROUPS) == {state.group for state in await admin.list_groups()}
            states = await admin.describe_groups(GROUPS)
            assert {state.group: state.state for state in states} == dict.fromkeys(GROUPS, "Empty")
            every = await admin.describe_all_groups()
            assert {state.group: state.state for state in every} == dict.fromkeys(GROUPS, "Empty")
            committed = await admin.committed(GROUPS)
            assert {(row.group, row.partition): row.offset for row in committed} == {
                (group, number): offset for group in GROUPS for number, offset in enumerate((4, 5, 6))
            }
            ends = await admin.log_ends(ORDERS)
            assert {(row.name, row.earliest, row.latest, row.stable) for row in ends} == {
                (name, 0, 10, 10) for name in ORDERS
            }
            assert {row.of for row in await admin.settings(["orders"])} == {"topic orders"}
            first = await admin.offsets_at(dict.fromkeys(ORDERS, 0))
            assert {name: found.offset for name, found in first.items()} == dict.fromkeys(ORDERS, 0)
            sizes = await admin.log_sizes(ORDERS)
            assert {row.name for row in sizes if row.size > 10 and row.node > 0} == set(ORDERS)
            for answer in (states, every, committed, ends, sizes):
                assert answer.failures == {}

    _run(test)


def test_many_groups_cost_one_request_to_each_coordinator() -> None:
    """Requests grow with brokers, not with groups."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            await living.commit("alpha", "orders", {0: 4})
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                admin = Admin(nodes)
                await admin.describe_groups(GROUPS)
                before = nodes.counters.by_api.copy()
                await admin.committed(GROUPS)
                spent = nodes.counters.by_api - before
                assert set(spent) == {"OffsetFetch"}
                assert spent["OffsetFetch"] <= 3

    _run(test)


def test_describing_all_groups_looks_up_no_coordinator() -> None:
    """KoP takes a FindCoordinator for that of a consumer, and writes it down."""

    async def test() -> None:
        async with _inhabited() as (cluster, living):
            member = await living.join("alpha", "orders", 3)
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                admin = Admin(nodes)
                await admin.brokers()
                before = nodes.counters.by_api.copy()
                states = {state.group: state for state in await admin.describe_all_groups()}
                spent = nodes.counters.by_api - before
            assert set(spent) <= {"ListGroups", "DescribeGroups", "ConsumerGroupDescribe"}
            assert spent.total() <= 9
            assert [row.member_id for row in states["alpha"].members] == [member.member_id]
            assert set(states) == set(GROUPS)

    _run(test)


def test_a_dead_broker_fails_only_its_own_groups_and_partitions() -> None:
    """Partial answers: each failure is named with its item, and the other items are answered."""

    async def test() -> None:
        async with _inhabited() as (cluster, _), await Admin.open(_fast(cluster)) as admin:
            coordinators = {row.group: row.node_id for row in await admin.coordinators(GROUPS)}
            leaders = {view.name: view.leader for view in await admin.topics(["orders"])}
            dead = coordinators["alpha"]
            await cluster.kill(dead)
            lost = {group for group, node in coordinators.items() if node == dead}
            states = await admin.describe_groups(GROUPS)
            assert {state.group for state in states if not state.error} == set(GROUPS) - lost
            assert set(states.failures) == {f"group {group}" for group in lost}
            committed = await admin.committed(GROUPS)
            assert {row.group for row in committed} == set(GROUPS) - lost
            assert {row.name for row in committed.unasked} == lost
            ends = await admin.log_ends(ORDERS)
            alive = {name for name, node in leaders.items() if node != dead}
            assert {row.name for row in ends if not row.error} == alive
            listed = await admin.list_groups()
            assert {state.group for state in listed} == set(GROUPS) - lost
            assert {row.name for row in listed.unasked} <= {str(dead)}
            every = await admin.describe_all_groups()
            assert {state.group for state in every} == set(GROUPS) - lost
            assert {row.name for row in every.unasked} <= {str(dead)}

    _run(test)


def test_patience_waits_until_the_coordinator_is_back() -> None:
    """A coordinator that is away for a moment is no failure for a patient client."""

    async def test() -> None:
        async with _inhabited() as (cluster, _), await Admin.open(_fast(cluster), patience_s=30.0) as admin:
            (row,) = await admin.coordinators(["alpha"])
            await cluster.kill(row.node_id)
            asking = asyncio.create_task(admin.describe_groups(["alpha"]))
            done, _ = await asyncio.wait({asking}, timeout=0.3)
            assert not done
            await cluster.start(row.node_id)
            states = await asking
            assert [state.state for state in states] == ["Empty"]
            assert states.failures == {}

    _run(test)


def test_an_error_that_lasts_is_not_waited_out() -> None:
    """A group with members refuses a commit by others, however long one waits."""

    async def test() -> None:
        async with _inhabited() as (_, living):
            admin = Admin(living.nodes, patience_s=50.0)
            await living.join("alpha", "orders")
            rows = await admin.commit("alpha", {ORDERS[0]: 1})
            assert [row.error for row in rows] == [ErrorCode.UNKNOWN_MEMBER_ID]

    _run(test)


def test_changes() -> None:
    """Commits, deletions, elections and reassignments say what happened to each item."""

    async def test() -> None:
        async with _inhabited() as (cluster, _), await Admin.open(cluster.bootstrap_servers) as admin:
            offsets: dict[TopicPartition, int | OffsetToCommit] = {
                ORDERS[0]: OffsetToCommit(3, metadata="by hand"),
                ORDERS[1]: 2,
            }
            assert (await admin.commit("new", offsets)).failures == {}
            committed = {row.name: row for row in await admin.committed(["new"])}
            assert {name: row.offset for name, row in committed.items()} == {ORDERS[0]: 3, ORDERS[1]: 2}
            assert committed[ORDERS[0]].metadata == "by hand"
            assert (await admin.delete_offsets("new", [ORDERS[1]])).failures == {}
            assert [row.name for row in await admin.committed(["new"])] == [ORDERS[0]]
            deleted = await admin.delete_groups(["new", "missing"])
            assert {row.group: row.error for row in deleted} == {
                "new": ErrorCode.NONE,
                "missing": ErrorCode.GROUP_ID_NOT_FOUND,
            }
            assert [state.state for state in await admin.describe_groups(["new"])] == ["Dead"]
            elected = await admin.elect(ORDERS)
            assert {row.name: row.error for row in elected} == dict.fromkeys(ORDERS, 0)
            leader = next(view.leader for view in await admin.topics(["orders"]) if view.name == ORDERS[0])
            other = next(node for node in cluster.node_ids if node != leader)
            assert (await admin.reassign({ORDERS[0]: [other]})).failures == {}
            assert isinstance((await admin.reassignments()).rows, list)

    _run(test)


def test_a_question_creates_no_offsets_topic_and_a_commit_does() -> None:
    """Looking changes nothing; a commit needs a coordinator, and so the topic."""

    async def test() -> None:
        async with Cluster(1, offsets_partitions=PARTITIONS) as cluster:
            cluster.create_topic("orders", 3, replication=1)
            async with await Admin.open(cluster.bootstrap_servers, patience_s=20.0) as admin:
                impatient = Admin(admin._rounds.nodes)
                assert set((await impatient.describe_groups(["first"])).failures) == {"group first"}
                assert OFFSETS_TOPIC not in {view.topic for view in await admin.topics()}
                assert (await admin.commit("first", {ORDERS[0]: 1})).failures == {}
                assert OFFSETS_TOPIC in {view.topic for view in await admin.topics()}
                assert [row.offset for row in await admin.committed(["first"])] == [1]

    _run(test)


def test_an_old_broker_is_asked_for_named_partitions() -> None:
    """Kafka 0.10.0 and older tell only offsets of partitions that are named."""

    async def test() -> None:
        async with _inhabited("0.9") as (cluster, _), await Admin.open(cluster.bootstrap_servers) as admin:
            assert {row.offset for row in await admin.committed(["alpha"])} == {4, 5, 6}
            deleted = await admin.delete_groups(["alpha"])
            assert "does not know DeleteGroups" in deleted.failures["group alpha"]

    _run(test)


def test_the_synchronous_twin_has_every_method() -> None:
    """Whoever adds a question adds it to both."""
    public = {name for name in vars(Admin) if not name.startswith("_")} - {"open", "can_delete_groups"}
    assert public <= set(vars(SyncAdmin))


def test_the_synchronous_twin_on_the_lab() -> None:
    """The same answers without an event loop; a cluster that does not answer raises."""
    with SyncCluster(1, offsets_partitions=PARTITIONS) as cluster:
        cluster.create_topic("orders", 3, replication=1)
        with SyncAdmin(cluster.bootstrap_servers, patience_s=20.0) as admin:
            assert admin.commit("alpha", {ORDERS[0]: 7}).failures == {}
            assert [row.offset for row in admin.committed(["alpha"])] == [7]
        bootstrap = cluster.bootstrap_servers
    with pytest.raises(ClientError):
        SyncAdmin(Settings.of(bootstrap, connect_timeout_s=0.5))


def test_sizes_of_logs_whose_leader_is_dead_fail_alone() -> None:
    """And a partition that is nowhere."""

    async def test() -> None:
        async with _inhabited() as (cluster, _), await Admin.open(_fast(cluster)) as admin:
            leaders = {view.name: view.leader for view in await admin.topics(["orders"])}
            await cluster.kill(leaders[ORDERS[0]])
            sizes = await admin.log_sizes([*ORDERS, TopicPartition("nowhere", 0)])
            dead = {name for name, leader in leaders.items() if leader == leaders[ORDERS[0]]}
            assert {row.name for row in sizes} == set(ORDERS) - dead
            assert sizes.failures.keys() == {f"partition {name}" for name in (*dead, "nowhere-0")}

    _run(test)


def test_on_a_real_broker(real_kafka: Callable[..., RealCluster]) -> None:
    """Kafka 4.3.1 gives the same answers as the lab."""
    cluster = real_kafka(version="4.3.1", brokers=1)
    group = "admin-test"

    async def test() -> None:
        async with await Admin.open(cluster.bootstrap_servers, patience_s=30.0) as admin:
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                await Inhabitants(nodes).topic("admin-orders", 2)
            names = [TopicPartition("admin-orders", number) for number in range(2)]
            assert (await admin.commit(group, dict.fromkeys(names, 0))).failures == {}
            assert group in {state.group for state in await admin.list_groups()}
            assert [state.state for state in await admin.describe_groups([group])] == ["Empty"]
            assert [row.offset for row in await admin.committed([group])] == [0, 0]
            assert [row.latest for row in await admin.log_ends(names)] == [0, 0]
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                await Inhabitants(nodes).produce("admin-orders", 0, 10)
            written, empty = await admin.log_sizes(names)
            assert (written.size > 10, written.node, empty.size) == (True, 1, 0)
            assert {row.error for row in await admin.elect(names)} == {0}
            assert (await admin.delete_offsets(group, names[:1])).failures == {}
            assert (await admin.delete_groups([group])).failures == {}
            assert [state.state for state in await admin.describe_groups([group])] == ["Dead"]

    _run(test)
