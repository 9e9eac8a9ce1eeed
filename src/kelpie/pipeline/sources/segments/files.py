"""Segment files of the offsets topic: what of them is new, and which task reads which.

The journal knows what was read before. A file grows at its end while a broker writes it, and another file
takes its place when the log is compacted. So reading goes on at the old end only if the bytes before it are
the same; else the file is read again from its beginning. (Records that come twice by that count once.)

A task reads whole files: Kafka begins a new segment of this topic every 100 MiB
(`offsets.topic.segment.bytes`), and there are many partitions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kelpie.pipeline.sources.grown_files import mark_of
from kelpie.pipeline.storage.parquet import NewFile
from kelpie.pipeline.tables import TABLES
from kelpie.places import place_of

TASK_BYTES = 128 * 1024 * 1024
"""What one task reads at most, but for a larger file: about 1.5 million records."""

COMMITS, MARKERS, GROUPS, QUARANTINE = FILLED = tuple(
    TABLES[name] for name in ("offset_commit", "transaction_marker", "group_metadata", "quarantine")
)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file, and from where on it is read."""

    path: str
    cluster: str
    partition: int
    replica: int | None
    size: int
    source: str = ""
    """What rows call it, where that is not its path."""
    known_as: str = ""
    """How the journal knows it, where that is not its path: a file out of an archive."""
    start: int = 0

    @property
    def key(self) -> str:
        return self.known_as or self.path

    @property
    def name(self) -> str:
        return self.source or self.path


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that a task has read."""

    file: SegmentFile
    end: int
    """Behind its last entry."""
    tail: int
    """Where the part at the end of the file begins that holds no whole entry; the end if there is none."""
    offsets: tuple[int, int] | None = None
    """Of the first record, and behind the last one; None without records."""
    newest: int = -1
    """When the newest record was written, in milliseconds; −1 if no record has a time."""
    error: str = ""
    """Why it could not be read, and on which machine."""


@dataclass(frozen=True, slots=True)
class SegmentTaskResult:
    read: Sequence[ReadFile]
    files: Mapping[str, Sequence[NewFile]]
    """What the task wrote, by table."""


@dataclass(frozen=True, slots=True)
class SegmentProgress:
    """How far a file has been read."""

    size: int
    """Its size then."""
    done: int
    """Behind the last whole entry."""
    mark: int
    """A checksum of its first bytes, and of the last ones before `done`."""
    next_offset: int = -1
    """Behind the last record that it held then; −1: it had none."""
    newest: int = -1
    """When its newest record was written, in milliseconds; −1 if no record had a time."""
    known_to: int = -1
    """Behind the highest record that was ever read from it, also if the file became shorter since."""

    @property
    def is_torn(self) -> bool:
        """Whether its end held no whole entry yet."""
        return self.done < self.size


def progress_of(read: ReadFile, before: SegmentProgress | None = None) -> SegmentProgress:
    """Raises OSError."""
    done = min(read.end, read.tail)
    next_offset = -1 if read.offsets is None else read.offsets[1]
    newest, known_to = read.newest, next_offset
    if before is not None:
        known_to = max(known_to, before.known_to)
        if read.file.start > 0:
            next_offset, newest = max(next_offset, before.next_offset), max(newest, before.newest)
    mark = mark_of(place_of(read.file.path), done)
    return SegmentProgress(read.file.size, done, mark, next_offset, newest, known_to)


def what_is_new(files: Iterable[SegmentFile], before: Mapping[str, SegmentProgress]) -> Iterator[SegmentFile]:
    """The files of which a part was not read yet, with its start. All `files` are new, or have changed."""
    for file in files:
        known = before.get(file.key)
        if known is None or file.size < known.done or not _goes_on(file, known):
            if file.size:
                yield file
        elif file.size != known.size or known.is_torn:
            yield replace(file, start=known.done)


def _goes_on(file: SegmentFile, known: SegmentProgress) -> bool:
    try:
        return mark_of(place_of(file.path), known.done) == known.mark
    except OSError:
        return False  # The task will say why.


def packed(files: Iterable[SegmentFile], size: int = TASK_BYTES) -> list[list[SegmentFile]]:
    """Files by task: as many as have this size together, or one that is larger."""
    tasks: list[list[SegmentFile]] = []
    room = 0
    for file in files:
        length = file.size - file.start
        if not tasks or length > room:
            tasks.append([])
            room = size
        tasks[-1].append(file)
        room -= length
    return tasks
