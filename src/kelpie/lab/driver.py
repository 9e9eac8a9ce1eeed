"""Drives a fabric on one event loop: hands it the requests, and wakes it at its deadlines.

Only the driver calls the fabric, and never from within: an answer that leaves while the fabric works is
written to its connection at once, but the connection's next request waits for a later iteration of the loop.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from kelpie.broker.call import Call
from kelpie.broker.fabric import Fabric
from kelpie.model.time import Instant

T = TypeVar("T")
log = logging.getLogger("kelpie.lab")

_MOST_TICKS = 64
_DEFECTS_KEPT = 100
_AFTER_A_DEFECT_MS = 100
"""A timer that fails again and again must not occupy the loop."""


class ClusterClock:
    """Milliseconds since 1970 that never run backwards.

    The wall clock is read once; from there on the monotonic clock moves the time. So session timeouts, long
    polls and the event loop's own timers agree with each other when the machine's clock is set.
    """

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


class FabricDriver:
    def __init__(self, fabric: Fabric, clock: ClusterClock, loop: asyncio.AbstractEventLoop) -> None:
        self.fabric = fabric
        self.clock = clock
        self.loop = loop
        self.defects: list[BaseException] = []
        """What went wrong inside the lab; the first of many."""
        self.watchers: list[Callable[[], None]] = []
        """Called after each event that may have changed the cluster."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Instant = 0
        self._follow_up: asyncio.Handle | None = None
        self._closed = False

    def deliver(self, node_id: int, call: Call) -> None:
        """One request to one broker. It answers through the call, now or later."""
        try:
            self.fabric.handle(node_id, call, self.clock.now())
        except Exception as error:
            self.defect(f"broker {node_id} failed on {type(call.message).__name__}", error)
            call.refuse()
        self.touched()

    def change(self, change: Callable[[Fabric, Instant], T]) -> T:
        """Changes the fabric from outside, then runs what is due."""
        try:
            return change(self.fabric, self.clock.now())
        finally:
            self.touched()

    def touched(self) -> None:
        if self._follow_up is None and not self._closed:
            self._follow_up = self.loop.call_soon(self._follow)

    def close(self) -> None:
        self._closed = True
        for handle in (self._timer, self._follow_up):
            if handle is not None:
                handle.cancel()
        self._timer = self._follow_up = None

    def defect(self, what: str, error: BaseException) -> None:
        log.error("defect: %s", what, exc_info=error)
        if len(self.defects) < _DEFECTS_KEPT:
            self.defects.append(error)

    def _follow(self) -> None:
        """Runs what is due, and sets the timer for what is due next."""
        self._follow_up = None
        deadline = self._tick_what_is_due()
        for watcher in tuple(self.watchers):
            watcher()
        if deadline is None:
            return
        # A timer that is too early costs one idle iteration; setting it anew with every request costs more.
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self.loop.call_later(self.clock.seconds_until(deadline), self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._follow()

    def _tick_what_is_due(self) -> Instant | None:
        deadline = self.fabric.next_deadline()
        for _ in range(_MOST_TICKS):
            now = self.clock.now()
            if deadline is None or deadline > now:
                break
            try:
                self.fabric.tick(now)
            except Exception as error:
                self.defect("a timer failed", error)
                return now + _AFTER_A_DEFECT_MS
            deadline = self.fabric.next_deadline()
        return deadline
