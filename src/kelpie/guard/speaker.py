"""The guard's own lines."""

import os
import queue
import threading
import time
from pathlib import Path

from kelpie.guard.guard_errors import GuardFailed
from kelpie.guard.pump import Outlet

_LAST_S = 1.0


class Speaker:
    """Writes the guard's own lines, in a thread of its own: whoever reads them may be slow, or gone."""

    def __init__(self, file: Path | None, outlet: Outlet) -> None:
        self._file, self._outlet = file, outlet
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="kelpie-guard-log", daemon=True)
        self._said: set[str] = set()

    def open(self) -> None:
        """Raises GuardFailed."""
        if self._file is not None:
            try:
                descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise GuardFailed(f"{self._file} cannot be written: {error.strerror}.") from None
            self._outlet = Outlet(descriptor)
        self._thread.start()

    def say(self, text: str) -> None:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._lines.put(f"kelpie guard: {when} {text}\n")

    def say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def finish(self) -> None:
        self._lines.put(None)
        self._thread.join(_LAST_S)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._outlet.write(line.encode(errors="replace"), on_a_line_of_its_own=True)
