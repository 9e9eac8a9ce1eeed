"""The port of one broker: who is connected, and how all of it ends."""

import asyncio
from collections.abc import Callable

from kelpie.broker.image import Endpoint
from kelpie.broker.personas import Persona
from kelpie.lab.connection import Connection
from kelpie.lab.driver import Driver
from kelpie.lab.faults import Faults
from kelpie.lab.metrics import Meter
from kelpie.lab.network import Port, Server
from kelpie.wire.framing import LARGEST_FRAME


class Listener:
    """The port of one broker and the connections on it."""

    def __init__(
        self,
        endpoint: Endpoint,
        driver: Driver,
        faults: Faults,
        persona: Persona,
        *,
        neighbours: Callable[[], list[Endpoint]],
        largest_frame: int = LARGEST_FRAME,
    ) -> None:
        self.endpoint = endpoint
        self.node_id = endpoint.node_id
        self.driver = driver
        self.faults = faults
        self.persona = persona
        self.neighbours = neighbours
        """The brokers that are alive, this one among them."""
        self.largest_frame = largest_frame
        self.meter = Meter()
        self.connections: set[Connection] = set()
        self._server: Server | None = None
        self._emptied: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._server is not None and self._server.is_open

    def open(self, port: Port) -> None:
        """Serve on the port. Raises OSError when somebody else listens there."""
        self._server = port.listen(lambda: Connection(self), self.driver.loop)

    def close(self, *, abruptly: bool) -> int:
        """Close the port and all connections: how many there were. Abruptly, the unsent stays unsent."""
        if self._server is not None:
            self._server.close()
        cut = [connection for connection in self.connections if not connection.closed]
        for connection in cut:
            connection.close(abruptly=abruptly)
        return len(cut)

    async def closed(self) -> None:
        """Come back when no socket of this listener is left."""
        if self._server is not None:
            await self._server.settled()
        while self.connections:
            self._emptied = self.driver.loop.create_future()
            await self._emptied

    def lost(self, connection: Connection) -> None:
        self.meter.connections -= 1
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)
