"""How far logs have been read: one that has grown is read on from its last entry.

What was known at the end of a log is kept beside the tables (`Progress`), so that the next run goes on as if
it had read all of it. That holds as long as nothing that comes later says otherwise of earlier rows: if the
new lines tell the group of an old one, the log is read anew, and its rows are replaced.

A log goes on under the name that its file has by then (`identity`).
"""

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from kelpie.pipeline.sources.logs.identity import (
    Look,
    are_beside,
    begins_with,
    by_path,
    is_as_it_was,
    is_beginning,
    look_at,
)
from kelpie.pipeline.sources.logs.parts import Known, Part
from kelpie.pipeline.sources.logs.rows import EVENTS, Columns
from kelpie.pipeline.storage.lake import Lake, quoted

_FOLDER = "_logs"
_MOST_PAGES = 16
_SUFFIX = ".log-progress"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a log up to its last entry."""

    path: str
    names: tuple[str, ...]
    """What its rows may have as their source: all names that it has had, and the one of its file last."""
    look: Look
    """How far it was read."""
    steps: tuple[int, ...] = ()
    """Marks of its beginnings."""
    end: int = 0
    """Where its last entry begins."""
    part: Part | None = None
    """None: it cannot be read on."""
    known: Known | None = None
    """What its rows were written with."""
    last: Columns | None = None
    """Rows of its last entry, as they were written."""
    was_gone: bool = False
    """There was another log in its place, or none, when that was last looked at."""

    @property
    def where(self) -> str:
        """Which rows of `log_event` are of it, in SQL."""
        names = ", ".join(map(quoted, self.names))
        return f"source IN ({names}) AND log = {quoted(self.look.log)}"

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def is_gone(self) -> bool:
        return not is_as_it_was(Path(self.path), self.path, self.look)


class Found(NamedTuple):
    """What to do with a log."""

    look: Look
    go_on: Progress | None = None
    replaces: Progress | None = None
    """Rows that were written of it, and have to go if it is read anew."""
    outdated: Progress | None = None
    """Rows that were written of its file when that was too short to tell which log it is; they have to go."""
    told_as: tuple[str, ...] = ()
    """It is a copy: its rows are told under these names."""


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
        """By log, and then by path."""
        for page in self._pages:
            for progress in _read(page):
                self._known.setdefault(progress.look.log, {})[progress.path] = progress

    def find(self, path: str, file: Path, size: int) -> Found:
        """Raises OSError."""
        look = look_at(file, path, size)
        found = self._find(path, file, look)
        if path not in self._known.get(look.log, {}):
            return found._replace(outdated=self._known.get(by_path(path), {}).get(path))
        return found

    def _find(self, path: str, file: Path, look: Look) -> Found:
        known = self._known.get(look.log, {})
        own, near = known.get(path), [it for it in known.values() if _may_be(it, path)]
        same = [it for it in near if it.look.size <= look.size and begins_with(file, it.look)]
        if same:
            newest = max(same, key=lambda it: (it.look.size, it.path == path))
            return Found(look, newest if newest.part is not None else None, newest)
        if own is not None:
            return Found(look, None, own)
        longer = [
            it
            for it in near
            if it.look.size > look.size
            and (begins_with(Path(it.path), look) or is_beginning(file, look.size, it.steps))
        ]
        if longer:
            return Found(look, told_as=longer[0].names)
        return Found(look)

    def save(self, logs: Iterable[Progress], batch: int) -> None:
        """Before the batch is committed; it counts if that comes to pass."""
        now = list(logs)
        if not now:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(now, self._folder / f"{batch:020}{_SUFFIX}")
        if len(self._pages) > _MOST_PAGES:
            self._write(self._lasting(), self._pages[-1])
            for page in self._pages[:-1]:
                page.unlink(missing_ok=True)

    def _lasting(self) -> list[Progress]:
        """Without what was gone already the last time: by now it has been found under its new name."""
        everything = [(it, it.is_gone) for known in self._known.values() for it in known.values()]
        return [replace(it, was_gone=gone) for it, gone in everything if not (gone and it.was_gone)]

    def _write(self, logs: Sequence[Progress], page: Path) -> None:
        brief = [(it.path, it.names, tuple(it.look)) for it in logs]
        draft = page.with_suffix(".draft")
        draft.write_bytes(pickle.dumps((_shape(), brief, pickle.dumps(logs)), pickle.HIGHEST_PROTOCOL))
        draft.replace(page)


def _may_be(progress: Progress, path: str) -> bool:
    """Whether a file of that path can be the same log: rotation leaves logs where they are, or moves them."""
    return are_beside(progress.path, path) or progress.is_gone


def _batch_of(page: Path) -> int:
    return int(page.name.removesuffix(_SUFFIX))


def _shape() -> list[str]:
    """A Kelpie of another age may know other things of a log; then it has to be read anew."""
    return [it.name for kind in (Progress, Part, Known) for it in fields(kind)]


def _read(page: Path) -> list[Progress]:
    shape, brief, logs = pickle.loads(page.read_bytes())
    if shape != _shape():
        return [Progress(path, names, Look(*look)) for path, names, look in brief]
    found: list[Progress] = pickle.loads(logs)
    return found
