"""How far logs have been read: a log that has grown is continued from its last entry.

What the reader knew at the end of a log is kept beside the tables (`LogProgress`), so that the next run
continues as if it had read all lines. If new lines change what is known of old rows (such as their group),
the log is read again from its beginning and its rows are replaced.

A log that rotation has renamed is continued under its new name (`identity`).

What is kept is JSON of declared types (`typed_data`): whoever can write to the tables, or hands them over,
must not be able to run code here.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, NamedTuple
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
from kelpie.pipeline.sources.logs.rows import EVENTS
from kelpie.pipeline.storage.lake import Lake, quoted
from kelpie.pipeline.storage.typed_data import Mismatch, read, shape, written
from kelpie.places import Place, place_of
from kelpie.places.place import files_in, write_whole

_FOLDER = "_logs"
_MOST_PAGES = 16
_SUFFIX = ".json"
_PICKLED = ".log-progress"
"""What earlier releases kept. It is never read: to read it is to run what is in it."""
_ROWS_OF_BEFORE = "rows-of-before.json"
"""Which names each log had in the table when its progress could not be read."""
_NOT_READ = (
    "How far logs were read was kept by an earlier release, in files (pickle) that can run code; they are "
    "deleted unread."
)
_AGAIN = "A log that grows is read once more from its beginning, and its rows in the tables are replaced."


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
    last: str | None = None
    """Rows of its last entry, as they were written (`rows.text_of`)."""
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
        return not still_begins_so(place_of(self.path), self.path, self.state)


class _Page(NamedTuple):
    """A file of progress."""

    shape: str
    """The fields of a progress."""
    brief: Sequence[tuple[str, tuple[str, ...], FileState]]
    """What every release understands of each log: path, names, state."""
    logs: Sequence[str]
    """The progress of each log, as JSON."""


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

    def __init__(self, lake: Lake, cluster: str, application: str, notes: list[str] | None = None) -> None:
        """What is read anew, and why, is added to `notes`."""
        self._folder = lake.root / _FOLDER / quote(cluster, safe="")
        self._notes = notes
        committed = lake.version_of(EVENTS, application)
        self._pages: list[Place] = []
        for page in sorted(files_in(self._folder, f"*{_SUFFIX}"), key=str):
            if not page.stem.isdecimal():
                continue
            if int(page.stem) <= committed:
                self._pages.append(page)
            else:
                page.unlink()  # Of a run that was killed before its commit: its rows are not in the table.
        self._known: dict[str, dict[str, LogProgress]] = {}
        """By log, then by path."""
        try:
            for page in self._pages:
                for progress in _read(page):
                    self._known.setdefault(progress.state.log, {})[progress.path] = progress
        except Mismatch as error:
            self._known = {}
            self._begin_anew(lake, cluster, self._pages, f"{error}.")
            self._pages = []
        if pickled := files_in(self._folder, f"*{_PICKLED}"):
            self._begin_anew(lake, cluster, pickled, _NOT_READ)
        self._without_progress = self._rows_of_before()
        """Logs whose rows the table has, and how far each was read is not known: their names there."""

    def find(self, path: str, file: Place, size: int, rows_name: str) -> ReadingPlan:
        """`rows_name`: what its rows have as source. Raises OSError."""
        state = state_of(file, path, size)
        plan = self._plan(path, file, state)
        if plan == ReadingPlan(state):
            plan = plan._replace(replaces=self._of_before(path, file, state, rows_name))
        if path not in self._known.get(state.log, {}):
            unnamed = FileState(by_path(path), 0)
            outdated = self._known.get(unnamed.log, {}).get(path)
            return plan._replace(outdated=outdated or self._of_before(path, file, unnamed, rows_name))
        return plan

    def _of_before(self, path: str, file: Place, state: FileState, rows_name: str) -> LogProgress | None:
        """Rows in the table of a log of which nothing else is known; also under a name that it had before."""
        names = [
            name
            for name in self._without_progress.get(state.log, ())
            if name == rows_name
            or (are_beside(name, rows_name) and not _holds(file.with_name(PurePath(name).name), state.log))
        ]
        is_known = state.log in self._known
        return LogProgress(path, tuple(names), state) if names and not is_known else None

    def _plan(self, path: str, file: Place, state: FileState) -> ReadingPlan:
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
            and (
                begins_with(place_of(progress.path), state) or is_beginning(file, state.size, progress.steps)
            )
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

    def _write(self, logs: Sequence[LogProgress], page: Place) -> None:
        brief = [(progress.path, progress.names, progress.state) for progress in logs]
        texts = [json.dumps(written(progress), separators=(",", ":")) for progress in logs]
        _write_json(page, written(_Page(shape(LogProgress), brief, texts)))

    def _begin_anew(self, lake: Lake, cluster: str, pages: Sequence[Place], why: str) -> None:
        """Without these pages: a log is read from its beginning, and its rows in the table are replaced."""
        rows = lake.rows(EVENTS, cluster, columns=["log", "source"]).group_by(["log", "source"])
        names: defaultdict[str, list[str]] = defaultdict(list)
        for row in rows.aggregate([]).to_pylist():
            names[row["log"]].append(row["source"])
        _write_json(self._folder / _ROWS_OF_BEFORE, written(names))
        for page in pages:
            page.unlink()
        if self._notes is not None:
            self._notes.append(f"{why} {_AGAIN}")

    def _rows_of_before(self) -> Mapping[str, Sequence[str]]:
        file = self._folder / _ROWS_OF_BEFORE
        return _parsed(file, Mapping[str, Sequence[str]]) if file.exists() else {}


def _may_be(progress: LogProgress, path: str) -> bool:
    """Whether the file at `path` can be this log: rotation keeps logs in their folder, or moves them away."""
    return are_beside(progress.path, path) or progress.is_gone


def _read(page: Place) -> Sequence[LogProgress]:
    """Another release may keep other fields; then logs are read from their beginning. Raises Mismatch."""
    found: _Page = _parsed(page, _Page)
    if len(found.brief) != len(found.logs):
        raise Mismatch(f"{page} is damaged: it names {len(found.brief)} logs and holds {len(found.logs)}")
    if found.shape == shape(LogProgress):
        return [_of_text(page, log) for log in found.logs]
    return [LogProgress(path, names, state) for path, names, state in found.brief]


def _parsed(file: Place, hint: Any) -> Any:
    """Raises Mismatch."""
    return _of_text(file, file.read_bytes(), hint)


def _of_text(file: Place, text: str | bytes, hint: Any = LogProgress) -> Any:
    """Raises Mismatch."""
    try:
        return read(hint, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise Mismatch(f"{file} is damaged: {error}") from None


def _write_json(page: Place, data: object) -> None:
    write_whole(page, json.dumps(data, separators=(",", ":")).encode("ascii"))


def _holds(file: Place, log: str) -> bool:
    try:
        return state_of(file, str(file), 0).log == log
    except OSError:
        return False
