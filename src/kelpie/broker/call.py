"""One request on its way through a broker, and where parts of its answer are put together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kelpie.wire.framing import RequestHeader


@dataclass(slots=True, eq=False)
class Call:
    """A request, its sender, and where the answer goes.

    `answer` is called once: with the response, or with None where the protocol has no answer (a produce
    request with acks=0). `refuse` closes the connection instead: a broker does that with a request that it
    does not understand.
    """

    header: RequestHeader
    message: Any
    client_host: str
    """As Kafka writes it: with a slash in front."""
    answer: Callable[[Any], None]
    refuse: Callable[[], None]
    listener: str = "PLAINTEXT"
    connection: "ClientConnection | None" = None
    """None: the driver does not tell."""

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""


@dataclass(slots=True, eq=False)
class ClientConnection:
    """The connection that calls come on. It is not equal to any other."""

    is_closed: bool = False


class HeldAnswer:
    """Keeps the answer to a call back until it is released. What is answered after that leaves at once."""

    def __init__(self, call: Call) -> None:
        self._send = call.answer
        self._responses: list[Any] = []
        self._is_released = False
        call.answer = self._answer

    def release(self) -> None:
        self._is_released = True
        responses, self._responses = self._responses, []
        for response in responses:
            self._send(response)

    def _answer(self, response: Any) -> None:
        if self._is_released:
            self._send(response)
        else:
            self._responses.append(response)


@dataclass(frozen=True, slots=True)
class Relay:
    """Stands for a call towards a shard, and hands its answer on, changed."""

    answer: Callable[[Any], None]


class Gather:
    """Waits for the answers about several groups and puts them together in the order they were asked."""

    def __init__(self, count: int, finish: Callable[[list[Any]], None]) -> None:
        self._parts: list[Any] = [None] * count
        self._missing = count
        self._finish = finish
        if count == 0:
            finish([])

    def part(self, index: int) -> Relay:
        def then(response: Any) -> None:
            self._parts[index] = response
            self._missing -= 1
            if self._missing == 0:
                self._finish(self._parts)

        return Relay(then)
