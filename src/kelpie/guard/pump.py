"""Passes a stream of the process through, byte for byte, and shows its lines to a watch.

Each stream has a thread of its own, and none of them decides anything: a process that is being ended, and
writes a lot while it closes, must not find its pipe full because its reader waits for it to end.
"""

import math
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from kelpie.guard.lines import LineCutter

_PIECE = 65_536
_IDLE_MS = 500
_LOOK_S = 0.02


class Outlet:
    """Where a stream goes: the guard's own standard output or error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._at_line_start = True

    def write(self, data: bytes, *, on_a_line_of_its_own: bool = False) -> bool:
        """Blocks until all is written. False: nobody reads any more."""
        with self._lock:
            if on_a_line_of_its_own and not self._at_line_start:
                data = b"\n" + data
            self._at_line_start = data.endswith(b"\n")
            return self._write(memoryview(data))

    def _write(self, left: memoryview) -> bool:
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # Whoever opened it has made it non-blocking.
                select.select([], [self._descriptor], [])
            except OSError:
                return False
        return True


class Pump(threading.Thread):
    """Reads one end of a pipe until all writers have closed theirs."""

    def __init__(self, source: int, outlet: Outlet, on_line: Callable[[str], Any]) -> None:
        super().__init__(name="kelpie-guard-pump", daemon=True)
        self._source, self._outlet, self._on_line = source, outlet, on_line
        self._idle = threading.Event()
        """Set when all that came was passed on, and nothing has come since for a while."""

    def run(self) -> None:
        cutter = LineCutter()
        try:
            while data := self._read():
                # The lines first: nobody may be there to read what is passed on.
                for line in cutter.feed(data):
                    self._on_line(line)
                if not self._outlet.write(data):
                    break
            for line in cutter.end():
                self._on_line(line)
        finally:
            os.close(self._source)

    def settle(self, limit_s: float = math.inf) -> None:
        """Returns at the end of the stream, or when all that came was passed on and nothing follows.

        A process outside the group may hold the pipe open for ever. `limit_s` bounds how long a slow reader
        of the guard's own output is waited for.
        """
        self._idle.clear()
        deadline = time.monotonic() + limit_s
        while self.is_alive() and not self._idle.is_set() and time.monotonic() < deadline:
            self.join(_LOOK_S)

    def _read(self) -> bytes:
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        while not ready.poll(_IDLE_MS):
            self._idle.set()
        return os.read(self._source, _PIECE)
