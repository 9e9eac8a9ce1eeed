"""A blocking client for tests: sends frames, and reads the answers in whatever order they come."""

import socket
from contextlib import suppress
from types import TracebackType
from typing import Any

from kelpie.wire.api.api_versions import ApiVersionsRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.framing import RequestHeader, decode_response, encode_request
from kelpie.wire.schema import declaration_of

LIMIT_S = 60.0


def heartbeat(group: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=1, member_id="m")


class Client:
    def __init__(self, cluster: Any, node: int = 0, client_id: str | None = "test") -> None:
        host, port = cluster.bootstrap_servers.split(",")[node].split(":")
        self.socket = socket.create_connection((host, int(port)), LIMIT_S)
        self.client_id = client_id
        self._sent: dict[int, tuple[int, int]] = {}
        self._correlation = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def frame(self, message: Any, version: int = 0) -> bytes:
        self._correlation += 1
        key = declaration_of(type(message)).api_key
        assert key is not None
        self._sent[self._correlation] = (key, version)
        return encode_request(RequestHeader(key, version, self._correlation, self.client_id), message)

    def send(self, message: Any, version: int = 0) -> int:
        self.socket.sendall(self.frame(message, version))
        return self._correlation

    def receive_frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4)))

    def receive(self) -> tuple[int, Any]:
        """The correlation id and the message of the next answer."""
        frame = self.receive_frame()
        key, version = self._sent[int.from_bytes(frame[:4])]
        return decode_response(key, version, frame)

    def ask(self, message: Any, version: int = 0) -> Any:
        correlation = self.send(message, version)
        answered, response = self.receive()
        assert answered == correlation
        return response

    def is_closed(self) -> bool:
        """Whether the broker has closed the connection without a further word; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def says_nothing(self, for_s: float = 0.15) -> bool:
        """Nothing comes within this time. To be used where something would come at once."""
        self.socket.settimeout(for_s)
        try:
            with suppress(TimeoutError):
                self.socket.recv(1, socket.MSG_PEEK)
                return False
            return True
        finally:
            self.socket.settimeout(LIMIT_S)

    def is_served(self) -> bool:
        return bool(self.ask(ApiVersionsRequest()).error_code == 0)

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = self.socket.recv(count - len(received))
            if not piece:
                raise ConnectionResetError("the broker closed the connection")
            received += piece
        return bytes(received)
