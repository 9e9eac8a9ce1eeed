"""A virtual clock: what is due, in the order of time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol

from kelpie.model.time import Instant


class Chance(Protocol):
    """The part of `random.Random` that the simulation uses."""

    def random(self) -> float: ...

    def uniform(self, a: float, b: float) -> float: ...

    def randrange(self, start: int, stop: int) -> int: ...


class Agenda:
    def __init__(self, now: Instant) -> None:
        self.now = now
        self._due: list[tuple[Instant, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def after(self, delay_ms: float, action: Callable[..., object], *arguments: Any) -> None:
        self.at(self.now + int(delay_ms), action, *arguments)

    def at(self, when: Instant, action: Callable[..., object], *arguments: Any) -> None:
        """Actions of the same time happen in the order in which they were noted."""
        self._number += 1
        heappush(self._due, (max(when, self.now), self._number, action, arguments))

    def run(self, until: Instant) -> None:
        due = self._due
        while due and due[0][0] <= until:
            self.now, _, action, arguments = heappop(due)
            action(*arguments)
        self.now = until
