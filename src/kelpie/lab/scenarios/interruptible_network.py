"""A way to a server that can be interrupted, as a network is that loses all packets for a while."""

import asyncio
from contextlib import suppress

_CHUNK = 65_536


class Interruptible:
    """Forwards connections to a server on loopback. While interrupted, it takes bytes and passes none on."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """The address for clients: HOST:PORT."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def interrupt(self) -> None:
        self._passes.clear()

    def restore(self) -> None:
        """Connections from before are broken; clients connect again, and get through."""
        self._passes.set()
        for connection in self._connections:
            connection.cancel()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        outwards: asyncio.StreamWriter | None = None
        try:
            await self._passes.wait()
            back, outwards = await asyncio.open_connection(*self._target)
            ways = [
                asyncio.ensure_future(self._pass_on(*way)) for way in ((reader, outwards), (back, writer))
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            for end in (writer, outwards):
                if end is not None:
                    end.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()
