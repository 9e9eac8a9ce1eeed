"""Accepts connections, no more than there is room for, and speaks TLS with them first if that is wanted.

asyncio's own server accepts without end, and counts nobody whose handshake is not done: clients that only
connect could take all files that the process may have open, and looks at clusters need some.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from kelpie.web.serving.connection import LimitedConnection
from kelpie.web.serving.limits import Limits

log = logging.getLogger("kelpie.web")

_AT_ONCE = 16
_RETRY_S = 1.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Door:
    def __init__(
        self,
        listeners: Sequence[socket.socket],
        new_connection: Callable[[], LimitedConnection],
        connections: Collection[LimitedConnection],
        limits: Limits,
        tls: ssl.SSLContext | None,
    ) -> None:
        """`connections`: those that are open, also after this is made. The sockets stay the caller's."""
        self._listeners = listeners
        self._new_connection = new_connection
        self._connections = connections
        self._limits = limits
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._arriving: dict[asyncio.Task[None], _Arrival] = {}
        self._retries: set[asyncio.TimerHandle] = set()
        self.is_open = True
        for listener in listeners:
            listener.setblocking(False)
            self._loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            for timer in self._retries:
                timer.cancel()
            for listener in self._listeners:
                self._loop.remove_reader(listener)
            for arrival in self._arriving.values():
                arrival.drop()

    async def wait_closed(self) -> None:
        while self._arriving:
            await asyncio.wait(self._arriving)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._pause(listener, error)
                return
            accepted.setblocking(False)
            # Linux doubles what is asked for.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.buffer_bytes // 2)
            if self._has_room():
                task = self._loop.create_task(self._arrive(accepted))
                self._arriving[task] = _Arrival(accepted, self._loop.time())
                task.add_done_callback(self._arriving.pop)
            else:
                self._refuse(accepted)

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        log.warning("no connection can be accepted for %g s: %s", _RETRY_S, error.strerror)
        self._loop.remove_reader(listener)

        def again() -> None:
            self._retries.discard(timer)
            self._loop.add_reader(listener, self._accept, listener)

        timer = self._loop.call_later(_RETRY_S, again)
        self._retries.add(timer)

    def _has_room(self) -> bool:
        """If all places are taken, the client that has sent nothing for longest loses its place."""
        if len(self._connections) + len(self._arriving) < self._limits.connections:
            return True
        everybody: list[LimitedConnection | _Arrival] = [*self._connections, *self._arriving.values()]
        waiting = [each for each in everybody if each.is_waiting]
        if not waiting:
            return False
        min(waiting, key=lambda each: each.waiting_since).drop()
        return True

    def _refuse(self, accepted: socket.socket) -> None:
        with accepted, suppress(OSError):
            if self._tls is None:
                accepted.send(_BUSY)

    async def _arrive(self, accepted: socket.socket) -> None:
        try:
            if self._tls is None:
                await self._loop.connect_accepted_socket(self._new_connection, accepted)
            else:
                await self._shake_hands(accepted, self._tls)
        except OSError:  # No handshake, or not in time.
            accepted.close()

    async def _shake_hands(self, accepted: socket.socket, tls: ssl.SSLContext) -> None:
        """First a connection, then TLS: so the transport of the socket is known, and what waits in it."""
        beneath, _ = await self._loop.connect_accepted_socket(_Paused, accepted)
        connection = self._new_connection()
        transport = await self._loop.start_tls(
            beneath,
            connection,
            tls,
            server_side=True,
            ssl_handshake_timeout=self._limits.handshake_s,
            ssl_shutdown_timeout=self._limits.farewell_s,
        )
        if transport is not None:  # As it is, in Python 3.11, for a client that is gone.
            connection.connected(transport, beneath)


@dataclass(slots=True)
class _Arrival:
    """A client whose handshake is under way."""

    accepted: socket.socket
    waiting_since: float
    is_waiting: bool = True

    def drop(self) -> None:
        """The handshake ends with an error."""
        self.is_waiting = False
        with suppress(OSError):
            self.accepted.shutdown(socket.SHUT_RDWR)


class _Paused(asyncio.Protocol):
    """Reads nothing: what comes first belongs to TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).pause_reading()
