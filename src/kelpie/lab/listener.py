"""The port of one broker, and its connections."""

import asyncio

from kelpie.broker.image import Endpoint
from kelpie.lab.connection import BrokerConnection, ServedBroker
from kelpie.lab.network import Port, Server


class Listener:
    """The port of one broker and the connections on it."""

    def __init__(self, endpoint: Endpoint, broker: ServedBroker) -> None:
        self.endpoint = endpoint
        self.broker = broker
        self.connections: set[BrokerConnection] = set()
        self._server: Server | None = None
        self._emptied: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._server is not None and self._server.is_open

    def open(self, port: Port) -> None:
        """Serve on the port. Raises OSError when another process listens there."""
        self._server = port.listen(self._new_connection, self.broker.driver.loop)

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
            self._emptied = self.broker.driver.loop.create_future()
            await self._emptied

    def _new_connection(self) -> BrokerConnection:
        return BrokerConnection(self.broker, made=self._made, lost=self._lost)

    def _made(self, connection: BrokerConnection) -> bool:
        self.connections.add(connection)
        return self.is_open

    def _lost(self, connection: BrokerConnection) -> None:
        self.broker.meter.connections -= 1
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)
