"""Whoever is on the machine can reach the port of a guard's metrics: the guard must not suffer from it."""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from kelpie.guard.metrics_server import LOOPBACK, MOST_CLIENTS, MetricsServer

PATIENCE_S = 60.0


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    made = MetricsServer(0, lambda: "here 1\n", limit_s=0.3)
    yield made
    made.close()


def get(server: MetricsServer, path: str = "/metrics", host: str = "localhost") -> str:
    request = urllib.request.Request(f"http://{LOOPBACK}:{server.port}{path}", headers={"Host": host})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return str(answer.read(1000), "utf-8")


def connect(server: MetricsServer) -> socket.socket:
    return socket.create_connection((LOOPBACK, server.port), PATIENCE_S)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9100", "[::1]"])
def test_metrics_are_answered(server: MetricsServer, host: str) -> None:
    assert get(server, host=host) == "here 1\n"


@pytest.mark.parametrize(
    ("path", "host", "status"), [("/x", "localhost", 404), ("/", "evil.example:80", 403)]
)
def test_other_paths_and_foreign_names_are_refused(
    server: MetricsServer, path: str, host: str, status: int
) -> None:
    """A page in a browser can make a name of its own mean 127.0.0.1, and read along."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(server, path, host)
    assert refused.value.code == status
    refused.value.close()


def test_a_byte_now_and_then_does_not_prolong_the_time(server: MetricsServer) -> None:
    """A time limit for each read alone let a client stay for ever."""
    with connect(server) as client:
        client.settimeout(0.02)
        ended = False
        for _ in range(int(PATIENCE_S / 0.02)):
            try:
                client.sendall(b"G")
                ended = not client.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
            if ended:
                break
        assert ended


def test_few_clients_are_served_at_a_time(wait_until: Callable[..., None]) -> None:
    """Each has a thread: those that come when there are too many are turned away, and take none."""
    server = MetricsServer(0, lambda: "here 1\n", limit_s=PATIENCE_S)
    with ExitStack() as stack:
        stack.callback(server.close)
        before = threading.active_count()
        clients = [stack.enter_context(connect(server)) for _ in range(MOST_CLIENTS)]
        wait_until(lambda: threading.active_count() >= before + 2 * MOST_CLIENTS)
        for _ in range(20):
            with connect(server) as client:
                assert client.recv(1) == b""
        assert threading.active_count() == before + 2 * MOST_CLIENTS
        for client in clients:
            client.close()

        def is_answered() -> bool:
            with suppress(OSError):
                return get(server) == "here 1\n"
            return False

        wait_until(is_answered)
