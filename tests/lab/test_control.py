"""The control API, over real HTTP."""

import http.client
import json
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from kelpie.lab import control
from kelpie.lab import http as lab_http
from tests.lab.client import Client, heartbeat
from tests.lab.stub import SyncStubCluster

WaitUntil = Callable[..., None]


@pytest.fixture
def cluster() -> Iterator[SyncStubCluster]:
    with SyncStubCluster(3, control_port=0) as cluster:
        yield cluster


@pytest.fixture
def ask(cluster: SyncStubCluster) -> Iterator[Callable[..., tuple[int, Any]]]:
    connection = http.client.HTTPConnection(_address(cluster)[0], _address(cluster)[1], timeout=10)

    def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, sent)
        response = connection.getresponse()
        received = response.read()
        assert response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(received)

    yield ask
    connection.close()


def _address(cluster: SyncStubCluster) -> tuple[str, int]:
    assert cluster.control_address is not None
    host, port = cluster.control_address.removeprefix("http://").split(":")
    return host, int(port)


def _raw(cluster: SyncStubCluster, sent: bytes) -> bytes:
    """What comes back, up to the end of the connection."""
    with socket.create_connection(_address(cluster), 10) as connection:
        connection.sendall(sent)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


Ask = Callable[..., tuple[int, Any]]


def test_the_state_is_told(ask: Ask) -> None:
    """As the fabric describes it, on a connection that stays open."""
    for _ in range(3):
        status, state = ask("GET", "/state")
        assert status == 200
        assert [broker["id"] for broker in state["brokers"]] == [1, 2, 3]


def test_brokers_are_killed_and_started(cluster: SyncStubCluster, ask: Ask) -> None:
    """Twice the same is a conflict."""
    assert ask("POST", "/brokers/2/kill") == (200, {"node_id": 2, "alive": False, "fault": 1})
    status, refusal = ask("POST", "/brokers/2/kill")
    assert (status, refusal) == (409, {"error": "Broker 2 is down already."})
    assert ask("POST", "/brokers/2/start") == (200, {"node_id": 2, "alive": True})
    for action in ("stop", "start", "restart", "isolate", "rejoin", "freeze", "thaw"):
        assert ask("POST", f"/brokers/3/{action}")[0] == 200
    assert [done[0] for done in cluster.stub.done] == [
        *("kill", "start", "stop", "start", "stop", "start"),
        *("isolate", "rejoin", "freeze_metadata", "thaw_metadata"),
    ]


def test_partitions_lose_leaders_and_replicas(cluster: SyncStubCluster, ask: Ask) -> None:
    """Names with odd characters come through, percent-encoded."""
    assert ask("POST", "/partitions/odd%2Fn%C3%A4me%20x/0/leaderless")[0] == 200
    assert ask("POST", "/partitions/orders/1/isr", {"isr": [1, 2]})[1]["partition"] == 1
    assert ask("POST", "/partitions/orders/1/elect", {"unclean": True})[0] == 200
    assert cluster.stub.done == [
        ("make_leaderless", ("odd/näme x", 0)),
        ("shrink_isr", ("orders", 1), [1, 2]),
        ("elect", ("orders", 1), True),
    ]


def test_faults_are_made_counted_and_lifted(cluster: SyncStubCluster, ask: Ask) -> None:
    """An error by number or by name, a delay, silence, a disconnection, an observation, a stall."""
    status, fault = ask("POST", "/faults", {"api": "Heartbeat", "group": "b*", "error": "not_coordinator"})
    assert (status, fault["id"], fault["hits"], fault["active"]) == (201, 1, 0, True)
    with Client(cluster) as client:
        assert client.ask(heartbeat("billing")).error_code == 16
    assert ask("GET", "/faults/1")[1]["hits"] == 1
    for other in (
        {"error": 27, "node": 2, "count": 3, "after": True},
        {"delay_ms": 5, "client": "x"},
        {"delay_ms": None, "topic": "orders"},
        {"silence": True, "api": 3},
        {"disconnect": True, "api": "Fetch"},
        {"observe": True},
        {"stall": True, "client": "nobody", "duration_s": 0.5},
        {"slow_load_ms": 100, "partition": 3},
        {"lag": 2, "topic": "orders", "partition": 1},
        {"lose_offsets": "g"},
        {"expire_offsets": None},
    ):
        status, made = ask("POST", "/faults", other)
        assert status == 201, made
    assert ask("DELETE", "/faults/1")[1]["active"] is False
    assert ask("DELETE", "/faults/1")[0] == 200
    status, listed = ask("GET", "/faults")
    assert [fault["id"] for fault in listed["faults"]] == list(range(1, 13))
    with Client(cluster) as client:
        assert client.ask(heartbeat("billing")).error_code == 0
    seen = ask("GET", "/faults/7")[1]["requests"]
    assert [(request["api_key"], request["client"]) for request in seen] == [(12, "test")]


