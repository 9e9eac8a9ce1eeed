"""The progress of a run: one line that is rewritten on a terminal; elsewhere one line per stage."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary

_WHO = "kelpie pipeline"
_EVERY_S = 0.25
_WORDS = {"files": "looking at files", "bronze": "taking in files"}
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Call it with the name of what begins now. `summary`: the one that the run fills."""

    def __init__(self, summary: "Summary", to: TextIO, *, quiet: bool = False) -> None:
        self._summary, self._to = summary, to
        self._quiet = quiet
        self._rewrites = not quiet and to.isatty() and os.environ.get("TERM", "") != "dumb"
        self._began = time.monotonic()
        self._doing = ""
        self._tasks: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        self._doing = _WORDS.get(text, text)
        if self._rewrites:
            self._rewrite()
        elif not self._quiet:
            print(f"{_WHO}: {self._so_far()}", file=self._to, flush=True)

    def watch(self, tasks: Callable[[], tuple[int, int]]) -> None:
        """Shows these tasks from now on: how many are done, and how many there are."""
        self._tasks = tasks

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keeps the line up to date inside the block, and clears it at the end."""
        if not self._rewrites:
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
            self._to.write(_CLEAR)
            self._to.flush()

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(_EVERY_S):
            self._rewrite()

    def _rewrite(self) -> None:
        try:
            done, of = self._tasks()
        except Exception:  # Spark may be stopped by now; the line then shows no tasks.
            done, of = 0, 0
        width = shutil.get_terminal_size().columns - 1
        line = f"{_WHO}: {self._so_far(done, of)}"
        with self._lock:
            self._to.write(_CLEAR + (line if len(line) <= width else line[: width - 1] + "…"))
            self._to.flush()

    def _so_far(self, done: int = 0, of: int = 0) -> str:
        summary = self._summary
        rows = sum(summary.written.values())
        rows += sum(count for table, count in summary.tables.items() if table not in summary.written)
        parts = [f"{time.monotonic() - self._began:.0f} s"]
        if summary.files:
            parts.append(f"{summary.files:,} files")
        if rows:
            parts.append(f"{rows:,} rows")
        if of:
            parts.append(f"{done}/{of} tasks")
        return f"{', '.join(parts)}: {self._doing}"
