"""The server of the pages: uvicorn's, behind a door that counts, with connections that have limits."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from kelpie.web.serving.connection import LimitedConnection
from kelpie.web.serving.door import Door
from kelpie.web.serving.limits import Limits

_BACKLOG = 128


class PageServer(uvicorn.Server):
    def __init__(
        self, application: ASGIApp, tls: ssl.SSLContext | None = None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        super().__init__(
            uvicorn.Config(
                cast(Any, application),
                http="h11",
                ws="none",
                log_level="warning",
                access_log=False,
                proxy_headers=False,  # Anybody on this machine could send them.
                server_header=False,
                h11_max_incomplete_event_size=self.limits.head_bytes,
                timeout_graceful_shutdown=self.limits.ending_s,
            )
        )
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """`sockets`: where it listens."""
        assert sockets, "bound by listeners()"
        await super().startup(sockets=[])
        loop = asyncio.get_running_loop()

        def new_connection() -> LimitedConnection:
            return LimitedConnection(self.config, self.server_state, self.lifespan.state, self.limits, loop)

        connections = cast(set[LimitedConnection], self.server_state.connections)
        door = Door(sockets, new_connection, connections, self.limits, self._tls)
        self.servers.append(cast(asyncio.Server, door))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Clients that have not read their answer by now are dropped."""
        await super().shutdown(sockets)
        for connection in tuple(cast(set[LimitedConnection], self.server_state.connections)):
            connection.drop()
        await asyncio.sleep(0)  # The loop closes their sockets.


def listeners(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at each address that the name of the host has. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            opened.append(socket.create_server(address[:2], family=family, backlog=_BACKLOG))
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


def tls_of(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
