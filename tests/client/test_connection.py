"""One connection, against the lab and against servers that misbehave in ways no Kafka does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kelpie.client import negotiation
from kelpie.client.address import Address
from kelpie.client.client_errors import ClientError, Closed, TimedOut, Unreachable, Unreadable, Unsupported
from kelpie.client.memory import Memory
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.lab import Cluster
from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kelpie.wire.api.describe_cluster import DescribeClusterRequest
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.list_groups import ListGroupsRequest
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic

LIMIT_S = 30.0


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await test()

    asyncio.run(limited())


def _first(cluster: Cluster, **others: Any) -> tuple[Address, Settings]:
    settings = Settings.of(cluster.bootstrap_servers, **others)
    return settings.bootstrap[0], settings


@asynccontextmanager
async def _server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Settings]:
    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(run, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Settings.of(f"127.0.0.1:{port}", request_timeout_s=1.0, connect_timeout_s=1.0)
    finally:
        server.close()
        await server.wait_closed()


async def _fails(kind: type[ClientError], settings: Settings) -> str:
    with pytest.raises(kind) as caught:
        await open_connection(settings.bootstrap[0], settings)
    assert str(settings.bootstrap[0]) in caught.value.reason
    assert caught.value.address == settings.bootstrap[0]
    return caught.value.reason


@pytest.mark.parametrize(("persona", "newest"), [("4.3", 13), ("3.9", 12), ("2.8", 11), ("0.9", 0)])
def test_the_newest_version_that_both_sides_speak_is_used(persona: str, newest: int) -> None:
    """From 0.9, which tells nothing about itself, to 4.x, which has dropped old versions."""

    async def test() -> None:
        async with Cluster(1, persona=persona) as cluster:
            address, settings = _first(cluster)
            async with await open_connection(address, settings) as connection:
                assert connection.versions.pick(MetadataRequest) == newest
                assert connection.versions.told == (persona != "0.9")
                response = await connection.ask(MetadataRequest(topics=[]))
                assert [broker.node_id for broker in response.brokers] == [1]

    _run(test)


def test_a_version_that_the_broker_does_not_speak_is_a_typed_failure() -> None:
    """Callers have another way for old brokers, and must be able to tell."""

    async def test() -> None:
        async with Cluster(1, persona="2.8") as cluster:
            address, settings = _first(cluster)
            async with await open_connection(address, settings) as connection:
                pick = connection.versions.pick
                assert pick(MetadataRequest, at_most=4) == 4
                assert connection.versions.speaks(FindCoordinatorRequest)
                assert not connection.versions.speaks(FindCoordinatorRequest, at_least=4)
                with pytest.raises(Unsupported, match="FindCoordinator in versions 0 to 3"):
                    pick(FindCoordinatorRequest, at_least=4)
                with pytest.raises(Unsupported, match="does not know ConsumerGroupDescribe"):
                    await connection.ask(
                        ConsumerGroupDescribeRequest(group_ids=[], include_authorized_operations=False)
                    )

    _run(test)


def test_the_age_of_a_cluster_is_found_out_once() -> None:
    """0.9 says nothing to ApiVersions, so finding out costs a wait; the second connection must not pay it."""

    async def test() -> None:
        async with Cluster(1, persona="0.9") as cluster:
            address, settings = _first(cluster)
            memory = Memory()
            async with await open_connection(address, settings, memory=memory):
                assert memory.tells_versions is False
            async with await open_connection(address, settings, memory=memory) as second:
                assert "ApiVersions" not in second.counters.by_api
                assert second.versions.pick(ListGroupsRequest) == 0

    _run(test)


def test_a_broker_that_is_merely_slow_is_not_taken_for_an_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of garbage collection looks like 0.9 for a while; speaking 0.9 to Kafka 4 would fail later."""

    async def test() -> None:
        async with Cluster(1) as cluster:
            address, settings = _first(cluster)
            stall = cluster.stall()
            opening = asyncio.create_task(open_connection(address, settings))
            await stall.wait(hits=2)  # Two connections: the suspicion has come up.
            stall.lift()
            async with await opening as connection:
                assert connection.versions.told
                assert connection.versions.pick(MetadataRequest) == 13

    monkeypatch.setattr(negotiation, "PATIENCE_S", 0.05)
    _run(test)


def test_many_requests_are_under_way_at_once() -> None:
    """Pipelining: a survey sends what it has to ask, and does not wait in between."""

    async def test() -> None:
        async with Cluster(1) as cluster:
            address, settings = _first(cluster)
            async with await open_connection(address, settings) as connection:
                held = cluster.delay(None, api="ListGroups", count=1)
                asking = [asyncio.create_task(connection.ask(ListGroupsRequest())) for _ in range(20)]
                await held.wait()
                assert not any(task.done() for task in asking)
                assert connection.counters.by_api["ListGroups"] == 20
                held.lift()
                answers = await asyncio.gather(*asking)
                assert [answer.error_code for answer in answers] == [0] * 20
                assert connection.counters.requests == connection.counters.answers == 21

    _run(test)


