"""Segment files of the offsets topic: where they lie, whose they are, and what of them is new.

A broker's folder tells by `meta.properties` which broker and which cluster it is of; where that file is
missing, the path may tell the broker. What was read before is known by the journal. A file grows at its end
while it is written, and is replaced by another one when it is compacted: so a file goes on only if the
bytes that were read last are still there, and is otherwise read anew. (Records that come again by that
count once all the same.)
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kelpie.pipeline.names import plain
from kelpie.pipeline.parquet import NewFile
from kelpie.pipeline.tables import TABLES

_FOLDER = re.compile(r"__consumer_offsets-(\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")
_BROKER = re.compile(r"(?:broker|kafka|node|logs)[-_.]?(\d+)", re.IGNORECASE)
_LOOKED_AT = 4096
UNKNOWN_CLUSTER = "unknown"

RANGE_BYTES = 128 * 1024 * 1024
"""So much is read by one task: about 1.5 million records."""


COMMITS, MARKERS, GROUPS, QUARANTINE = FILLED = tuple(
    TABLES[name] for name in ("offset_commit", "transaction_marker", "group_metadata", "quarantine")
)


class SeveralClusters(Exception):
    """Disks of several clusters under one name: their records would be taken for copies of each other."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    path: str
    cluster: str
    partition: int
    replica: int | None
    size: int
    source: str = ""
    """What people know it by, where that is not its path: a file out of an archive."""


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
    torn: int
    """Where the tail of the file begins that is not whole yet; its end if there is none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task did."""

    done: Sequence[Done]
    files: Mapping[str, Sequence[NewFile]]


def find(folders: Iterable[Path], cluster: str | None = None) -> list[SegmentFile]:
    """Segment files of the offsets topic below these folders. Raises SeveralClusters.

    `cluster`: its name; if nobody says, its id, where the disks know it.
    """
    found: list[SegmentFile] = []
    ids: dict[str, Path] = {}
    disks: dict[Path, Mapping[str, str]] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*.log")) if folder.is_dir() else [folder]:
            partition = _FOLDER.fullmatch(file.parent.name)
            if not partition or not _SEGMENT.fullmatch(file.name):
                continue
            disk = file.parent.parent
            if disk not in disks:
                disks[disk] = _properties(disk / "meta.properties")
            known = disks[disk]
            if "cluster.id" in known:
                ids.setdefault(known["cluster.id"], disk)
            named = plain(cluster or known.get("cluster.id") or UNKNOWN_CLUSTER)
            found.append(
                SegmentFile(str(file), named, int(partition[1]), _replica(file, known), file.stat().st_size)
            )
    if cluster is not None and len(ids) > 1:
        places = ", ".join(f"{disk} of {name}" for name, disk in sorted(ids.items()))
        raise SeveralClusters(
            f"these folders hold disks of {len(ids)} clusters ({places}), all to be called {cluster!r}. "
            "Read one cluster at a time, or give no name: then each goes by its id."
        )
    return found


def _properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def _replica(file: Path, known: Mapping[str, str]) -> int | None:
    for name in ("node.id", "broker.id"):
        if known.get(name, "").isdecimal():
            return int(known[name])
    for part in reversed(file.parts[:-2]):
        found = _BROKER.search(part)
        if found:
            return int(found[1])
    return None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has been read."""

    size: int
    """Its size then."""
    done: int
    """Behind the last entry that was there as a whole."""
    mark: int
    """A checksum of its first bytes, and of the last ones before `done`."""


def progress_of(path: str, size: int, done: int) -> Progress:
    return Progress(size, done, _mark(path, done))


def _mark(path: str, done: int) -> int:
    with open(path, "rb") as file:
        first = file.read(min(_LOOKED_AT, done))
        file.seek(max(0, done - _LOOKED_AT))
        return zlib.crc32(file.read(min(_LOOKED_AT, done)), zlib.crc32(first))


def what_is_new(
    files: Iterable[SegmentFile], before: Mapping[str, Progress]
) -> Iterator[tuple[SegmentFile, int]]:
    """The files of which something was not read yet, and where that begins."""
    for file in files:
        known = before.get(file.path)
        if known is None or file.size < known.done or _mark(file.path, known.done) != known.mark:
            if file.size:
                yield file, 0
        elif file.size != known.size:
            yield file, known.done


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
