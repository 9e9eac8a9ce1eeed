"""Deadlines of a broker, soonest first."""

import heapq
import itertools
from collections.abc import Callable, Hashable

from kelpie.model.time import Instant

Action = Callable[[Instant], None]


class Timers:
    """A timer has a key; setting it again moves it. The driver of the broker runs what is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Hashable]] = []
        self._set: dict[Hashable, tuple[int, Action]] = {}
        self._serial = itertools.count()

    def set(self, key: Hashable, at: Instant, action: Action) -> None:
        serial = next(self._serial)
        self._set[key] = (serial, action)
        heapq.heappush(self._heap, (at, serial, key))

    def cancel(self, key: Hashable) -> None:
        self._set.pop(key, None)

    def is_set(self, key: Hashable) -> bool:
        return key in self._set

    def clear(self) -> None:
        self._heap.clear()
        self._set.clear()

    def next_deadline(self) -> Instant | None:
        self._drop_void()
        return self._heap[0][0] if self._heap else None

    def run_due(self, now: Instant) -> None:
        """Runs what is due now. What that sets for now or earlier waits for the next call: nothing loops."""
        due: list[tuple[int, Hashable]] = []
        while self._heap and self._heap[0][0] <= now:
            _, serial, key = heapq.heappop(self._heap)
            due.append((serial, key))
        for serial, key in due:
            held = self._set.get(key)
            if held is not None and held[0] == serial:  # An action that ran before may have cancelled it.
                del self._set[key]
                held[1](now)

    def _drop_void(self) -> None:
        heap = self._heap
        while heap:
            _, serial, key = heap[0]
            held = self._set.get(key)
            if held is not None and held[0] == serial:
                return
            heapq.heappop(heap)
