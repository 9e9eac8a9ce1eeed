"""Raw requests, many of them waiting at once.

Kafka works on one request of a connection at a time, so a request that is parked (a JoinGroup, a SyncGroup)
blocks its connection. `Connections` therefore gives every request a connection that is idle, and opens one
more when there is none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kelpie.wire.framing import Frames, RequestHeader, decode_response, encode_request
from kelpie.wire.schema import declaration_of


class Lost(Exception):
    """The broker has closed the connection instead of answering."""


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._asked: tuple[int, int, asyncio.Future[Any]] | None = None
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def idle(self) -> bool:
        return self._asked is None and not self.lost.done()

    def ask(self, message: Any, version: int, client_id: str) -> "asyncio.Future[Any]":
        assert self.idle
        assert self._transport is not None
        key = declaration_of(type(message)).api_key
        assert key is not None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked = (key, version, answer)
        self._transport.write(encode_request(RequestHeader(key, version, 1, client_id), message))
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            assert self._asked is not None, "an answer that nobody asked for"
            key, version, answer = self._asked
            self._asked = None
            if not answer.done():
                answer.set_result(decode_response(key, version, frame)[1])

    def connection_lost(self, error: Exception | None) -> None:
        if self._asked is not None:
            answer, self._asked = self._asked[2], None
            if not answer.done():
                answer.set_exception(Lost())
                answer.exception()  # Whoever never looks at it need not be warned.
        if not self.lost.done():
            self.lost.set_result(None)


Connect = Callable[[str, int, asyncio.Protocol], Awaitable[None]]
"""Connects a protocol to a host and a port."""


async def by_socket(host: str, port: int, protocol: asyncio.Protocol) -> None:
    await asyncio.get_running_loop().create_connection(lambda: protocol, host, port)


class Connections:
    """To one broker."""

    def __init__(self, address: str, connect: Connect = by_socket) -> None:
        host, _, port = address.partition(":")
        self._at = (host, int(port))
        self._connect = connect
        self._all: list[Connection] = []

    async def ask(self, message: Any, version: int, client_id: str = "") -> "asyncio.Future[Any]":
        """The answer to come. It raises Lost if the broker would rather not."""
        for connection in self._all:
            if connection.idle:
                return connection.ask(message, version, client_id)
        connection = Connection()
        await self._connect(*self._at, connection)
        self._all.append(connection)
        return connection.ask(message, version, client_id)

    async def close(self) -> None:
        for connection in self._all:
            connection.close()
        if self._all:
            await asyncio.wait([connection.lost for connection in self._all])
        self._all.clear()
