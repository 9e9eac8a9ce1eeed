"""A line on standard error that says what goes on, from the second second on. Only where a terminal is."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from kelpie.cli.terminal import rewrites, terminal_width
from kelpie.model.cells import shortened
from kelpie.model.quoting import harmless

_EVERY_S = 0.25
_SILENT_S = 1.0
_CLEAR = "\r\x1b[K"
_NARROW = 80


class StatusLine:
    """One line of a terminal, written again and again by a thread while the block runs, and then cleared."""

    def __init__(
        self, text: Callable[[], str], to: TextIO | None = None, silent_s: float = _SILENT_S
    ) -> None:
        """`text`: what the line says now. `silent_s`: what is done by then needs no line."""
        self._text, self._to, self._silent_s = text, to or sys.stderr, silent_s
        self._lock = threading.Lock()
        self.is_shown = rewrites(self._to)

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self.is_shown:
            yield
            return
        ended = threading.Event()
        clock = threading.Thread(target=self._tick, args=(ended,), daemon=True)
        clock.start()
        try:
            yield
        finally:
            ended.set()
            clock.join()
            self._write("")

    def rewrite(self) -> None:
        width = (terminal_width(self._to) or _NARROW) - 1
        self._write(shortened(harmless(self._text()), width))

    def _tick(self, ended: threading.Event) -> None:
        wait_s = self._silent_s
        while not ended.wait(wait_s):
            self.rewrite()
            wait_s = _EVERY_S

    def _write(self, line: str) -> None:
        with self._lock:
            self._to.write(_CLEAR + line)
            self._to.flush()


@contextmanager
def progress(command: str, doing: str) -> Iterator[None]:
    """Shows while the block runs what it does, and for how long."""
    began = time.monotonic()
    label = f"kelpie {command}".rstrip()
    with StatusLine(lambda: f"{label}: {doing}, {time.monotonic() - began:.0f} s").shown():
        yield
