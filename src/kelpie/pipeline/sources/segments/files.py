"""Segment files of the offsets topic: what of them is new, and how they are cut for tasks.

What was read before is known by the journal. A file grows at its end while it is written, and is replaced by
another one when it is compacted: so a file goes on only if the bytes that were read last are still there, and
is otherwise read anew. (Records that come again by that count once all the same.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kelpie.pipeline.sources.grown_files import mark_of
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES

RANGE_BYTES = 128 * 1024 * 1024
"""So much is read by one task: about 1.5 million records."""


COMMITS, MARKERS, GROUPS, QUARANTINE = FILLED = tuple(
    TABLES[name] for name in ("offset_commit", "transaction_marker", "group_metadata", "quarantine")
)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    path: str
    cluster: str
    partition: int
    replica: int | None
    size: int
    source: str = ""
    """What rows call it, where that is not its path."""
    known_as: str = ""
    """What it is known by the next time, where that is not its path: a file out of an archive."""

    @property
    def key(self) -> str:
        return self.known_as or self.path


class Range(NamedTuple):
    """A part of a segment file, for one task."""

    path: str
    cluster: str
    partition: int
    replica: int | None
    start: int
    stop: int
    cut: bool
    """Whether it begins somewhere in the file, and not where an entry does."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A range that was read."""

    part: Range
    first: int
    """Where its first entry began."""
    end: int
    """Behind its last entry."""
    tail: int
    """Where the end of the file begins that holds no whole entry yet; that of the range if all is whole."""
    offsets: tuple[int, int] | None = None
    """Of the first record, and behind the last one; none: it has no records."""
    newest: int = -1
    """When the newest record was written, in milliseconds; −1: nothing tells."""
    error: str = ""
    """Why it could not be read, and where that was."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task did."""

    done: Sequence[Done]
    files: Mapping[str, Sequence[NewFile]]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has been read."""

    size: int
    """Its size then."""
    done: int
    """Behind the last entry that was there as a whole."""
    mark: int
    """A checksum of its first bytes, and of the last ones before `done`."""
    next_offset: int = -1
    """Behind the last record that it held then; −1: it had none."""
    newest: int = -1
    """When the newest of them was written, in milliseconds; −1: nothing tells."""
    known_to: int = -1
    """Behind the highest record that was ever read from it, also when it has been cut since."""

    @property
    def is_torn(self) -> bool:
        """Whether its end held no whole entry yet."""
        return self.done < self.size


def progress_of(path: str, parts: Sequence[Done], before: Progress | None = None) -> Progress:
    """After these ranges of a file, which are all that was read of it, in their order. Raises OSError."""
    last = parts[-1]
    done = min(last.end, last.tail)
    next_offset = max((part.offsets[1] for part in parts if part.offsets is not None), default=-1)
    newest = max(part.newest for part in parts)
    known_to = next_offset
    if before is not None:
        known_to = max(known_to, before.known_to)
        if parts[0].part.start > 0:
            next_offset, newest = max(next_offset, before.next_offset), max(newest, before.newest)
    return Progress(last.part.stop, done, mark_of(path, done), next_offset, newest, known_to)


def what_is_new(
    files: Iterable[SegmentFile], before: Mapping[str, Progress]
) -> Iterator[tuple[SegmentFile, int]]:
    """The files of which something was not read yet, and where that begins. All are new, or have changed."""
    for file in files:
        known = before.get(file.key)
        if known is None or file.size < known.done or not _goes_on(file, known):
            if file.size:
                yield file, 0
        elif file.size != known.size or known.is_torn:
            yield file, known.done


def _goes_on(file: SegmentFile, known: Progress) -> bool:
    try:
        return mark_of(file.path, known.done) == known.mark
    except OSError:
        return False  # The task will say why.


def ranges(todo: Iterable[tuple[SegmentFile, int]], size: int = RANGE_BYTES) -> Iterator[Range]:
    """Parts of about this size: a file is cut when it has more than half as much again."""
    for file, start in todo:
        at = start
        while at < file.size:
            stop = at + size if file.size - at > size * 3 // 2 else file.size
            yield Range(
                file.path, file.cluster, file.partition, file.replica, at, stop, at > start, file.source
            )
            at = stop


def packed(parts: Iterable[Range], size: int = RANGE_BYTES) -> list[list[Range]]:
    """Ranges by task. One that was cut is alone: if the cut proves wrong, its files are thrown away."""
    tasks: list[list[Range]] = []
    room = 0
    for part in parts:
        length = part.stop - part.start
        if part.cut or not tasks or tasks[-1][0].cut or length > room:
            tasks.append([])
            room = size
        tasks[-1].append(part)
        room -= length
    return tasks
