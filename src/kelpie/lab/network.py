"""How clients reach the brokers of a lab: by sockets of loopback, or inside the process."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from kelpie.lab import ports
from kelpie.lab.acceptor import Acceptor

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


class Network(Protocol):
    def bind(self, number: int) -> Port:
        """Raises LabError when the port cannot be had."""

    def bind_all(self, count: int, first: int | None) -> list[Port]:
        """`first` and the ports after it, or any free ports. All of them, or none."""


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
        return LoopbackPort(ports.bind(number))

    def bind_all(self, count: int, first: int | None) -> list[Port]:
        return [LoopbackPort(bound) for bound in ports.bind_all(count, first)]


LOOPBACK = Loopback()
