"""How far logs have been read: one that has grown is read on from its last entry.

What was known at the end of a log is kept beside the tables (`Progress`), so that the next run goes on as if
it had read all of it. That holds as long as nothing that comes later says otherwise of earlier rows: if the
new lines tell the group of an old one, the log is read anew, and its rows are replaced.

A log is known by its first line, wherever its file is: a log that was given another name, as rotation does
it, goes on under the new one, and a file of an old name with another first line is another log.
"""

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from kelpie.pipeline.lake import Lake, quoted
from kelpie.pipeline.sources.grown_files import mark_of
from kelpie.pipeline.sources.log_parts import Known, Part
from kelpie.pipeline.sources.log_rows import EVENTS, Columns

_FOLDER = "_logs"
_FIRST_LINE = 1024
_MOST_PAGES = 16
_SUFFIX = ".log-progress"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a log up to its last entry."""

    path: str
    name: str
    """What its rows have as their source."""
    log: str
    """Which log it is."""
    end: int = 0
    """Where its last entry begins; where it ended, if it cannot be read on."""
    mark: int = 0
    """By which one knows that it is the same up to there."""
    part: Part | None = None
    """None: it cannot be read on."""
    known: Known | None = None
    """What its rows were written with."""
    last: Columns | None = None
    """Rows of its last entry, as they were written."""

    @property
    def where(self) -> str:
        """Which rows of `log_event` are of it, in SQL."""
        return f"source = {quoted(self.name)} AND log = {quoted(self.log)}"


class Found(NamedTuple):
    """What to do with a log."""

    log: str
    go_on: Progress | None = None
    replaces: Progress | None = None
    """Rows that were written of it, and have to go if it is read anew."""


class Ledger:
    """The logs of a cluster that tables have. `application` counts the batches that fill log_event."""

    def __init__(self, lake: Lake, cluster: str, application: str) -> None:
        self._folder = lake.root / _FOLDER / quote(cluster, safe="")
        committed = lake.version_of(EVENTS, application)
        self._pages: list[Path] = []
        for page in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if _batch_of(page) <= committed:
                self._pages.append(page)
            else:
                page.unlink()  # Of a run that was killed before its commit: those rows never came.
        self._known: dict[str, dict[str, Progress]] = {}
        """By log, and then by path: a file of one name may hold one log after the other."""
        for page in self._pages:
            for progress in _read(page):
                self._known.setdefault(progress.log, {})[progress.path] = progress

    def find(self, path: str, file: Path) -> Found:
        """Raises OSError."""
        log = log_of(file)
        known = self._known.get(log, {})
        if path in known:
            return _found(known[path], is_as_before=_is_as_before(known[path], file))
        for other in known.values():
            if _is_gone(other) and _is_as_before(other, file):
                return _found(other, is_as_before=True)
        return Found(log)

    def save(self, logs: Iterable[Progress], batch: int) -> None:
        """Before the batch is committed; it counts if that comes to pass."""
        now = list(logs)
        if not now:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(now, self._folder / f"{batch:020}{_SUFFIX}")
        if len(self._pages) > _MOST_PAGES:
            everything = [it for known in self._known.values() for it in known.values()]
            self._write([it for it in everything if not _is_gone(it)], self._pages[-1])
            for page in self._pages[:-1]:
                page.unlink(missing_ok=True)

    def _write(self, logs: Sequence[Progress], page: Path) -> None:
        names = [(it.path, it.name, it.log) for it in logs]
        draft = page.with_suffix(".draft")
        draft.write_bytes(pickle.dumps((_shape(), names, pickle.dumps(logs)), pickle.HIGHEST_PROTOCOL))
        draft.replace(page)


def log_of(file: Path) -> str:
    """Which log it is, by its first line. Raises OSError."""
    with file.open("rb") as opened:
        return hashlib.sha256(opened.readline(_FIRST_LINE)).hexdigest()[:16]


def _found(progress: Progress, *, is_as_before: bool) -> Found:
    goes_on = is_as_before and progress.part is not None
    return Found(progress.log, progress if goes_on else None, progress)


def _is_as_before(progress: Progress, file: Path) -> bool:
    """As far as it was read."""
    return file.stat().st_size >= progress.end and mark_of(file, progress.end) == progress.mark


def _is_gone(progress: Progress) -> bool:
    """Whether the file of that name is another one by now."""
    try:
        return log_of(Path(progress.path)) != progress.log
    except OSError:
        return True


def _batch_of(page: Path) -> int:
    return int(page.name.removesuffix(_SUFFIX))


def _shape() -> list[str]:
    """A Kelpie of another age may know other things of a log; then it has to be read anew."""
    return [it.name for kind in (Progress, Part, Known) for it in fields(kind)]


def _read(page: Path) -> list[Progress]:
    shape, names, logs = pickle.loads(page.read_bytes())
    if shape != _shape():
        return [Progress(*name) for name in names]
    found: list[Progress] = pickle.loads(logs)
    return found
