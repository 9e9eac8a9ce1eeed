"""The lab's clock: milliseconds since 1970 that never run backwards.

It is read off the wall once; from there on the monotonic clock moves it. So session timeouts, long polls and
the event loop's own timers agree with each other when the machine's clock is set.
"""

import time
from collections.abc import Callable

from kelpie.model.time import Instant


class ClusterClock:
    def __init__(
        self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._origin = wall() - monotonic()

    def now(self) -> Instant:
        return int((self._origin + self._monotonic()) * 1000)

    def seconds_until(self, instant: Instant) -> float:
        """Never negative."""
        return max(0.0, instant / 1000 - self._origin - self._monotonic())