WRONG: list[tuple[str, str, object, int, str]] = [
    ("GET", "/", None, 404, "no such path"),
    ("GET", "/nothing", None, 404, "no such path"),
    ("GET", "/state/more", None, 404, "does not exist"),
    ("DELETE", "/state", None, 405, "cannot be done"),
    ("PUT", "/faults", None, 405, "cannot be done"),
    ("POST", "/brokers/9/kill", None, 404, "no broker 9"),
    ("POST", "/brokers/x/kill", None, 404, "'x' is not the number"),
    ("POST", "/brokers/-1/kill", None, 404, "'-1' is not the number"),
    ("POST", "/brokers/1/explode", None, 404, "cannot 'explode'"),
    ("POST", "/partitions/nope/0/leaderless", None, 400, "no topic 'nope'"),
    ("POST", "/partitions/orders/99/leaderless", None, 400, "no partition 99"),
    ("POST", "/partitions/orders/0/explode", None, 404, "no 'explode'"),
    ("POST", "/partitions/orders/0/isr", {}, 400, "isr must be a list"),
    ("POST", "/partitions/orders/0/isr", {"isr": [1, "2"]}, 400, "isr must be a list"),
    ("POST", "/partitions/orders/0/elect", {"unclean": "yes"}, 400, "unclean must be true or false"),
    ("POST", "/partitions/orders/0/elect", {"cleanly": True}, 400, "Nothing is known of: cleanly"),
    ("POST", "/partitions/%FF/0/elect", {}, 400, "not UTF-8"),
    ("POST", "/faults", b"{", 400, "not JSON"),
    ("POST", "/faults", b"[" * 60_000, 400, "not JSON"),
    ("POST", "/faults", b"\xff\xfe", 400, "not JSON"),
    ("POST", "/faults", [], 400, "must be a JSON object"),
    ("POST", "/faults", {}, 400, "Name one action"),
    ("POST", "/faults", {"error": 1, "silence": True}, 400, "there are 2"),
    ("POST", "/faults", {"silence": False}, 400, "silence must be true"),
    ("POST", "/faults", {"error": 9999}, 400, "no error 9999"),
    ("POST", "/faults", {"error": "NO_SUCH"}, 400, 'no error "NO_SUCH"'),
    ("POST", "/faults", {"error": [1]}, 400, "no error [1]"),
    ("POST", "/faults", {"error": 16, "api": "Hartbeat"}, 400, "Did you mean Heartbeat"),
    ("POST", "/faults", {"error": 16, "api": 3.5}, 400, "api must be"),
    ("POST", "/faults", {"error": 16, "node": "1"}, 400, "node must be a whole number"),
    ("POST", "/faults", {"error": 16, "node": 44}, 400, "no broker 44"),
    ("POST", "/faults", {"error": 16, "count": 0}, 400, "count must be a whole number from 1 on"),
    ("POST", "/faults", {"error": 16, "topic": 5}, 400, "topic must be a text"),
    ("POST", "/faults", {"error": 16, "typo": 1}, 400, "Nothing is known of: typo"),
    ("POST", "/faults", {"delay_ms": -1}, 400, "delay_ms must be"),
    ("POST", "/faults", {"delay_ms": True}, 400, "delay_ms must be"),
    ("POST", "/faults", {"stall": True, "duration_s": 0}, 400, "duration_s must be"),
    ("POST", "/faults", {"stall": True, "api": "Fetch"}, 400, "Nothing is known of: api"),
    ("POST", "/faults", {"lag": None}, 400, "lag must be"),
    ("POST", "/faults", {"lose_offsets": None}, 400, "lose_offsets must be"),
    ("GET", "/faults/77", None, 404, "no fault 77"),
    ("DELETE", "/faults/x", None, 404, "'x' is not the number"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]} {wrong[1]} {wrong[4]}")
def test_bad_input_gets_a_clear_refusal(
    cluster: SyncStubCluster, ask: Ask, wrong: tuple[str, str, object, int, str]
) -> None:
    """A status of 4xx, a sentence in JSON, nothing done, and the API goes on."""
    method, path, body, expected_status, expected = wrong
    status, refusal = ask(method, path, body)
    assert status == expected_status, refusal
    assert expected in refusal["error"]
    assert not cluster.faults
    assert ask("GET", "/state")[0] == 200


