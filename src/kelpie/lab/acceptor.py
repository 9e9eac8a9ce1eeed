"""Takes connections on a port, and can stop doing so without losing one.

asyncio's own server (Python 3.11) forgets a connection that it has accepted when it is closed before the
connection is made: its socket stays open until it is collected. Here each one is known from the start.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

log = logging.getLogger("kelpie.lab")

BACKLOG = 512
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S = 1.0


class Acceptor:
    """Serves a bound socket from now on, and owns it."""

    def __init__(
        self, bound: socket.socket, factory: Callable[[], asyncio.Protocol], loop: asyncio.AbstractEventLoop
    ) -> None:
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
        """Take no more. Those who knocked and were not let in yet are refused."""
        if self.is_open:
            self.is_open = False
            if self._retry is not None:
                self._retry.cancel()
            self._loop.remove_reader(self._socket)
            self._socket.close()

    async def settled(self) -> None:
        """Come back when every connection that was accepted has been made."""
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
