"""Beginning and end of a cluster: ports, threads, sockets, and what is left of them."""

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kelpie.client.loop_thread import LoopThread
from kelpie.lab import Cluster, LabError, SyncCluster, virtual_time
from kelpie.lab.driver import ClusterClock
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.model.time import Instant
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.sync_group import SyncGroupRequest
from tests.lab.client import Client, heartbeat
from tests.lab.stub import StubCluster, SyncStubCluster

WaitUntil = Callable[..., None]


@pytest.fixture(scope="module", autouse=True)
def _older_objects_are_not_looked_at() -> None:
    """The garbage collector would look at all of them, twice for each test: see tests/conftest.py."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(wait_until: WaitUntil) -> Iterator[None]:
    """No thread and no open file more than before."""
    threads, files = set(threading.enumerate()), _open_files()
    yield
    assert set(threading.enumerate()) == threads
    wait_until(lambda: _open_files() <= files)


def _open_files() -> int:
    """Without those that nobody refers to any more: asyncio closes some only then."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _free_ports(count: int) -> int:
    """The first of some neighbouring ports that are free right now."""
    for first in range(20_000, 30_000, count):
        probes = [socket.socket() for _ in range(count)]
        try:
            for at, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + at))
            return first
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
    raise AssertionError("no free ports")


def test_a_cluster_waits_for_nothing_when_it_opens() -> None:
    """A test that needs one pays for the work alone: no timer passes before all brokers are up."""

    async def open_and_close() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with Cluster(3, network=MemoryNetwork()) as cluster:
            assert list(cluster.node_ids) == [1, 2, 3]
            return loop.time() - began

    assert virtual_time.run(open_and_close()) == 0


def test_each_broker_of_an_open_cluster_answers_for_all_of_them() -> None:
    """A client may begin at any of them."""
    with SyncCluster(brokers=3) as cluster:
        for node in range(3):
            with Client(cluster, node) as client:
                brokers = client.ask(MetadataRequest(topics=[]), 1).brokers
                addresses = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
                assert addresses == cluster.bootstrap_servers
                assert [broker.node_id for broker in brokers] == [1, 2, 3] == list(cluster.node_ids)


def test_the_asynchronous_cluster_is_the_same() -> None:
    """On the loop of whoever opens it."""

    async def play() -> str:
        async with Cluster(brokers=2, racks=["a", "b"]) as cluster:
            assert [broker.rack for broker in cluster.endpoints.values()] == ["a", "b"]
            fault = await cluster.kill(2)
            assert not cluster.is_alive(2)
            fault.lift()
            await cluster.wait_until(lambda state: state["brokers"][1]["alive"], 5)
            return cluster.bootstrap_servers

    assert len(asyncio.run(play()).split(",")) == 2


def test_a_port_and_the_next_ones() -> None:
    """As asked for; and again right after, though connections linger."""
    first = _free_ports(3)
    for _ in range(2):
        with SyncStubCluster(3, port=first) as cluster, Client(cluster, 2) as client:
            assert cluster.bootstrap_servers == ",".join(f"127.0.0.1:{first + at}" for at in range(3))
            assert client.is_served()


def test_a_taken_port_is_named() -> None:
    """With what to do about it; the ports before it are free again."""
    first = _free_ports(3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 2))
        taken.listen()
        with pytest.raises(LabError, match=rf"Port {first + 2} of 127.0.0.1 cannot be had \(Address"):
            SyncStubCluster(3, port=first).open()
        with pytest.raises(LabError, match=rf"Port {first + 2} "):
            SyncStubCluster(1, control_port=first + 2).open()
    with SyncStubCluster(3, port=first):
        pass