LOCAL = b" HTTP/1.1\r\nHost: localhost\r\n"
HOSTILE = {
    "garbage": (b"\x00\x01\x02\x03\r\n\r\n", b"400"),
    "a Kafka request": (b"\x00\x00\x00\x10\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test\r\n\r\n", b"400"),
    "another protocol": (b"GET /state HTTP/3\r\n\r\n", b"505"),
    "endless headers": (b"GET /state" + LOCAL + b"X: y\r\n" * 20_000, b"431"),
    "many headers": (b"GET /state" + LOCAL + b"X: y\r\n" * 150 + b"\r\n", b"431"),
    "a header without a colon": (b"GET /state" + LOCAL + b"nonsense\r\n\r\n", b"400"),
    "a huge body": (b"POST /faults" + LOCAL + b"Content-Length: 99999999\r\n\r\n", b"413"),
    "a negative body": (b"POST /faults" + LOCAL + b"Content-Length: -5\r\n\r\n", b"400"),
    "chunks": (
        b"POST /faults" + LOCAL + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"411",
    ),
    "two lengths": (
        b"POST /faults" + LOCAL + b"Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}",
        b"400",
    ),
    "a length and chunks": (
        b"POST /faults" + LOCAL + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"411",
    ),
    "no host": (b"GET /state HTTP/1.1\r\n\r\n", b"400"),
    "two hosts": (b"GET /state HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", b"400"),
    "a name that means loopback": (b"GET /state HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
    "the same with a port": (b"GET /state HTTP/1.1\r\nHost: evil.example:9\r\n\r\n", b"403"),
    "a name that begins alike": (b"GET /state HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", b"403"),
    "an address of the network": (b"GET /state HTTP/1.0\r\nHost: 192.168.1.7:9\r\n\r\n", b"403"),
    "a web page": (
        b"POST /brokers/1/kill" + LOCAL + b"Origin: http://evil\r\n\r\n",
        b"403",
    ),
}


@pytest.mark.parametrize(("sent", "status"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_requests_are_refused(cluster: SyncStubCluster, ask: Ask, sent: bytes, status: bytes) -> None:
    """And their connection is closed."""
    received = _raw(cluster, sent)
    assert received.startswith(b"HTTP/1.1 " + status), received
    assert b'{"error": "' in received
    assert ask("GET", "/state")[0] == 200
    assert not cluster.stub.done


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:35999", "[::1]:1", "[::1]"])
def test_names_of_loopback_are_answered(cluster: SyncStubCluster, host: str) -> None:
    """As curl and browsers send them."""
    sent = f"GET /state HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    assert _raw(cluster, sent).startswith(b"HTTP/1.1 200")


def test_half_a_request_ends_in_time(
    cluster: SyncStubCluster, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that stops in the middle is not waited for long, and holds up nobody."""
    monkeypatch.setattr(lab_http, "REQUEST_LIMIT_S", 0.1)
    assert _raw(cluster, b"POST /faults" + LOCAL + b"Content-Length: 10\r\n\r\n{").startswith(b"HTTP/1.1 408")
    assert _raw(cluster, b"GET /state HTTP/1.1\r\nHost: local").startswith(b"HTTP/1.1 408")
    monkeypatch.setattr(lab_http, "IDLE_LIMIT_S", 0.1)
    assert _raw(cluster, b"") == b""
    assert ask("GET", "/state")[0] == 200


def test_too_many_connections_are_refused(cluster: SyncStubCluster) -> None:
    """Those that are there keep working."""
    with socket.create_connection(_address(cluster), 10) as first:
        others = [socket.create_connection(_address(cluster), 10) for _ in range(64)]
        assert others[-1].recv(100).startswith(b"HTTP/1.1 503")
        for other in others:
            other.close()
        first.sendall(b"GET /state" + LOCAL + b"Connection: close\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_is_dropped(
    cluster: SyncStubCluster, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the connection waited for the client, without end and uncounted."""
    monkeypatch.setattr(control, "_WRITE_LIMIT_S", 0.1)
    with socket.create_connection(_address(cluster), 10) as connection:
        connection.settimeout(0.05)
        requests = b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
        with suppress(OSError):
            while True:  # Until both sides' buffers are full.
                connection.sendall(requests)
        poll = select.poll()
        poll.register(connection, 0)
        assert poll.poll(60_000) == [(connection.fileno(), select.POLLERR | select.POLLHUP)]
    assert ask("GET", "/state")[0] == 200


def test_head_and_old_http_work(cluster: SyncStubCluster) -> None:
    """A HEAD has no body; HTTP/1.0 closes."""
    head = _raw(cluster, b"HEAD /state" + LOCAL + b"Connection: close\r\n\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"Connection: close" in _raw(cluster, b"GET /state HTTP/1.0\r\n\r\n")


def test_metrics_are_served(cluster: SyncStubCluster) -> None:
    """In the format that Prometheus asks for."""
    received = _raw(cluster, b"GET /metrics" + LOCAL + b"Connection: close\r\n\r\n").decode()
    assert "Content-Type: text/plain; version=0.0.4" in received
    assert 'kelpie_lab_broker_up{node="3"} 1' in received
