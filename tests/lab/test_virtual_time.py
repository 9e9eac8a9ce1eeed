"""Time that jumps, and a network without sockets: what scenarios run on in tests."""

import asyncio
import time
from dataclasses import replace

import pytest

from kelpie.client.client_errors import Closed, Unreachable
from kelpie.client.nodes import Nodes
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.lab import virtual_time
from kelpie.lab.cluster import Cluster
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.api.metadata import MetadataRequest


def test_an_hour_passes_in_a_moment() -> None:
    """Timers fire in their order, each at its virtual time, and nobody waits."""
    fired: list[tuple[float, str]] = []

    async def wait(seconds: float, name: str) -> None:
        await asyncio.sleep(seconds)
        fired.append((asyncio.get_running_loop().time(), name))

    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        before = loop.wall()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        await asyncio.gather(wait(3600, "late"), wait(0.5, "soon"), wait(90, "later"))
        return loop.wall() - before

    begun = time.monotonic()
    assert virtual_time.run(main()) == pytest.approx(3660)
    assert time.monotonic() - begun < 30
    times, names = zip(*fired, strict=True)
    assert names == ("soon", "later", "late")
    assert times == pytest.approx([60.5, 150, 3660])


def test_a_program_that_nothing_can_wake_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real loop it would hang for ever."""
    monkeypatch.setattr(virtual_time, "_IDLE_LIMIT_S", 0.01)
    with pytest.raises(RuntimeError, match="Nothing is left that could wake"):
        virtual_time.run(asyncio.Event().wait())


def test_clients_reach_a_cluster_without_sockets() -> None:
    """The client's own connections; a broker that dies cuts them off, and comes back on its port."""

    async def main() -> None:
        network = MemoryNetwork()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with Cluster(2, network=network, wall=loop.wall) as cluster:
            settings = replace(Settings.of(cluster.bootstrap_servers), network=network)
            async with await Nodes.open(settings) as nodes:
                assert sorted(nodes.brokers) == [1, 2]
                assert (await nodes.ask(2, ListGroupsRequest())).error_code == 0
            async with await open_connection(settings.bootstrap[1], settings) as connection:
                await cluster.kill(2)
                with pytest.raises(Closed):
                    await connection.ask(MetadataRequest(topics=[]))
            with pytest.raises(Unreachable, match="nothing listens there"):
                await open_connection(settings.bootstrap[1], settings)
            await cluster.start(2)
            async with await open_connection(settings.bootstrap[1], settings) as connection:
                assert (await connection.ask(MetadataRequest(topics=[]))).brokers

    virtual_time.run(main())


def test_two_runs_take_the_same_course() -> None:
    """The same requests at the same virtual times."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        network = MemoryNetwork()
        times = []
        async with Cluster(3, network=network, wall=lambda: 1e9 + loop.time()) as cluster:
            settings = replace(Settings.of(cluster.bootstrap_servers), network=network)
            async with await Nodes.open(settings) as nodes:
                for node_id in (1, 2, 3, 1):
                    await nodes.ask(node_id, ListGroupsRequest())
                    times.append(loop.time())
        return times

    assert virtual_time.run(main()) == virtual_time.run(main())
