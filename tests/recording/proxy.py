"""A proxy on loopback that keeps every frame that passes between clients and one broker.

Clients learn the broker's address from its answers, so the proxy puts its own port in its place; the
recording keeps what the broker sent. Host and port stand side by side in such answers and keep their length.
"""

import asyncio
import itertools
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

HOST = "127.0.0.1"
REQUEST, RESPONSE = "request", "response"
LIMIT_S = 30


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One frame, without its length."""

    scene: str
    connection: int
    direction: str
    frame: bytes


class Proxy:
    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._connections = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self.frames: list[Exchanged] = []
        self.scene = ""
        self.port = 0

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        """Serves from a thread of its own, so that tools can be waited for here."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            server = asyncio.run_coroutine_threadsafe(self._start(), loop).result(LIMIT_S)
            yield self
            asyncio.run_coroutine_threadsafe(self._stop(server), loop).result(LIMIT_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _stop(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number, scene = next(self._connections), self.scene
        to_broker, broker_writer = await asyncio.open_connection(HOST, self._broker_port)
        ways = [
            asyncio.ensure_future(self._relay(reader, broker_writer, scene, number, REQUEST)),
            asyncio.ensure_future(self._relay(to_broker, writer, scene, number, RESPONSE)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (broker_writer, writer):
                end.close()
            self._tasks.discard(task)

    async def _relay(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        scene: str,
        connection: int,
        direction: str,
    ) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (length,) = struct.unpack(">i", await source.readexactly(4))
                frame = await source.readexactly(length)
                self.frames.append(Exchanged(scene, connection, direction, frame))
                passed = self._readdressed(frame) if direction == RESPONSE else frame
                sink.write(struct.pack(">i", length) + passed)
                await sink.drain()

    def _readdressed(self, frame: bytes) -> bytes:
        host = HOST.encode()
        return frame.replace(host + struct.pack(">i", self._broker_port), host + struct.pack(">i", self.port))
