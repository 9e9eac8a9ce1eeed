"""Where answers of coordinators go, when they are not yet the answer to a client."""

from collections.abc import Callable
from typing import Any


class Relay:
    """Hands an answer on, changed."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[Any], None]) -> None:
        self._then = then

    def answer(self, response: Any) -> None:
        self._then(response)


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
