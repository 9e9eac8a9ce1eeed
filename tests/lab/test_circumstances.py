"""Faults of brokers, partitions and coordinators, seen by a client of the real fabric."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kelpie.errors import ErrorCode
from kelpie.lab import SyncCluster
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopics
from tests.lab.client import Client

WaitUntil = Callable[..., None]
OFFSETS = "__consumer_offsets"
PARTITIONS = 5


@pytest.fixture
def cluster() -> Iterator[SyncCluster]:
    with SyncCluster(3, replication=3, offsets_partitions=PARTITIONS) as cluster:
        cluster.create_topic("orders", 3)
        yield cluster


@pytest.fixture
def clients(cluster: SyncCluster) -> Iterator[dict[int, Client]]:
    clients = {node: Client(cluster, at) for at, node in enumerate(cluster.node_ids)}
    yield clients
    for client in clients.values():
        client.socket.close()


def _topic(client: Client, name: str) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.ask(request, 4).topics
    return topic


def _coordinator(client: Client, group: str, wait_until: WaitUntil) -> int:
    found: list[Any] = []

    def look() -> bool:
        found[:] = [client.ask(FindCoordinatorRequest(key=group))]
        return bool(found[0].error_code == 0)

    wait_until(look)
    node: int = found[0].node_id
    return node


def _commit(client: Client, group: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=None
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    code: int = (
        client.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 2).topics[0].partitions[0].error_code
    )
    return code


def _offset(client: Client, group: str) -> int:
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
    answer = client.ask(OffsetFetchRequest(group_id=group, topics=[topic]), 1)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def test_a_broker_behind_a_wall_is_alive_and_cannot_be_reached(
    cluster: SyncCluster, clients: dict[int, Client]
) -> None:
    """Others go on listing it as alive and leading; lifted, it takes connections again."""
    _topic(clients[2], "orders")
    with cluster.wall_off(2) as fault:
        assert fault.hits == 1
        with pytest.raises(ConnectionRefusedError):
            Client(cluster, node=1)
        listed = clients[1].ask(MetadataRequest(topics=[]), 1).brokers
        assert {broker.node_id for broker in listed} == {1, 2, 3}
    with Client(cluster, node=1) as client:
        assert client.ask(MetadataRequest(topics=[]), 1).brokers


def test_a_frozen_broker_does_not_know_what_is_new(cluster: SyncCluster, clients: dict[int, Client]) -> None:
    """Its neighbours do; thawed, it does too."""
    with cluster.freeze_metadata(2) as fault:
        cluster.create_topic("new")
        assert _topic(clients[2], "new").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert _topic(clients[1], "new").error_code == 0
        assert fault.hits == 1
    assert _topic(clients[2], "new").error_code == 0


def test_a_partition_without_a_leader_says_so(cluster: SyncCluster, clients: dict[int, Client]) -> None:
    """Until the fault is lifted, which elects one."""
    with cluster.make_leaderless("orders", 1) as fault:
        partition = next(own for own in _topic(clients[1], "orders").partitions if own.partition_index == 1)
        assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert fault.hits == 1
    assert all(own.error_code == 0 for own in _topic(clients[1], "orders").partitions)


def test_groups_on_a_leaderless_offsets_partition_have_no_coordinator(
    cluster: SyncCluster, clients: dict[int, Client], wait_until: WaitUntil
) -> None:
    """Error 15 for the group on it, and nothing for its neighbour; the fault counts those answers."""
    hit, healthy = "billing-0", "billing-1"
    assert partition_for(hit, PARTITIONS) != partition_for(healthy, PARTITIONS)
    _coordinator(clients[1], hit, wait_until)
    with cluster.make_leaderless(OFFSETS, partition_for(hit, PARTITIONS)) as fault:
        for client in clients.values():
            assert client.ask(FindCoordinatorRequest(key=hit)).error_code == 15
            assert client.ask(FindCoordinatorRequest(key=healthy)).error_code == 0
        assert fault.hits == 3
    assert clients[1].ask(FindCoordinatorRequest(key=hit)).error_code == 0


def test_an_isr_shrinks_and_grows_again(
    cluster: SyncCluster, clients: dict[int, Client], wait_until: WaitUntil
) -> None:
    """The others fall out while the fault lasts, and come back when it is lifted."""
    leader = _topic(clients[1], "orders").partitions[0].leader_id
    with cluster.shrink_isr("orders", 0, [leader]):
        assert _topic(clients[1], "orders").partitions[0].isr_nodes == [leader]
    wait_until(lambda: len(_topic(clients[1], "orders").partitions[0].isr_nodes) == 3)


def test_a_lost_broker_hands_over_what_it_led(
    cluster: SyncCluster, clients: dict[int, Client], wait_until: WaitUntil
) -> None:
    """Killed: once its session is over. Stopped: at once. Isolated: its neighbours say so, it does not."""

    def leads(asked: int, node: int) -> bool:
        return any(own.leader_id == node for own in _topic(clients[asked], "orders").partitions)

    cluster.kill(2)
    wait_until(lambda: not leads(1, 2))
    assert leads(1, 3)
    cluster.stop(3)
    assert not leads(1, 3)
    cluster.start(2)
    cluster.start(3)
    isolated = _topic(clients[1], "orders").partitions[0].leader_id
    other = next(node for node in cluster.node_ids if node != isolated)
    with Client(cluster, isolated - 1) as cut_off, Client(cluster, other - 1) as neighbour:
        with cluster.isolate(isolated):
            wait_until(
                lambda: isolated not in [own.leader_id for own in _topic(neighbour, "orders").partitions]
            )
            assert isolated in [own.leader_id for own in _topic(cut_off, "orders").partitions]
        wait_until(lambda: isolated not in [own.leader_id for own in _topic(cut_off, "orders").partitions])


def test_a_coordinator_that_loads_slowly_says_that_it_loads(
    cluster: SyncCluster, clients: dict[int, Client], wait_until: WaitUntil
) -> None:
    """Error 14 from the new coordinator, and then the offset as it was."""
    node = _coordinator(clients[1], "g", wait_until)
    assert _commit(clients[node], "g", 7) == 0
    fault = cluster.slow_load(5000)  # Longer than a busy machine takes to ask.
    cluster.stop(node)
    survivor = next(other for other in cluster.node_ids if other != node)
    node = _coordinator(clients[survivor], "g", wait_until)
    assert _commit(clients[node], "g", 8) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert fault.hits == 1
    wait_until(lambda: _offset(clients[node], "g") == 7)
    fault.lift()


def test_offsets_are_lost_and_expire(
    cluster: SyncCluster, clients: dict[int, Client], wait_until: WaitUntil
) -> None:
    """Of one group, and not of another."""
    for group, lose in (("a", cluster.lose_offsets), ("b", cluster.expire_offsets)):
        node, keeper = (_coordinator(clients[1], name, wait_until) for name in (group, "keeper"))
        assert _commit(clients[node], group, 7) == _commit(clients[keeper], "keeper", 8) == 0
        assert lose(group).hits == 1
        assert (_offset(clients[node], group), _offset(clients[keeper], "keeper")) == (-1, 8)
