"""Which log a file holds, also after rotation.

Rotation renames a log, or copies it and empties the original. So there may be two files of one log, and a
file of one name holds several logs in the course of time. A log is identified by its beginning, up to the
first line with a time; a log without such a line, by its path.

Rotation may happen while a log is being read: what the file was before (`FileState`) must still be true
afterwards, or nothing that was read counts.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from itertools import count, takewhile
from pathlib import PurePath
from typing import NamedTuple

from kelpie.evidence.logs.layouts import parse_head
from kelpie.pipeline.sources.grown_files import mark_of
from kelpie.places import Place

_BEGINNING = 4096
_FIRST_STEP = 256


class FileState(NamedTuple):
    """A file at one moment."""

    log: str
    """The log that it holds."""
    size: int
    mark: int = 0
    """A checksum: a file with the same one is the same up to that size."""


class Seen(NamedTuple):
    """A file and its state. `path` identifies it, `file` is where it can be read."""

    path: str
    file: Place
    state: FileState


def state_of(file: Place, path: str, size: int) -> FileState:
    """The state of a file, up to `size`. Raises OSError."""
    with file.open("rb") as opened:
        beginning = opened.read(_BEGINNING)
        size = min(size, opened.seek(0, os.SEEK_END))
    return FileState(_log_of(beginning, path), size, mark_of(file, size))


def still_begins_so(file: Place, path: str, state: FileState) -> bool:
    """Whether the file still begins with what it held in this state."""
    try:
        return state_of(file, path, state.size) == state
    except OSError:
        return False


def begins_with(file: Place, state: FileState) -> bool:
    """Whether another file begins with all that a file held in this state."""
    try:
        return file.stat().st_size >= state.size and mark_of(file, state.size) == state.mark
    except OSError:
        return False


def steps_of(file: Place, size: int) -> tuple[int, ...]:
    """Checksums of ever longer beginnings, to recognise a copy when the file is gone. Raises OSError."""
    steps = takewhile(lambda step: step <= size, (_FIRST_STEP << 2 * number for number in count()))
    return tuple(mark_of(file, step) for step in steps)


def is_beginning(file: Place, size: int, steps: Sequence[int]) -> bool:
    """Whether a file is the beginning of a log with these checksums. Raises OSError."""
    marks = steps_of(file, size)
    return bool(marks) and marks == tuple(steps[: len(marks)])


def by_path(path: str) -> str:
    """The identity of a log that has no line with a time."""
    return _digest(os.fsencode(path))


def are_beside(one: str, other: str) -> bool:
    """Whether both are in one folder."""
    return PurePath(one).parent == PurePath(other).parent


def copies(files: Iterable[Seen]) -> dict[str, str]:
    """Files that are the beginning of another file in their folder: the paths of both."""
    alike: dict[tuple[PurePath, str], list[Seen]] = {}
    for seen in files:
        alike.setdefault((PurePath(seen.path).parent, seen.state.log), []).append(seen)
    copies_of: dict[str, str] = {}
    for same in alike.values():
        # The longest is read; of equal ones the longer name, for the other will soon hold another log.
        same.sort(key=lambda seen: (-seen.state.size, -len(seen.path), seen.path))
        for number, seen in enumerate(same):
            for other in same[:number]:
                if other.path not in copies_of and begins_with(other.file, seen.state):
                    copies_of[seen.path] = other.path
                    break
    return copies_of


def _log_of(beginning: bytes, path: str) -> str:
    end = 0
    for line in beginning.splitlines(keepends=True):
        if len(beginning) < _BEGINNING and not line.endswith(b"\n"):
            break  # The line is not complete yet.
        end += len(line)
        head = parse_head(line.decode("utf-8", "replace").rstrip("\r\n"))
        if head is not None and head.time:
            return _digest(beginning[:end])
    return by_path(path)


def _digest(what: bytes) -> str:
    return hashlib.sha256(what).hexdigest()[:16]
