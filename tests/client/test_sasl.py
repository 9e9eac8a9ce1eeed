"""The mechanisms by themselves, and where tokens come from."""

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kelpie.client.client_errors import BadSettings, ClientError, NotAuthenticated
from kelpie.client.memory import Memory
from kelpie.client.sasl.mechanism import Rejected
from kelpie.client.sasl.oauthbearer import OAuthBearer
from kelpie.client.sasl.scram import Scram
from kelpie.client.sasl.tokens import token_from
from kelpie.client.security import Secret, TokenSource

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SECRET = "hunter2-never-shown"


def _scram() -> Scram:
    scram = Scram("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    assert scram.begin() == f"n,,n=user,r={NONCE}".encode()
    return scram


def test_scram_follows_the_example_of_its_rfc() -> None:
    """Vectors of RFC 7677."""
    scram = _scram()
    assert scram.answer(SERVER_FIRST) == CLIENT_FINAL
    assert scram.answer(SERVER_FINAL) is None


@pytest.mark.parametrize(
    ("first", "final", "complaint"),
    [
        (SERVER_FIRST, b"v=" + base64.b64encode(bytes(32)), "not the broker it claims to be"),
        (SERVER_FIRST, b"v=", "not SCRAM"),
        (SERVER_FIRST, b"e=invalid-proof", "invalid-proof"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1"), b"", "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999999"), b"", "iterations"),
        (SERVER_FIRST.replace(b"i=4096", "i=\u00b2\u00b2".encode()), b"", "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5000), b"", "asks for 999999999999 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"0" * 5000 + b"4096"), b"", "iterations"),
        (SERVER_FIRST.replace(b"rOprNGfwEbeRWgbNEkqO", b"another"), b"", "another login"),
        (b"nonsense", b"", "not SCRAM"),
        (b"\xff\xfe", b"", "not SCRAM"),
    ],
)
def test_a_broker_that_does_not_know_the_password_is_found_out(
    first: bytes, final: bytes, complaint: str
) -> None:
    """Whoever skips the signature lets anybody pose as the broker."""
    scram = _scram()

    def converse() -> None:
        scram.answer(first)
        scram.answer(final)

    with pytest.raises(Rejected, match=complaint):
        converse()


def test_a_delegation_token_says_that_it_is_one() -> None:
    """KIP-48: the broker looks the name up among tokens instead of users."""
    scram = Scram("SCRAM-SHA-512", "token,id=1", "hmac", from_token=True, nonce="n")
    assert scram.begin() == b"n,,n=token=2Cid=3D1,r=n,tokenauth=true"


def test_a_refused_token_is_answered_before_the_end() -> None:
    """RFC 7628: the client says one byte more, or the broker waits for it."""
    bearer = OAuthBearer("abc", [("pool", "p1")])
    assert bearer.begin() == b"n,,\x01auth=Bearer abc\x01pool=p1\x01\x01"
    assert bearer.answer(b'{"status":"insufficient_scope","scope":"kafka"}') == b"\x01"
    assert bearer.complaint == "status: insufficient_scope, scope: kafka"
    assert OAuthBearer("abc").answer(b"") is None


@pytest.mark.parametrize(
    "said", [b"[" * 200_000, b'{"a":' * 200_000, b"[1]", b"9" * 5000, b"\xff\xfe"], ids=lambda said: said[:5]
)
def test_a_complaint_of_any_content_is_answered(said: bytes) -> None:
    """What a broker writes there is data: it must not end a survey of many brokers."""
    bearer = OAuthBearer("abc")
    assert bearer.answer(said) == b"\x01"
    assert bearer.complaint == "an answer that is not JSON"


class _Endpoint(BaseHTTPRequestHandler):
    """A token endpoint that remembers what it was asked."""

    status = 200
    answer: bytes = b""
    location = ""
    asked: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.asked.append((self.headers["Authorization"], body))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.answer)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def _endpoint(status: int, answer: bytes, location: str = "") -> Iterator[tuple[str, list[tuple[str, str]]]]:
    asked: list[tuple[str, str]] = []
    given = {"status": status, "answer": answer, "asked": asked, "location": location}
    handler = type("Handler", (_Endpoint,), given)
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _source(endpoint: str) -> TokenSource:
    return TokenSource(endpoint=endpoint, client_id="me", client_secret=Secret(SECRET), scope="a b")


