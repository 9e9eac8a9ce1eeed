"""How far logs have been read: a log that has grown is continued from its last entry.

What the reader knew at the end of a log is kept beside the tables (`LogProgress`), so that the next run
continues as if it had read all lines. If new lines change what is known of old rows (such as their group),
the log is read again from its beginning and its rows are replaced.

A log that rotation has renamed is continued under its new name (`identity`).
"""

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from kelpie.pipeline.sources.logs.identity import (
    FileState,
    are_beside,
    begins_with,
    by_path,
    is_beginning,
    state_of,
    still_begins_so,
)
from kelpie.pipeline.sources.logs.parts import Known, Part
from kelpie.pipeline.sources.logs.rows import EVENTS, Columns
from kelpie.pipeline.storage.lake import Lake, quoted

_FOLDER = "_logs"
_MOST_PAGES = 16
_SUFFIX = ".log-progress"


@dataclass(frozen=True, slots=True)
class LogProgress:
    """What is known of a log up to its last entry."""

    path: str
    names: tuple[str, ...]
    """All names that it has had, which its rows may have as source; the name of its file comes last."""
    state: FileState
    """Its file when it was read."""
    steps: tuple[int, ...] = ()
    """Checksums of its beginnings."""
    end: int = 0
    """Where its last entry begins."""
    part: Part | None = None
    """None: it cannot be continued."""
    known: Known | None = None
    """What was known when its rows were written."""
    last: Columns | None = None
    """Rows of its last entry, as they were written."""
    was_gone: bool = False
    """At the last check, its file was gone, or held another log."""

    @property
    def where(self) -> str:
        """Which rows of `log_event` are of it, in SQL."""
        names = ", ".join(map(quoted, self.names))
        return f"source IN ({names}) AND log = {quoted(self.state.log)}"

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def is_gone(self) -> bool:
        return not still_begins_so(Path(self.path), self.path, self.state)


class ReadingPlan(NamedTuple):
    """What to do with a log."""

    state: FileState
    go_on: LogProgress | None = None
    replaces: LogProgress | None = None
    """Its rows in the table, which are deleted if it is read from its beginning."""
    outdated: LogProgress | None = None
    """Rows of its file from before it was long enough to be identified; they are deleted."""
    rows_under: tuple[str, ...] = ()
    """It is a copy: the table has its rows under these names."""


class Ledger:
    """The logs of a cluster whose rows the table has. `application`: the one that fills log_event."""

    def __init__(self, lake: Lake, cluster: str, application: str) -> None:
        self._folder = lake.root / _FOLDER / quote(cluster, safe="")
        committed = lake.version_of(EVENTS, application)
        self._pages: list[Path] = []
        for page in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if int(page.stem) <= committed:
                self._pages.append(page)
            else:
                page.unlink()  # Of a run that was killed before its commit: its rows are not in the table.
        self._known: dict[str, dict[str, LogProgress]] = {}
        """By log, then by path."""
        for page in self._pages:
            for progress in _read(page):
                self._known.setdefault(progress.state.log, {})[progress.path] = progress

    def find(self, path: str, file: Path, size: int) -> ReadingPlan:
        """Raises OSError."""
        state = state_of(file, path, size)
        plan = self._plan(path, file, state)
        if path not in self._known.get(state.log, {}):
            return plan._replace(outdated=self._known.get(by_path(path), {}).get(path))
        return plan

    def _plan(self, path: str, file: Path, state: FileState) -> ReadingPlan:
        known = self._known.get(state.log, {})
        of_path, near = known.get(path), [progress for progress in known.values() if _may_be(progress, path)]
        same = [
            progress
            for progress in near
            if progress.state.size <= state.size and begins_with(file, progress.state)
        ]
        if same:
            newest = max(same, key=lambda progress: (progress.state.size, progress.path == path))
            return ReadingPlan(state, newest if newest.part is not None else None, newest)
        if of_path is not None:
            return ReadingPlan(state, None, of_path)
        longer = [
            progress
            for progress in near
            if progress.state.size > state.size
            and (begins_with(Path(progress.path), state) or is_beginning(file, state.size, progress.steps))
        ]
        if longer:
            return ReadingPlan(state, rows_under=longer[0].names)
        return ReadingPlan(state)

    def save(self, logs: Iterable[LogProgress], batch: int) -> None:
        """Call it before the batch is committed; it counts only if that commit succeeds."""
        now = list(logs)
        if not now:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(now, self._folder / f"{batch:020}{_SUFFIX}")
        if len(self._pages) > _MOST_PAGES:
            self._write(self._lasting(), self._pages[-1])
            for page in self._pages[:-1]:
                page.unlink(missing_ok=True)

    def _lasting(self) -> list[LogProgress]:
        """All but logs that were gone twice in a row: a renamed log is known under its new name by now."""
        everything = (progress for known in self._known.values() for progress in known.values())
        return [
            replace(progress, was_gone=is_gone)
            for progress in everything
            if not ((is_gone := progress.is_gone) and progress.was_gone)
        ]

    def _write(self, logs: Sequence[LogProgress], page: Path) -> None:
        brief = [(progress.path, progress.names, tuple(progress.state)) for progress in logs]
        draft = page.with_suffix(".draft")
        draft.write_bytes(pickle.dumps((_shape(), brief, pickle.dumps(logs)), pickle.HIGHEST_PROTOCOL))
        draft.replace(page)


def _may_be(progress: LogProgress, path: str) -> bool:
    """Whether the file at `path` can be this log: rotation keeps logs in their folder, or moves them away."""
    return are_beside(progress.path, path) or progress.is_gone


def _shape() -> list[str]:
    """Fields of what is kept. Another release may have others; then logs are read from their beginning."""
    return [field.name for kind in (LogProgress, Part, Known) for field in fields(kind)]


def _read(page: Path) -> list[LogProgress]:
    shape, brief, logs = pickle.loads(page.read_bytes())
    if shape != _shape():
        return [LogProgress(path, names, FileState(*state)) for path, names, state in brief]
    read: list[LogProgress] = pickle.loads(logs)
    return read
