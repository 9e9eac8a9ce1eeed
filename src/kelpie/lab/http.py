"""As much of HTTP/1.1 as a control API needs: requests with a short body, answers with a length.

Everything has a limit, in bytes and in time, so that a bad client harms only itself.
"""

import asyncio
import http
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

MOST_HEADER_BYTES = 16 * 1024
MOST_BODY_BYTES = 64 * 1024
REQUEST_LIMIT_S = 10.0
IDLE_LIMIT_S = 60.0
_MOST_HEADERS = 100
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "origin", "connection"})
"""Headers whose second value would be another opinion."""
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":[0-9]{1,5}$")


class RequestRefused(Exception):
    """The request is answered with this status and message."""

    def __init__(self, status: int, message: str, *, allow: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.allow = allow


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: tuple[str, ...]
    """The parts between the slashes, decoded one by one: a part may hold a slash itself."""
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self, *, keep_alive: bool, with_body: bool) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status} {http.HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (self.body if with_body else b"")


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request, or None when the client sends no more. Raises RequestRefused."""
    try:
        first = await asyncio.wait_for(reader.read(1), IDLE_LIMIT_S)
    except TimeoutError:
        return None
    if not first:
        return None
    try:
        return await asyncio.wait_for(_rest(first, reader), REQUEST_LIMIT_S)
    except TimeoutError:
        raise RequestRefused(408, f"The request did not arrive within {REQUEST_LIMIT_S:.0f} s.") from None
    except asyncio.IncompleteReadError:
        return None


async def _rest(first: bytes, reader: asyncio.StreamReader) -> Request:
    try:
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise RequestRefused(431, f"The headers take more than {MOST_HEADER_BYTES} bytes.") from None
    line, *header_lines = head[:-4].split("\r\n")
    method, target, version = _request_line(line)
    headers = _headers(header_lines)
    _check_host(headers, version)
    if "origin" in headers:
        raise RequestRefused(403, "Web pages may not control the lab.")
    if "transfer-encoding" in headers:
        raise RequestRefused(411, "Send the body with a Content-Length.")
    body = await reader.readexactly(_length(headers))
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"
    return Request(method, _path(target), body, keep_alive)


def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or not parts[0].isalpha() or not parts[1].startswith("/"):
        raise RequestRefused(400, "This is no HTTP request.")
    if parts[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise RequestRefused(505, "Speak HTTP/1.1.")
    return parts[0], parts[1], parts[2]


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > _MOST_HEADERS:
        raise RequestRefused(431, f"More than {_MOST_HEADERS} headers.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise RequestRefused(400, "A header cannot be read.")
        name = name.lower()
        if name in _ONCE and name in headers:
            raise RequestRefused(400, f"{name} is there twice.")
        headers[name] = value.strip()
    return headers


def _check_host(headers: dict[str, str], version: str) -> None:
    """A page in a browser can make a name of its own mean 127.0.0.1 (DNS rebinding), but not change Host."""
    host = headers.get("host")
    if host is None:
        if version == "HTTP/1.0":
            return  # No browser speaks it.
        raise RequestRefused(400, "The Host header is missing.")
    if _PORT.sub("", host).lower() not in _OWN_NAMES:
        raise RequestRefused(403, "The lab answers to localhost and addresses of loopback only.")


def _length(headers: dict[str, str]) -> int:
    given = headers.get("content-length", "0")
    if not given.isascii() or not given.isdigit():
        raise RequestRefused(400, f"A Content-Length of {given!r} cannot be.")
    if len(given) > 12 or int(given) > MOST_BODY_BYTES:
        raise RequestRefused(413, f"The body may have {MOST_BODY_BYTES} bytes.")
    return int(given)


def _path(target: str) -> tuple[str, ...]:
    path = target.partition("?")[0]
    try:
        return tuple(unquote(part, errors="strict") for part in path.split("/")[1:] if part)
    except UnicodeDecodeError:
        raise RequestRefused(400, "The path is not UTF-8.") from None
