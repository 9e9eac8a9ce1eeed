"""An event loop whose clock is virtual: when nothing is ready, time jumps to the next timer.

    virtual_time.run(main())        # like asyncio.run, and never sleeps

A program that waits with the loop's own timers (asyncio.sleep, timeouts, call_later) and talks over a network
inside the process (memory_network.py) runs as fast as it computes, and takes the same course every time. All
sessions, retention times and poll intervals keep their length by the virtual clock.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
_IDLE_LIMIT_S = 10.0
_BEGINNING_S = 1_767_225_600.0
"""1 January 2026."""


class _Jumping(selectors.BaseSelector):
    """Polls its files without waiting; a wait moves the clock instead."""

    def __init__(self) -> None:
        self._files = selectors.DefaultSelector()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # No timer is left. Only another thread, or a signal, can wake the loop.
            ready = self._files.select(_IDLE_LIMIT_S)
            if not ready:
                raise RuntimeError("Nothing is left that could wake the event loop.")
            return ready
        self.now_s += max(0.0, timeout)
        return self._files.select(0)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._files.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._files.get_map()

    def close(self) -> None:
        self._files.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """`wall` stands for time.time: it always begins at the same moment, and moves with the loop."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def wall(self) -> float:
        return _BEGINNING_S + self._jumping.now_s


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own with a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
