"""Clients that send slowly, read slowly or only connect: real sockets, and a server with short limits."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kelpie.web.serving.limits import Limits
from kelpie.web.serving.server import PageServer, listeners, tls_of
from tests.client.certificates import Identity, authority

SHORT = Limits(handshake_s=0.3, head_s=0.3, body_s=0.3, reading_s=0.3, ending_s=1)
LONG = Limits(handshake_s=600, farewell_s=600, head_s=600, body_s=600, reading_s=600, ending_s=1)
PATIENCE_S = 60.0
LARGE = b"x" * 64_000_000
"""More than the buffers of any two sockets hold."""
WHOLE_REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Pages:
    """A server with its pages, and clients of it."""

    def __init__(self, limits: Limits, tls: ssl.SSLContext | None = None) -> None:
        self.gate = threading.Event()
        application = Starlette(
            routes=[
                Route("/", lambda _: PlainTextResponse("here")),
                Route("/large", lambda _: Response(LARGE)),
                Route("/slow", self._slow),
                Route("/form", self._form, methods=["POST"]),
            ]
        )
        self.server = PageServer(application, tls, limits)
        self._bound = listeners("127.0.0.1", 0)
        self.address = self._bound[0].getsockname()
        self.thread = threading.Thread(target=self.server.run, args=(self._bound,))
        self._stack = ExitStack()

    def _slow(self, _: Request) -> Response:
        self.gate.wait(PATIENCE_S)
        return PlainTextResponse("at last")

    @staticmethod
    async def _form(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    def __enter__(self) -> "Pages":
        self.thread.start()
        wait_until(lambda: self.server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._stack.close()
        self.server.should_exit = True
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()

    def keep(self, client: socket.socket) -> None:
        """Closes it in the end."""
        self._stack.enter_context(client)

    def client(self, sent: bytes = b"", *, buffer: int | None = None) -> socket.socket:
        made = socket.socket()
        if buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.settimeout(PATIENCE_S)
        made.connect(self.address)
        made.sendall(sent)
        return self._stack.enter_context(made)

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def pages(limits: Limits, tls: ssl.SSLContext | None = None) -> Iterator[Pages]:
    with Pages(limits, tls) as made:
        yield made


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)


def until(wanted: bytes, client: socket.socket) -> bytes:
    received = b""
    while wanted not in received and (data := client.recv(65_536)):
        received += data
    assert wanted in received, received[:1000]
    return received


def all_of(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    received = bytearray()
    try:
        while data := client.recv(65_536):
            received += data
    except ConnectionResetError:
        pass
    return bytes(received)


@pytest.mark.parametrize(
    "half", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: localhost\r\nx-a: b\r\n"]
)
def test_half_a_request_is_not_waited_for(half: bytes) -> None:
    """A client that never sends the rest would hold a connection for ever."""
    with pages(SHORT) as served:
        assert all_of(served.client(half)).startswith(b"HTTP/1.1 408 ")
        wait_until(lambda: served.connections == 0)


def test_a_connection_without_a_request_ends() -> None:
    """Browsers connect ahead: nothing is said to them, and nothing is kept."""
    with pages(SHORT) as served:
        assert all_of(served.client()) == b""


def test_a_byte_now_and_then_does_not_prolong_the_time() -> None:
    """The time counts from the connection on, not from the last byte."""
    with pages(SHORT) as served:
        client = served.client(b"GET / HTTP/1.1\r\n")
        client.settimeout(0.02)
        deadline = time.monotonic() + PATIENCE_S
        answer = b""
        while not answer:
            assert time.monotonic() < deadline
            try:
                client.sendall(b"x-a: b\r\n")
                answer = client.recv(1000)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_the_second_request_of_a_connection_has_its_time_too() -> None:
    """The first was complete, and its time has ended; half of the second is not waited for either."""
    with pages(replace(LONG, head_s=1.0)) as served:
        answers = all_of(served.client(WHOLE_REQUEST + b"GET / HTTP/1.1\r\n"))
        assert b"here" in answers


@pytest.mark.parametrize("path", ["/", "/form"])
def test_a_body_that_does_not_come_is_not_waited_for(path: str) -> None:
    """Neither where it is read, nor behind an answer that did not need it."""
    method = "POST" if path == "/form" else "GET"
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n".encode()
    with pages(replace(LONG, body_s=SHORT.body_s)) as served:
        assert (b"here" in all_of(served.client(head + b"a"))) is (path == "/")
        wait_until(lambda: served.connections == 0)


def test_headers_without_end_are_refused() -> None:
    with pages(LONG) as served:
        client = served.client(b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x-a: b\r\n" * 3_000)
        assert all_of(client).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_does_not_read_is_dropped() -> None:
    """Its answer would stay in memory, and its connection open."""
    with pages(replace(LONG, reading_s=SHORT.reading_s)) as served:
        client = served.client(WHOLE_REQUEST.replace(b"/ ", b"/large "))
        assert client.recv(1) == b"H"
        wait_until(lambda: served.connections == 0)


def test_a_client_that_reads_slowly_gets_all() -> None:
    """It is the pace that counts: an answer as a whole may take as long as it needs."""
    with pages(replace(LONG, reading_s=1.0)) as served:
        client = served.client(WHOLE_REQUEST.replace(b"/ ", b"/large "), buffer=65_536)
        received, rest = 0, len(LARGE) + 1
        began = time.monotonic()
        while time.monotonic() < began + 2.5:  # A client that reads nothing has 1 s.
            received += len(client.recv(262_144))
            time.sleep(0.005)
        while received < rest and (data := client.recv(1 << 20)):
            received += len(data)
        assert received >= rest


def test_clients_that_do_not_read_take_a_limited_amount_of_memory() -> None:
    with pages(replace(LONG, unread_bytes=100_000_000)) as served:
        clients = [served.client(WHOLE_REQUEST.replace(b"/ ", b"/large ")) for _ in range(3)]
        for client in clients:
            assert client.recv(1) == b"H"
        wait_until(lambda: served.connections < 3)
        assert all_of(served.client(WHOLE_REQUEST.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")))


def test_clients_that_only_connect_do_not_keep_others_out() -> None:
    """The one that has waited longest makes room."""
    with pages(replace(LONG, connections=4)) as served:
        idle = []
        for number in range(4):
            idle.append(served.client(b"GET / HTTP/1.1\r\n"))
            wait_until(lambda number=number: served.connections == number + 1)  # type: ignore[misc]
        until(b"here", served.client(WHOLE_REQUEST))
        assert all_of(idle[0]) == b""
        wait_until(lambda: served.connections == 4)


def test_clients_that_are_being_answered_keep_their_place() -> None:
    """Who comes then is told to try again."""
    with pages(replace(LONG, connections=2)) as served:
        busy = [served.client(WHOLE_REQUEST.replace(b"/ ", b"/slow ")) for _ in range(2)]
        wait_until(lambda: len(served.server.server_state.tasks) == 2)
        assert all_of(served.client()).startswith(b"HTTP/1.1 503 ")
        served.gate.set()
        for client in busy:
            until(b"at last", client)


def test_the_server_ends_although_a_client_does_not_read() -> None:
    """Ctrl-C has to end it: uvicorn would wait for the client."""
    with pages(LONG) as served:
        client = served.client(WHOLE_REQUEST.replace(b"/ ", b"/large "))
        assert client.recv(1) == b"H"
        served.server.should_exit = True
        served.thread.join(PATIENCE_S)
        assert not served.thread.is_alive()


def test_a_broken_body_behind_an_answer_ends_the_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    """uvicorn began a second answer, which raised: a traceback for each such request."""
    with pages(LONG) as served, caplog.at_level(logging.ERROR):
        head = b"POST /slow HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        client = served.client(head.replace(b"POST /slow", b"GET /slow"))
        wait_until(lambda: len(served.server.server_state.tasks) == 1)
        client.sendall(b"this is no chunk\r\n")
        all_of(client)
        served.gate.set()
        wait_until(lambda: served.connections == 0)
    assert not caplog.records


@pytest.fixture(scope="module")
def identity() -> Identity:
    return authority()


@pytest.fixture
def tls(identity: Identity, tmp_path: Path) -> ssl.SSLContext:
    (tmp_path / "certificate.pem").write_bytes(identity.certificate_pem)
    (tmp_path / "key.pem").write_bytes(identity.key_pem())
    return tls_of(tmp_path / "certificate.pem", tmp_path / "key.pem")


def encrypted(served: Pages) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_socket(served.client())
    served.keep(client)
    return client


def test_a_handshake_that_does_not_come_is_not_waited_for(tls: ssl.SSLContext) -> None:
    with pages(SHORT, tls) as served:
        assert all_of(served.client(b"\x16\x03")) == b""


def test_handshakes_that_do_not_come_do_not_keep_others_out(tls: ssl.SSLContext) -> None:
    """They are counted as connections, although uvicorn does not know them yet."""
    with pages(replace(LONG, connections=4), tls) as served:
        idle = [served.client() for _ in range(6)]
        client = encrypted(served)
        client.sendall(WHOLE_REQUEST)
        until(b"here", client)
        assert all_of(idle[0]) == b""


def test_an_encrypted_client_that_does_not_read_is_dropped(tls: ssl.SSLContext) -> None:
    with pages(replace(LONG, reading_s=0.3), tls) as served:
        client = encrypted(served)
        client.sendall(WHOLE_REQUEST.replace(b"/ ", b"/large "))
        assert client.recv(1) == b"H"
        wait_until(lambda: served.connections == 0)
