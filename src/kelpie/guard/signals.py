"""Signals to the guard, as events.

A handler in Python runs in the main thread, when that runs next: a main thread that waits for its queue does
not notice a signal that another thread received, or that came just before it began to wait. The handler in C
writes the signal's number into a pipe at once, and a thread reads it from there.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any


class Signals:
    """Hands each of these signals to `on_signal`, in a thread of its own, until it is closed.

    Those that were ignored stay so, for the process too: nohup.
    """

    def __init__(self, numbers: Sequence[int], on_signal: Callable[[int], Any]) -> None:
        self._on_signal = on_signal
        self._source, self._sink = os.pipe()
        os.set_blocking(self._sink, False)
        self._wakeup = signal.set_wakeup_fd(self._sink, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._read, name="kelpie-guard-signals", daemon=True)
        self._thread.start()
        self._handlers: dict[int, Any] = {}
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, _do_nothing)

    def close(self) -> None:
        """Signals do again what they did before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._sink)
        self._thread.join()

    def _read(self) -> None:
        with contextlib.closing(os.fdopen(self._source, "rb", buffering=0)) as source:
            while numbers := source.read(64):
                for number in numbers:
                    self._on_signal(number)


def _do_nothing(*_: object) -> None:
    """Without a handler in Python there is none in C."""
