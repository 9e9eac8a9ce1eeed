"""How clients reach the brokers of a lab: by sockets of loopback, or inside the process (memory_network.py).

Sockets are bound before anything else happens, so that a taken port is noticed at once. While a broker is
down its port stays bound without a listener: clients are refused, and no other process gets the port. (A
client that keeps connecting to a free ephemeral port can even connect to itself.)
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Protocol

from kelpie.lab.lab_errors import LabError

log = logging.getLogger("kelpie.lab")

BACKLOG = 512
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S = 1.0
HOST = "127.0.0.1"
NewConnection = Callable[[], asyncio.Protocol]


class Server(Protocol):
    """Accepts connections on one port."""

    @property
    def is_open(self) -> bool: ...

    def close(self) -> None:
        """Accept no more connections."""

    async def settled(self) -> None:
        """Return when every accepted connection has been made."""


class Port(Protocol):
    """A port that is bound. Nothing listens on it before `listen`, so clients are refused."""

    host: str
    number: int

    def listen(self, new_connection: NewConnection, loop: asyncio.AbstractEventLoop) -> Server:
        """Accept connections from now on. Raises OSError when another process listens there."""

    def close(self) -> None:
        """Release the port."""


class BrokerNetwork(Protocol):
    def bind(self, number: int) -> Port:
        """Raises LabError when the port cannot be had."""

    def bind_all(self, count: int, first: int | None) -> list[Port]:
        """`first` and the ports after it, or any free ports. All of them, or none."""


class Acceptor:
    """Accepts connections on a bound socket, and can stop without losing one. It owns the socket.

    asyncio's own server (Python 3.11) forgets a connection that it has accepted when it is closed before the
    connection is made: the socket stays open until it is collected. This class keeps track of each one.
    """

    def __init__(self, bound: socket.socket, factory: NewConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = bound
        self._factory = factory
        self._loop = loop
        self._arriving: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self.is_open = True
        bound.listen(BACKLOG)
        bound.setblocking(False)
        loop.add_reader(bound, self._accept)

    def close(self) -> None:
        """Accept no more. Clients whose connection has not been accepted yet are refused."""
        if self.is_open:
            self.is_open = False
            if self._retry is not None:
                self._retry.cancel()
            self._loop.remove_reader(self._socket)
            self._socket.close()

    async def settled(self) -> None:
        """Return when every connection that was accepted has been made."""
        while self._arriving:
            await asyncio.wait(self._arriving)

    def _accept(self) -> None:
        for _ in range(BACKLOG):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                log.warning("no connection can be accepted for %g s: %s", _RETRY_S, error.strerror)
                self._loop.remove_reader(self._socket)
                self._retry = self._loop.call_later(_RETRY_S, self._resume)
                return
            task = self._loop.create_task(self._make(accepted))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    def _resume(self) -> None:
        if self.is_open:
            self._loop.add_reader(self._socket, self._accept)

    async def _make(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._factory, accepted)
        except OSError:
            accepted.close()


class LoopbackPort:
    def __init__(self, bound: socket.socket) -> None:
        self._socket = bound
        self.host, self.number = bound.getsockname()[:2]

    def listen(self, new_connection: NewConnection, loop: asyncio.AbstractEventLoop) -> Server:
        return Acceptor(self._socket, new_connection, loop)

    def close(self) -> None:
        self._socket.close()


class Loopback:
    """Sockets of 127.0.0.1."""

    def bind(self, number: int) -> Port:
        return LoopbackPort(bind_socket(number))

    def bind_all(self, count: int, first: int | None) -> list[Port]:
        with contextlib.ExitStack() as undo:
            sockets = [undo.enter_context(bind_socket(first + at if first else 0)) for at in range(count)]
            for bound in sockets:
                # Two sockets may be bound to one port as long as neither listens.
                try:
                    bound.listen()
                except OSError as error:
                    port = bound.getsockname()[1]
                    raise LabError(f"Port {port} of {HOST} cannot be had ({error.strerror}).") from None
            undo.pop_all()
        return [LoopbackPort(bound) for bound in sockets]


def bind_socket(port: int) -> socket.socket:
    """A socket bound to the port; 0 leaves the choice to the system. Raises LabError."""
    if not 0 <= port < 65_536:
        raise LabError(f"Port {port} does not exist; ports go from 1 to 65535.")
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # As Kafka: connections that linger in TIME_WAIT do not make a port taken.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise LabError(
            f"Port {port} of {HOST} cannot be had ({error.strerror}). Choose another one, or none to get one "
            "that is free."
        ) from None
    return bound
