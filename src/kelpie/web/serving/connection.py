"""One connection of a client: uvicorn's protocol, with limits for what uvicorn waits for without end.

uvicorn waits for the rest of a request, for the rest of a body that nobody reads, and for a client that does
not read its answer. Each is a way to hold a connection for ever. Here

* a request has to be complete in time, or the connection ends, with 408 if a part of a request has come;
* an answer has to be read, some of it each half minute, or the connection is dropped;
* when answers that nobody reads take too much memory, the client with the largest one is dropped.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kelpie.web.serving.limits import Limits

_TOO_SLOW = b"The request did not come in time.\n"


class LimitedConnection(H11Protocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        self._limits = limits
        self._counted: _Counted | None = None
        self._early = b""
        self._has_sent_some = False
        self._waits_for: object = None
        self._request_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self.waiting_since = 0.0
        """When it began to wait for a request, or for the rest of one."""

    @property
    def is_waiting(self) -> bool:
        """For the client to send: nobody works on an answer for it, and none is on its way."""
        return self._is_answered and not self.unread_bytes and not self.transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        return 0 if self._counted is None else self._counted.get_write_buffer_size()

    def connected(self, transport: asyncio.Transport, beneath: asyncio.Transport | None = None) -> None:
        """`beneath`: the transport of the socket, where `transport` encrypts."""
        self._counted = _Counted(transport, beneath)
        super().connection_made(cast(asyncio.Transport, self._counted))
        self._note_state()
        if self._early:
            self.data_received(self._early)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.connected(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is None:
            return  # It ended before its handshake did.
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves it if the connection ended with an error.
        for timer in (self._request_timer, self._reading_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._counted is None:
            self._early += data  # It came in one piece with the end of the handshake.
            return
        self._has_sent_some = True
        super().data_received(data)
        self._note_state()

    def send_400_response(self, msg: str) -> None:
        if self._is_answered:
            super().send_400_response(msg)
        else:
            self.transport.abort()  # An answer has begun: there is no second one.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._has_sent_some = bool(self.conn.trailing_data[0])
        self._waits_for = None  # The next request has its own time.
        self._note_state()
        self._watch_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()
        drop_largest(cast(Iterable[LimitedConnection], self.connections), self._limits.unread_bytes)

    def timeout_keep_alive_handler(self) -> None:
        """An answer that is still being read is no pause between two requests."""
        if self.unread_bytes:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def drop(self) -> None:
        self.transport.abort()

    @property
    def _is_answered(self) -> bool:
        """Nobody works on an answer."""
        return self.cycle is None or self.cycle.response_complete

    def _note_state(self) -> None:
        """Begins, or ends, to count the time of what the client has to send."""
        state = self.conn.their_state
        if state is self._waits_for:
            return
        self._waits_for = state
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        limit_s = {h11.IDLE: self._limits.head_s, h11.SEND_BODY: self._limits.body_s}.get(state)
        if limit_s is not None:
            self.waiting_since = self.loop.time()
            self._request_timer = self.loop.call_later(limit_s, self._came_too_late)

    def _came_too_late(self) -> None:
        if self.transport.is_closing():
            return
        if self._has_sent_some and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and self._is_answered:
            headers = [("content-type", "text/plain"), ("connection", "close")]
            answer = h11.Response(status_code=408, reason=b"Request Timeout", headers=headers)
            for event in (answer, h11.Data(data=_TOO_SLOW), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()
            self._watch_reader()
        else:
            self.drop()

    def _watch_reader(self) -> None:
        if self._reading_timer is None and self._counted is not None and self.unread_bytes:
            self._reading_timer = self.loop.call_later(
                self._limits.reading_s, self._look_at_reader, self._counted.taken
            )

    def _look_at_reader(self, taken_before: int) -> None:
        assert self._counted is not None
        self._reading_timer = None
        if self.unread_bytes and self._counted.taken <= taken_before:
            self.drop()
        else:
            self._watch_reader()


def drop_largest(connections: Iterable[LimitedConnection], most: int) -> None:
    """Of what clients have not read: one that reads nothing would otherwise keep it in memory."""
    by_size = sorted(connections, key=lambda connection: connection.unread_bytes)
    total = sum(connection.unread_bytes for connection in by_size)
    while total > most:
        largest = by_size.pop()
        total -= largest.unread_bytes
        largest.drop()


class _Counted:
    """A transport that knows how much the client has taken.

    asyncio's transport of TLS hands all that it encrypts to that of the socket, and counts it no more.
    """

    def __init__(self, transport: asyncio.Transport, beneath: asyncio.Transport | None) -> None:
        self._transport = transport
        self._beneath = beneath
        self._written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def taken(self) -> int:
        return self._written - self.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def get_write_buffer_size(self) -> int:
        beneath = 0 if self._beneath is None else self._beneath.get_write_buffer_size()
        return self._transport.get_write_buffer_size() + beneath
