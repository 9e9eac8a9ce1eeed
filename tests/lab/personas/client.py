"""A client that hides nothing, for any release: it sends one request and gives the answer as it came."""

import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kelpie.wire.framing import RequestHeader, decode_response, encode_request
from kelpie.wire.schema import declaration_of
from tests.lab.personas.transcript import Transcript

LIMIT_S = 60.0


@dataclass(frozen=True)
class Sent:
    """A request on its way."""

    correlation: int
    api_key: int
    version: int
    name: str
    kept: bool


class Client:
    """One connection. What is asked with `ask` goes into the transcript, with `peek` it does not."""

    def __init__(self, port: int, transcript: Transcript, client_id: str = "client") -> None:
        self.client_id = client_id
        self._transcript = transcript
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self._correlation = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Any, version: int, *, kept: bool = True) -> Sent:
        key = declaration_of(type(message)).api_key
        assert key is not None
        self._correlation += 1
        name = type(message).__name__.removesuffix("Request")
        sent = Sent(self._correlation, key, version, f"{self.client_id} {name} v{version}", kept)
        self._socket.sendall(
            encode_request(RequestHeader(key, version, sent.correlation, self.client_id), message)
        )
        return sent

    def exchange(self, frame: bytes, name: str) -> bytes:
        """Sends bytes as they are, and gives the frame that comes back."""
        self._socket.sendall(frame)
        answer = self._frame()
        self._transcript.lines.append(f"{name}: {answer.hex(' ')}")
        return answer

    def receive(self, sent: Sent) -> Any:
        frame = self._frame()
        correlation, response = decode_response(sent.api_key, sent.version, frame)
        assert correlation == sent.correlation
        if sent.kept:
            self._transcript.add(sent.name, response)
        return response

    def ask(self, message: Any, version: int) -> Any:
        return self.receive(self.send(message, version))

    def peek(self, message: Any, version: int) -> Any:
        """For questions that are asked until the answer is right: how often is a matter of chance."""
        return self.receive(self.send(message, version, kept=False))

    def is_answered(self) -> bool:
        """Whether an answer has come already."""
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(LIMIT_S)

    def is_closed(self) -> bool:
        """Whether the broker closes the connection without a word; waits for it."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def _frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise ConnectionResetError("the broker closed the connection")
            received += piece
        return bytes(received)
