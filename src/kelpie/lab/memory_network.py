"""A network inside the process: the lab's brokers and Kelpie's clients meet without sockets.

Everything that is written arrives after the same latency and in the order in which it was written. So a run
on a virtual clock (virtual_time.py) always takes the same course. TLS and pauses of full buffers do not exist
here.
"""

import asyncio
from collections import deque
from itertools import count
from typing import Any

from kelpie.lab.network import HOST, NewConnection, Port, Server

_FIRST_PORT = 9092
_FIRST_CLIENT_PORT = 50_000
_LATENCY_S = 0.0002


class MemoryNetwork:
    """The lab binds ports of it, and clients `connect` to them."""

    def __init__(self) -> None:
        self._servers: dict[int, _MemoryServer] = {}
        self._free_ports = count(_FIRST_PORT)
        self._client_ports = count(_FIRST_CLIENT_PORT)

    def bind(self, number: int) -> Port:
        return _MemoryPort(number or next(self._free_ports), self._servers)

    def bind_all(self, count: int, first: int | None) -> list[Port]:
        return [self.bind(first + at if first else 0) for at in range(count)]

    async def connect(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect the protocol to the server of a port. Raises ConnectionRefusedError."""
        await asyncio.sleep(_LATENCY_S)
        server = self._servers.get(port)
        if host != HOST or server is None or not server.is_open:
            raise ConnectionRefusedError(f"nothing listens on {host}:{port}")
        loop = asyncio.get_running_loop()
        client_address = (HOST, next(self._client_ports))
        accepted = server.new_connection()
        client_side = _MemoryTransport(loop, protocol, peername=(HOST, port))
        server_side = _MemoryTransport(loop, accepted, peername=client_address)
        client_side.peer, server_side.peer = server_side, client_side
        accepted.connection_made(server_side)
        protocol.connection_made(client_side)


class _MemoryPort:
    def __init__(self, number: int, servers: "dict[int, _MemoryServer]") -> None:
        self.host = HOST
        self.number = number
        self._servers = servers

    def listen(self, new_connection: NewConnection, loop: asyncio.AbstractEventLoop) -> Server:
        del loop
        server = self._servers[self.number] = _MemoryServer(new_connection)
        return server

    def close(self) -> None:
        """A port that nothing listens on holds nothing."""


class _MemoryServer:
    def __init__(self, new_connection: NewConnection) -> None:
        self.new_connection = new_connection
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    async def settled(self) -> None:
        """A connection is made in the same step in which it is accepted."""


class _MemoryTransport(asyncio.Transport):
    """One end of a connection."""

    peer: "_MemoryTransport"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, peername: tuple[str, int]
    ) -> None:
        super().__init__({"peername": peername})
        self._loop = loop
        self._protocol = protocol
        self._sent_by_peer: deque[bytes | None] = deque()
        """Still on the way; None: the peer has closed."""
        self._arrived: deque[bytes | None] = deque()
        self._reads = True
        self._closing = False

    def write(self, data: Any) -> None:
        if not self._closing:
            self.peer._send(bytes(data))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.peer._send(None)
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._loop.call_soon(self._read)

    def _send(self, data: bytes | None) -> None:
        """The peer has written this. Timers of the same moment have no order, so data waits in a queue."""
        self._sent_by_peer.append(data)
        self._loop.call_later(_LATENCY_S, self._arrive)

    def _arrive(self) -> None:
        self._arrived.append(self._sent_by_peer.popleft())
        self._read()

    def _read(self) -> None:
        while self._arrived and self._reads and not self._closing:
            data = self._arrived.popleft()
            if data is None:
                self.close()
            else:
                self._protocol.data_received(data)
