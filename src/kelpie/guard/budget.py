"""How soon, and how often, a process may be started again. No input or output."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

HOUR_S = 3600.0
_CALM_S = 600.0
"""After a run of this length, the back-off begins anew."""


@dataclass(frozen=True, slots=True)
class BackOff:
    first_s: float = 1.0
    longest_s: float = 60.0
    per_hour: int = 20
    """Restarts within any hour."""


class RestartBudget:
    """The restarts so far. Times are of a clock that never jumps."""

    def __init__(self, back_off: BackOff, earlier: Iterable[float] = ()) -> None:
        self._back_off = back_off
        self.restarts = deque(sorted(earlier))
        """When, within the last hour."""
        self._in_a_row = len(self.restarts)

    def spend(self, lived_s: float, now: float, chance: float) -> float | None:
        """How long to wait before the next start; None: it has been restarted too often.

        `lived_s`: how long the last run took. `chance`, from 0 to 1, spreads the starts of processes that
        failed together.
        """
        while self.restarts and self.restarts[0] <= now - HOUR_S:
            self.restarts.popleft()
        if len(self.restarts) >= self._back_off.per_hour:
            return None
        if lived_s >= _CALM_S:
            self._in_a_row = 0
        # More than 60 doublings reach every limit.
        wait_s = min(self._back_off.first_s * 2.0 ** min(self._in_a_row, 60), self._back_off.longest_s)
        self._in_a_row += 1
        self.restarts.append(now)
        return wait_s * (0.5 + chance / 2)
