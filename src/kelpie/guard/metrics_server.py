"""The metrics of a guard over HTTP, on loopback.

The guard must go on whatever others on the machine do with this port. So few clients are served at a time,
each within a time that does not begin anew with each byte. Web pages that make a name of their own mean
127.0.0.1 (DNS rebinding) are refused.
"""

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kelpie.guard.guard_errors import GuardFailed
from kelpie.model.prometheus_text import CONTENT_TYPE

LOOPBACK = "127.0.0.1"
MOST_CLIENTS = 8
LIMIT_S = 10.0
"""For one client, from the connection to the end of the answer."""
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":[0-9]{1,5}$")


class MetricsServer:
    """Answers GET /metrics on loopback, until it is closed. Raises GuardFailed if the port cannot be had."""

    def __init__(self, port: int, text: Callable[[], str], limit_s: float = LIMIT_S) -> None:
        try:
            self._server = _FewClients((LOOPBACK, port), _handler(text), limit_s)
        except OSError as error:
            raise GuardFailed(f"Port {port} cannot be had for metrics: {error.strerror}.") from None
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="kelpie-guard-metrics", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _FewClients(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], limit_s: float
    ) -> None:
        super().__init__(address, handler)
        self._limit_s = limit_s
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        timer = threading.Timer(self._limit_s, _end, [request])
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone, or was too slow: no words for the guard's log."""


def _end(connection: socket.socket) -> None:
    """Whoever reads from it, or writes to it, gets an error at once."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hosts = self.headers.get_all("host", [LOOPBACK])
            if len(hosts) != 1 or _PORT.sub("", hosts[0]).lower() not in _OWN_NAMES:
                self.send_error(403)
                return
            if self.path.partition("?")[0] not in ("/", "/metrics"):
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The guard's log is for what the guard does."""

    return Handler
