"""The progress of a run: one line that is rewritten on a terminal; elsewhere one line per stage."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TextIO

from kelpie.cli.progress import StatusLine

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary

_WHO = "kelpie pipeline"
_WORDS = {"files": "looking at files", "bronze": "taking in files"}


class ProgressLine:
    """Call it with the name of what begins now. `summary`: the one that the run fills."""

    def __init__(self, summary: "Summary", to: TextIO, *, quiet: bool = False) -> None:
        self._summary, self._to, self._quiet = summary, to, quiet
        self._line = StatusLine(self._text, to, silent_s=0.25)
        self._began = time.monotonic()
        self._doing = ""
        self._tasks: Callable[[], tuple[int, int]] = lambda: (0, 0)

    def __call__(self, text: str) -> None:
        self._doing = _WORDS.get(text, text)
        if self._quiet:
            return
        if self._line.is_shown:
            self._line.rewrite()
        else:
            print(f"{_WHO}: {self._so_far()}", file=self._to, flush=True)

    def watch(self, tasks: Callable[[], tuple[int, int]]) -> None:
        """Shows these tasks from now on: how many are done, and how many there are."""
        self._tasks = tasks

    def shown(self) -> AbstractContextManager[None]:
        """Keeps the line up to date inside the block, and clears it at the end."""
        return nullcontext() if self._quiet else self._line.shown()

    def _text(self) -> str:
        try:
            done, of = self._tasks()
        except Exception:  # Spark may be stopped by now; the line then shows no tasks.
            done, of = 0, 0
        return f"{_WHO}: {self._so_far(done, of)}"

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
