"""Log files that the process writes itself, read as they grow.

A file that is renamed away and made anew is read to its end, and then the new one from its start. A file that
is cut off and written on, as logrotate's copytruncate does, is read from its start again: it is shorter than
what was read, or what stood before the position is not there any more.
"""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kelpie.guard.lines import LineCutter

_LOOK_S = 0.2
_PIECE = 65_536
_REMEMBERED = 64


class LogFile:
    """One file by its path. What stands in it at first is older than the process, and is passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._identity = (0, 0)
        self._position = 0
        self._before = b""
        """What was read last, up to the position."""
        self._cutter = LineCutter()
        if self._open():
            assert self._descriptor is not None
            self._position = os.fstat(self._descriptor).st_size
            start = max(0, self._position - _REMEMBERED)
            self._before = os.pread(self._descriptor, self._position - start, start)

    def lines(self) -> list[str]:
        """All new lines. A file that cannot be read has none."""
        lines = self._rest()
        while self._was_replaced():
            lines += self._rest()
            lines += self._cutter.end()
            if not self._open():
                break
            lines += self._rest()
        return lines

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> bool:
        self.close()
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)
        self._start_over()
        return True

    def _was_replaced(self) -> bool:
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return self._descriptor is None or (status.st_dev, status.st_ino) != self._identity

    def _start_over(self) -> None:
        self._position, self._before, self._cutter = 0, b"", LineCutter()

    def _rest(self) -> list[str]:
        if self._descriptor is None:
            return []
        lines: list[str] = []
        try:
            if self._was_cut_off(self._descriptor):
                lines += self._cutter.end()
                self._start_over()
            while data := os.pread(self._descriptor, _PIECE, self._position):
                self._position += len(data)
                self._before = (self._before + data)[-_REMEMBERED:]
                lines += self._cutter.feed(data)
        except OSError:
            pass
        return lines

    def _was_cut_off(self, descriptor: int) -> bool:
        if os.fstat(descriptor).st_size < self._position:
            return True
        start = self._position - len(self._before)
        return os.pread(descriptor, len(self._before), start) != self._before


class LogFollower(threading.Thread):
    """Reads several files until it is stopped."""

    def __init__(self, paths: Sequence[Path], on_line: Callable[[Path, str], Any]) -> None:
        super().__init__(name="kelpie-guard-files", daemon=True)
        self._files = {path: LogFile(path) for path in paths}
        self._on_line = on_line
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            self.catch_up()

    def catch_up(self) -> None:
        """Reads what is there now."""
        with self._lock:
            for path, file in self._files.items():
                for line in file.lines():
                    self._on_line(path, line)

    def stop(self) -> None:
        self._stopped.set()
