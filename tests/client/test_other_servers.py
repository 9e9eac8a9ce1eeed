"""People mix up ports: what listens there is told by its name."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from kelpie.cli import main
from kelpie.client.client_errors import ClientError, NotKafka, TimedOut
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.lab import SyncCluster
from kelpie.real.zookeeper import RealZooKeeper


def _failure(servers: str) -> ClientError:
    # All steps together have the sum of both: a busy machine must not use it up before the first one ends.
    settings = Settings.of(servers, request_timeout_s=1.0, connect_timeout_s=10.0)
    with pytest.raises(ClientError) as raised:
        asyncio.run(Nodes.open(settings))
    return raised.value


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _web_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def _listener() -> Iterator[str]:
    """It takes connections, and says nothing: a broker that is stuck."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_web_server_that_waits_for_the_end_of_the_line_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It takes Kafka's bytes for the beginning of a request, and never answers."""
    with _web_server() as address:
        failure = _failure(address)
        assert isinstance(failure, NotKafka)
        assert failure.reason.startswith(f"{address} is a web server, not a broker of Kafka: it answers")
        assert '"HTTP/1.0 200 OK"' in failure.reason
        assert main(["doctor", "-b", address, "--timeout", "1", "--no-store"]) == 3
    assert f"{address} is a web server" in " ".join(capsys.readouterr().out.split())


def test_a_web_server_that_refuses_at_once_is_named() -> None:
    """As nginx and Jetty do: the answer of Kafka Connect and of schema registries."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Illegal character CNTL=0x0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            with pytest.raises(NotKafka, match=r"HTTP/1\.1 400 Illegal character CNTL"):
                await Nodes.open(Settings.of(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"))

    asyncio.run(test())


@pytest.mark.real
def test_a_zookeeper_is_named(real_zookeeper: RealZooKeeper) -> None:
    """Kafka's tools of old took its address, and so do runbooks."""
    reason = _failure(real_zookeeper.connect).reason
    assert reason.startswith(f"{real_zookeeper.connect} is ZooKeeper 3.9.")
    assert "--zookeeper" in reason


def test_what_says_nothing_keeps_its_reason() -> None:
    """A broker that is stuck is no other server."""
    with _listener() as address:
        failure = _failure(address)
    assert isinstance(failure, TimedOut)
    assert "did not answer ApiVersions" in failure.reason


def test_where_one_broker_answers_nothing_else_is_sent_to_the_others() -> None:
    """They may be stuck brokers, which would log a message that makes no sense."""
    heard = bytearray()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while piece := await reader.read(1000):
                heard.extend(piece)

    async def look(living: str) -> None:
        server = await asyncio.start_server(hear, "127.0.0.1", 0)
        stuck = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = Settings.of(f"{stuck},{living}", request_timeout_s=0.5, connect_timeout_s=0.5)
        async with server, await Nodes.open(settings) as nodes:
            await nodes.introductions()

    with SyncCluster(1) as cluster:
        asyncio.run(look(cluster.bootstrap_servers))
    assert heard
    assert b"srvr" not in heard
    assert b"GET" not in heard