def test_a_token_is_fetched_once_for_many_connections() -> None:
    """Hundred brokers need one token; it is fetched anew only when it ends."""

    async def many(source: TokenSource) -> set[str]:
        memory = Memory()
        return set(await asyncio.gather(*(token_from(source, memory, 5.0) for _ in range(5))))

    with _endpoint(200, b'{"access_token": "t-1", "expires_in": 3600}') as (url, asked):
        assert asyncio.run(many(_source(url))) == {"t-1"}
        credentials = base64.b64encode(f"me:{SECRET}".encode()).decode()
        assert asked == [(f"Basic {credentials}", "grant_type=client_credentials&scope=a+b")]
    with _endpoint(200, b'{"access_token": "t-1", "expires_in": 1}') as (url, asked):
        assert asyncio.run(many(_source(url))) == {"t-1"}
        assert len(asked) == 5, "a token that is about to end was used again"


@pytest.mark.parametrize(
    ("status", "answer", "complaint"),
    [
        (401, b'{"error": "invalid_client"}', r"refused client 'me': HTTP 401 \(invalid_client\)"),
        (500, b"<html>", "HTTP 500"),
        (200, b"<html>", "holds no access_token"),
        (200, b'{"access_token": 7}', "holds no access_token"),
        (200, b"[" * 200_000, "holds no access_token"),
        (200, b'{"access_token": "t", "expires_in": ' + b"9" * 400 + b"}", "holds no access_token"),
        (400, b"[" * 200_000, "HTTP 400"),
        (200, b'{"access_token": "two words"}', "not a bearer token"),
    ],
)
def test_an_endpoint_that_gives_no_token_is_quoted(status: int, answer: bytes, complaint: str) -> None:
    """The secret goes to the endpoint and nowhere else."""
    with _endpoint(status, answer) as (url, _), pytest.raises(ClientError, match=complaint) as caught:
        asyncio.run(token_from(_source(url), Memory(), 5.0))
    assert SECRET not in caught.value.reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    """It would carry the client's secret to any address, also without encryption."""
    with (
        _endpoint(200, b'{"access_token": "t-1"}') as (elsewhere, asked_elsewhere),
        _endpoint(status, b"", elsewhere) as (url, asked),
        pytest.raises(NotAuthenticated, match=f"redirects to {elsewhere}.*Kelpie does not follow") as caught,
    ):
        asyncio.run(token_from(_source(url), Memory(), 5.0))
    assert len(asked) == 1
    assert asked_elsewhere == []
    assert SECRET not in caught.value.reason


def test_an_endpoint_that_speaks_something_else_is_an_error_of_the_login() -> None:
    """http.client has errors of its own for that, which are none of the operating system's."""
    listener = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
            connection.recv(1 << 16)

    greeter = threading.Thread(target=greet)
    greeter.start()
    try:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        with pytest.raises(NotAuthenticated, match="cannot be asked"):
            asyncio.run(token_from(_source(url), Memory(), 5.0))
    finally:
        greeter.join()
        listener.close()


def test_an_endpoint_that_is_not_there_or_no_endpoint() -> None:
    """Addresses of endpoints are mistyped like any other."""
    with pytest.raises(NotAuthenticated, match=r"127\.0\.0\.1:1/token cannot be asked"):
        asyncio.run(token_from(_source("http://127.0.0.1:1/token"), Memory(), 5.0))
    with pytest.raises(BadSettings, match="no address of http"):
        asyncio.run(token_from(_source("ftp://idp.example/token"), Memory(), 5.0))


def test_an_unsigned_token_holds_the_claims() -> None:
    """An unsecured JWS: header alg none, claims, and an empty signature."""
    source = TokenSource(subject="ops", claims=(("sub", "ops"), ("scope", ["a"])))
    head, claims, signature = asyncio.run(token_from(source, Memory(), 1.0)).split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert (decoded["sub"], decoded["scope"], signature) == ("ops", ["a"], "")
    assert decoded["exp"] > decoded["iat"]


def test_a_token_file_that_is_missing_or_empty(tmp_path: Path) -> None:
    """Whatever keeps the file fresh may have failed."""
    path = tmp_path / "token"
    with pytest.raises(BadSettings, match="cannot be read"):
        asyncio.run(token_from(TokenSource(file=str(path)), Memory(), 1.0))
    path.write_text("\n")
    with pytest.raises(BadSettings, match="not a bearer token"):
        asyncio.run(token_from(TokenSource(file=str(path)), Memory(), 1.0))
