"""Which log a file is, whatever its name is today.

Rotation gives a log another name, or copies it away and empties it; so for a while there are two files of one
log, and a file of one name holds one log after the other. A log is known by its beginning, up to the first
line that tells a time. One that has no such line there is known by where it is.

Any of that may happen while a log is being read: what was seen of it before (`Look`) must still be there
afterwards, or nothing that was read counts.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from kelpie.evidence.logs.layouts import parse_head
from kelpie.pipeline.sources.grown_files import mark_of

_BEGINNING = 4096
_STEP_BITS = 2
_FIRST_STEP = 256


class Look(NamedTuple):
    """What a file was at some moment."""

    log: str
    """Which log it is."""
    size: int
    mark: int = 0
    """By which one knows that a file is the same up to that size."""


class Seen(NamedTuple):
    """A file that was looked at. `path` is what it is known by, `file` where it can be read."""

    path: str
    file: Path
    look: Look


def look_at(file: Path, path: str, size: int) -> Look:
    """No further than `size`. Raises OSError."""
    with file.open("rb") as opened:
        beginning = opened.read(_BEGINNING)
        size = min(size, os.fstat(opened.fileno()).st_size)
    return Look(_log_of(beginning, path), size, mark_of(file, size))


def is_as_it_was(file: Path, path: str, look: Look) -> bool:
    """Whether it begins with what was seen then."""
    try:
        return look_at(file, path, look.size) == look
    except OSError:
        return False


def begins_with(file: Path, look: Look) -> bool:
    """Whether another file holds at least all of that log."""
    try:
        return file.stat().st_size >= look.size and mark_of(file, look.size) == look.mark
    except OSError:
        return False


def steps_of(file: Path, size: int) -> tuple[int, ...]:
    """Marks of ever longer beginnings, so that its beginning is known when it is gone. Raises OSError."""
    return tuple(mark_of(file, step) for step in _steps(size))


def is_beginning(file: Path, size: int, steps: Sequence[int]) -> bool:
    """Whether it is the beginning of a log that had these marks, as far as they tell. Raises OSError."""
    mine = steps_of(file, size)
    return bool(mine) and mine == tuple(steps[: len(mine)])


def by_path(path: str) -> str:
    """The log of a file that no line tells from others."""
    return _digest(os.fsencode(path))


def are_beside(one: str, other: str) -> bool:
    """Whether they are files of one folder."""
    return PurePath(one).parent == PurePath(other).parent


def copies(files: Iterable[Seen]) -> dict[str, str]:
    """Files that say nothing but what another one beside them says, which may say more: by path, both."""
    alike: dict[tuple[PurePath, str], list[Seen]] = {}
    for seen in files:
        alike.setdefault((PurePath(seen.path).parent, seen.look.log), []).append(seen)
    found: dict[str, str] = {}
    for same in alike.values():
        # The longest tells; of equal ones that of the longer name: the other one will soon be another log.
        same.sort(key=lambda it: (-it.look.size, -len(it.path), it.path))
        for number, seen in enumerate(same):
            for other in same[:number]:
                if other.path not in found and begins_with(other.file, seen.look):
                    found[seen.path] = other.path
                    break
    return found


def _steps(size: int) -> Iterator[int]:
    step = _FIRST_STEP
    while step <= size:
        yield step
        step <<= _STEP_BITS


def _log_of(beginning: bytes, path: str) -> str:
    end = 0
    for line in beginning.splitlines(keepends=True):
        if len(beginning) < _BEGINNING and not line.endswith(b"\n"):
            break  # Somebody is still writing it.
        end += len(line)
        head = parse_head(line.decode("utf-8", "replace").rstrip("\r\n"))
        if head is not None and head.time:
            return _digest(beginning[:end])
    return by_path(path)


def _digest(what: bytes) -> str:
    return hashlib.sha256(what).hexdigest()[:16]
