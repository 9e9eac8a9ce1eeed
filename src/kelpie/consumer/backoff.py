"""How long to wait before the next attempt: twice as long after each failure, up to a limit.

Kafka's clients add a random fifth. Here nothing is random, so that every run can be repeated.
"""

from kelpie.model.time import Instant


class Backoff:
    def __init__(self, first_ms: int, most_ms: int) -> None:
        self._first_ms = first_ms
        self._most_ms = max(first_ms, most_ms)
        self.failures = 0
        self.until: Instant = 0
        """No attempt before this."""

    def failed(self, now: Instant) -> int:
        """One more failure; the time to wait."""
        self.failures += 1
        wait_ms = min(self._most_ms, self._first_ms << min(self.failures - 1, 30))
        self.until = now + wait_ms
        return wait_ms

    def succeeded(self) -> None:
        self.failures = 0
        self.until = 0

    def over(self, now: Instant) -> bool:
        return now >= self.until