BAD: list[tuple[dict[str, Any], str]] = [
    ({"brokers": 0}, "A cluster of 0 brokers"),
    ({"brokers": 2, "racks": ["a"]}, "1 racks were given for 2 brokers"),
    ({"brokers": 2, "replication": 3}, "3 replicas need as many brokers"),
    ({"offsets_partitions": 0}, "offsets_partitions is 0"),
    ({"persona": "1.0"}, "no persona '1.0'; there are 0.9, 2.8, 3.9, 4.3"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_what_cannot_be_is_said_clearly(options: dict[str, Any], message: str) -> None:
    """Before anything is started."""
    with pytest.raises(LabError, match=message):
        SyncCluster(**options)


@pytest.mark.parametrize("port", [-1, 65_535, 70_000])
def test_ports_that_do_not_exist(port: int) -> None:
    """Also those that only the third broker would have."""
    with pytest.raises(LabError, match="does not exist"):
        SyncStubCluster(3, port=port).open()


def test_a_body_that_raises_leaves_nothing_behind() -> None:
    """Connections, stalled and waiting ones too, go with the cluster; the exception stays what it was."""
    with pytest.raises(ZeroDivisionError):
        _break_off()


def _break_off() -> None:
    with SyncStubCluster(2, control_port=0) as cluster, Client(cluster) as client:
        client.send(heartbeat("slow"))
        cluster.stall()
        cluster.delay(60_000)
        cluster.kill(2)
        raise ZeroDivisionError


class _FailsInTheMiddle(StubCluster):
    def _new_fabric(self, now: Instant) -> Any:
        raise ArithmeticError("the fabric cannot be")


def test_a_start_that_fails_half_way_leaves_nothing_behind() -> None:
    """Ports are bound and the thread runs by then."""

    class Failing(SyncStubCluster):
        _new_twin = staticmethod(_FailsInTheMiddle)

    with pytest.raises(ArithmeticError):
        Failing(3, control_port=0).open()


def test_many_clusters_in_a_row_and_at_once() -> None:
    """What a test suite does."""
    for _ in range(20):
        with SyncCluster(1) as one, SyncCluster(1) as other:
            assert one.bootstrap_servers != other.bootstrap_servers
            with Client(one) as client:
                assert client.is_served()


def test_closing_twice_is_harmless_and_opening_twice_is_not() -> None:
    """A cluster has one life."""
    cluster = SyncStubCluster(1).open()
    with pytest.raises(LabError, match="open already"):
        cluster.open()
    fault = cluster.fail(16)
    cluster.close()
    cluster.close()
    fault.lift()
    with pytest.raises(LabError, match="not open"):
        cluster.describe()
    with pytest.raises(LabError, match="opened once"):
        cluster.open()


def test_a_closed_cluster_while_a_client_knocks() -> None:
    """Connections that are accepted in the moment of the end are closed as well."""
    for _ in range(10):
        cluster = SyncStubCluster(1).open()
        clients = [Client(cluster) for _ in range(5)]
        cluster.close()
        for client in clients:
            assert client.is_closed()
            client.socket.close()


def test_options_become_settings_and_settings_win() -> None:
    """By Kafka's names, as texts."""
    config = Cluster(
        5, replication=2, offsets_partitions=7, config={"auto.create.topics.enable": False}
    ).config
    assert config["offsets.topic.num.partitions"] == "7"
    assert config["offsets.topic.replication.factor"] == config["default.replication.factor"] == "2"
    assert config["auto.create.topics.enable"] == "false"
    assert Cluster(1).config["transaction.state.log.min.isr"] == "1"
    assert (
        Cluster(5, config={"offsets.topic.replication.factor": 1}).config["offsets.topic.replication.factor"]
        == "1"
    )


def test_a_frame_larger_than_the_setting_is_refused() -> None:
    """socket.request.max.bytes, as in Kafka."""
    with (
        SyncStubCluster(1, config={"socket.request.max.bytes": 100}) as cluster,
        Client(cluster) as client,
    ):
        assert client.is_served()
        client.send(heartbeat("g" * 200))
        assert client.is_closed()


def test_waiting_for_a_group() -> None:
    """Until it is stable with as many members as it should have; and not for ever."""
    settings = {"group.initial.rebalance.delay.ms": 0}
    with SyncCluster(1, offsets_partitions=4, config=settings) as cluster, Client(cluster) as client:
        _wait_for_coordinator(client, "g")
        joined = client.ask(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
        )
        with pytest.raises(TimeoutError, match="'g' did not become Stable"):
            cluster.wait_for_group("g", limit_s=0.05)
        client.send(
            SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, assignments=[])
        )
        assert cluster.wait_for_group("g", members=1)["members"] == 1


def _wait_for_coordinator(client: Client, group: str) -> None:
    deadline = time.monotonic() + 60
    while client.ask(FindCoordinatorRequest(key=group)).error_code:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("persona", ["0.9", "2.8", "3.9", "4.3"])
def test_a_topic_made_by_hand_is_there(persona: str) -> None:
    """With its partitions and replicas."""
    with SyncCluster(3, persona=persona) as cluster, Client(cluster) as client:
        cluster.create_topic("orders", 6, 2)
        (topic,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")])).topics
        assert [len(own.replica_nodes) for own in topic.partitions] == [2] * 6
        with pytest.raises(LabError, match="TOPIC_ALREADY_EXISTS"):
            cluster.create_topic("orders")


def test_the_clock_never_runs_backwards() -> None:
    """Somebody sets the machine's clock; sessions do not notice."""
    wall, monotonic = [1_000_000.0], [50.0]
    clock = ClusterClock(lambda: wall[0], lambda: monotonic[0])
    assert clock.now() == 1_000_000_000
    wall[0] -= 3600
    monotonic[0] += 1.5
    assert clock.now() == 1_000_001_500
    assert clock.seconds_until(1_000_002_000) == pytest.approx(0.5)
    assert clock.seconds_until(0) == 0


def test_a_loop_in_a_thread_ends_with_what_it_runs() -> None:
    """Tasks that are left are cancelled, not lost."""
    thread = LoopThread("test")
    thread.start()
    ended: list[str] = []

    async def begin() -> None:
        async def endless() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("cancelled")

        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        assert not task.done()

    thread.run(begin)
    assert thread.run(lambda: 42) == 42
    thread.stop()
    thread.stop()
    assert ended == ["cancelled"]
