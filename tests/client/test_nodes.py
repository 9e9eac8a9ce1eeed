"""A cluster as a client sees it, against the lab."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kelpie.client.client_errors import ClientError, NoBroker, TimedOut, Unreachable
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab import Cluster
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.api.metadata import MetadataRequest

NOBODY = "127.0.0.1:1"


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30.0):
            await test()

    asyncio.run(limited())


def test_one_address_that_answers_is_enough() -> None:
    """All are tried at once: the dead ones neither fail the whole nor hold it up."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            addresses = cluster.bootstrap_servers.split(",")
            await cluster.stop(3)
            settings = Settings.of(f"{NOBODY},{addresses[2]},{addresses[1]}")
            async with await Nodes.open(settings) as nodes:
                assert set(nodes.brokers) == {1, 2}
                assert nodes.controller_id in (1, 2)
                became = await nodes.introductions()
                failed = [str(at) for at, outcome in became.items() if isinstance(outcome, ClientError)]
                assert failed == [NOBODY, addresses[2]]

    _run(test)


def test_no_address_that_answers_is_told_address_by_address() -> None:
    """Three reasons may be three different ones."""

    async def test() -> None:
        with pytest.raises(NoBroker) as caught:
            await Nodes.open(Settings.of(f"{NOBODY},no-such-host.invalid:2"))
        assert NOBODY in caught.value.reason
        assert "no-such-host.invalid:2" in caught.value.reason
        assert len(caught.value.causes) == 2
        with pytest.raises(Unreachable, match="nothing listens there"):
            await Nodes.open(Settings.of(NOBODY))

    _run(test)


def test_each_broker_gets_one_connection_however_many_ask() -> None:
    """Connections cost the broker something, with TLS and SASL a lot."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            settings = Settings.of(cluster.bootstrap_servers.split(",")[0])
            async with await Nodes.open(settings) as nodes:
                asked = [nodes.ask(node, ListGroupsRequest()) for node in (1, 2, 3) for _ in range(10)]
                await asyncio.gather(*asked)
                assert nodes.counters.connections == 3
                assert nodes.counters.by_api["ListGroups"] == 30

    _run(test)


def test_bootstrap_connections_become_those_of_their_brokers() -> None:
    """Also the ones that come second: the broker is not dialled again while its introduction is under way."""

    async def test() -> None:
        async with Cluster(3) as cluster, await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            await asyncio.gather(*(nodes.ask(node, ListGroupsRequest()) for node in (1, 2, 3)))
            await nodes.introductions()
            assert nodes.counters.connections == 3

    _run(test)


def test_a_dead_broker_is_dialled_once() -> None:
    """Its time limit is paid once; whoever asks later is told at once, and may have it tried again."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            settings = Settings.of(cluster.bootstrap_servers.split(",")[0])
            async with await Nodes.open(settings) as nodes:
                await cluster.kill(2)
                with pytest.raises(Unreachable) as first:
                    await nodes.ask(2, ListGroupsRequest())
                await cluster.start(2)
                with pytest.raises(Unreachable) as second:
                    await nodes.ask(2, ListGroupsRequest())
                assert second.value is first.value
                nodes.forget_failures()
                await nodes.ask(2, ListGroupsRequest())

    _run(test)


def test_a_broker_that_came_back_is_connected_to_anew() -> None:
    """A connection that the broker closed is no verdict on the broker."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            settings = Settings.of(cluster.bootstrap_servers.split(",")[0])
            async with await Nodes.open(settings) as nodes:
                connection = await nodes.connection(2)
                await cluster.restart(2)
                while connection.is_open:
                    await asyncio.sleep(0.01)
                response = await nodes.ask(2, ListGroupsRequest())
                assert response.error_code == 0

    _run(test)


def test_a_broker_that_nobody_lists_is_said_to_be_down() -> None:
    """Replicas name brokers that the list of brokers no longer has."""

    async def test() -> None:
        async with Cluster(1) as cluster, await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
            with pytest.raises(Unreachable, match=r"Broker 7 is not among .* \(1\)"):
                await nodes.ask(7, ListGroupsRequest())

    _run(test)


def test_whoever_can_answer_is_asked() -> None:
    """ask_any goes on to the next broker when one is silent, and fails only when all do."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            settings = Settings.of(cluster.bootstrap_servers.split(",")[0], request_timeout_s=0.3)
            async with await Nodes.open(settings) as nodes:
                cluster.silence(api="ListGroups", node=1)
                response = await nodes.ask_any(ListGroupsRequest())
                assert response.error_code == 0
                cluster.silence(api="ListGroups")
                with pytest.raises(NoBroker) as caught:
                    await nodes.ask_any(ListGroupsRequest())
                assert {type(cause) for cause in caught.value.causes} == {TimedOut}

    _run(test)


def test_brokers_that_join_are_learned() -> None:
    """The list of brokers is as old as the last answer; refresh brings a new one."""

    async def test() -> None:
        async with Cluster(3) as cluster:
            await cluster.stop(3)
            async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
                assert set(nodes.brokers) == {1, 2}
                await cluster.start(3)
                while 3 not in nodes.brokers:
                    await nodes.refresh()
                response = await nodes.ask(3, MetadataRequest(topics=[]))
                assert {broker.node_id for broker in response.brokers} == {1, 2, 3}

    _run(test)