def test_a_silent_broker_costs_its_own_request_only() -> None:
    """The time limit belongs to each request; the late answer is dropped and the next one finds its own."""

    async def test() -> None:
        async with Cluster(1) as cluster:
            address, settings = _first(cluster)
            async with await open_connection(address, settings) as connection:
                held = cluster.delay(None, api="ListGroups", count=1)
                with pytest.raises(TimedOut, match=r"did not answer ListGroups within 0\.1 s"):
                    await connection.ask(ListGroupsRequest(), limit_s=0.1)
                held.lift()
                response = await connection.ask(MetadataRequest(topics=[]))
                assert len(response.brokers) == 1

    _run(test)


def test_a_broker_that_dies_ends_every_wait_at_once() -> None:
    """Nobody waits for a time limit when the connection is gone."""

    async def test() -> None:
        async with Cluster(2) as cluster:
            address, settings = _first(cluster, request_timeout_s=25.0)
            async with await open_connection(address, settings) as connection:
                held = cluster.delay(None, api="ListGroups")
                asking = [asyncio.create_task(connection.ask(ListGroupsRequest())) for _ in range(3)]
                await held.wait()
                await cluster.kill(1)
                outcomes = await asyncio.gather(*asking, return_exceptions=True)
                assert [type(outcome) for outcome in outcomes] == [Closed] * 3
                assert not connection.is_open
                with pytest.raises(Closed):
                    await connection.ask(ListGroupsRequest())

    _run(test)


def test_looking_creates_no_topic() -> None:
    """Metadata creates topics unless told otherwise; whoever looks must say so."""

    async def test() -> None:
        async with Cluster(1, config={"auto.create.topics.enable": "true"}) as cluster:
            address, settings = _first(cluster)
            async with await open_connection(address, settings) as connection:
                topics = [MetadataRequestTopic(name="new")]
                await connection.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
                response = await connection.ask(MetadataRequest(topics=None))
                assert response.topics == []

    _run(test)


def test_nobody_listens() -> None:
    """The plainest failure of all."""

    async def test() -> None:
        async with _server(_say_nothing) as settings:
            pass
        assert "refused the connection" in await _fails(Unreachable, settings)

    _run(test)


def test_no_such_host() -> None:
    """A broker's own name for itself is often unknown outside."""

    async def test() -> None:
        reason = await _fails(Unreachable, Settings.of("no-such-host.invalid:9092"))
        assert "advertised.listeners" in reason

    _run(test)


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4)


async def _speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()


async def _speak_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        length = int.from_bytes(await reader.readexactly(4))
        request = await reader.readexactly(length)
        answer = request[4:8] + b"\0\0\x7f\xff\xff\xff nonsense"
        writer.write(len(answer).to_bytes(4) + answer)
        await writer.drain()


def test_what_listens_is_no_broker() -> None:
    """Each of them is told apart, none of them hangs."""

    async def test() -> None:
        async with _server(_say_nothing) as settings:
            assert "did not answer ApiVersions within 1 s" in await _fails(TimedOut, settings)
        async with _server(_hang_up) as settings:
            assert "security.protocol=SSL" in await _fails(Closed, settings)
        async with _server(_speak_http) as settings:
            assert "not Kafka's protocol" in await _fails(Unreadable, settings)
        async with _server(_speak_nonsense) as settings:
            assert "not Kafka's protocol" in await _fails(Closed, settings)

    _run(test)


def test_an_answer_that_cannot_be_read_is_a_failure_of_that_request() -> None:
    """A broker with a defect, or of a future release; the reader's words are kept."""

    async def test() -> None:
        async with _server(_speak_nonsense) as settings:
            memory = Memory(tells_versions=False)
            address = settings.bootstrap[0]
            async with await open_connection(address, settings, memory=memory) as connection:
                with pytest.raises(Unreadable, match="MetadataResponse"):
                    await connection.ask(MetadataRequest(topics=[]))

    _run(test)


def test_closing_twice_is_harmless_and_ends_what_waits() -> None:
    """A survey that ends early closes while answers are outstanding."""

    async def test() -> None:
        async with Cluster(1) as cluster:
            address, settings = _first(cluster)
            connection = await open_connection(address, replace(settings, client_id="closing"))
            cluster.silence(api="ListGroups")
            asking = asyncio.create_task(connection.ask(ListGroupsRequest()))
            await asyncio.sleep(0)
            await connection.close()
            with pytest.raises(Closed, match="closed here"):
                await asking
            await connection.close()

    _run(test)


def test_the_broker_is_told_who_asks() -> None:
    """Operators find Kelpie in the broker's logs and quotas by its client id."""

    async def test() -> None:
        async with Cluster(1) as cluster:
            address, settings = _first(cluster, client_id="kelpie-test")
            seen = cluster.observe()
            async with await open_connection(address, settings) as connection:
                await connection.ask(DescribeClusterRequest(include_cluster_authorized_operations=False))
            assert {entry.header.client_id for entry in seen.requests} == {"kelpie-test"}
            first = seen.requests[0].request
            assert isinstance(first, ApiVersionsRequest)
            assert first.client_software_name == "kelpie"

    _run(test)
