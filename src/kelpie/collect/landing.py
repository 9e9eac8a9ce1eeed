"""The landing folder: files appear whole or not at all, one collector writes for a cluster, and the oldest of
its files go when there would be too many.

    survey-ZkQ3…-20261116T051230.123Z.jsonl.gz        a snapshot; names sort by time
    .survey-ZkQ3…-20261116T051300.001Z.jsonl.gz.tmp   one that is being written: readers skip it
    .collect-ZkQ3….lock                               who writes: its process id; locked while that lives

Only files with such a name and such a beginning, of the same cluster, are ever deleted.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from kelpie.evidence import snapshot_files, zookeeper_dumps
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.time import Instant

SURVEY, ZOOKEEPER = "survey", "zookeeper"
_ENDINGS = {SURVEY: snapshot_files.ENDING, ZOOKEEPER: zookeeper_dumps.ENDING}
_NAME = re.compile(r"(survey|zookeeper)-(.+)-(\d{8}T\d{6}\.\d{3}Z)(\.jsonl?\.gz)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_HEAD = 1 << 13
"""Holds the first line, packed as it is."""


class LandingRefused(KelpieError):
    """The folder cannot be used for this. The text says why, and what to do."""


class TooLarge(Exception):
    """A single file is larger than all of them may be."""


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file that a collector wrote for this cluster."""

    path: Path
    stamp: str
    size: int


class Landing:
    """The folder, for one cluster. Use it with `with`: the lock is held until the end."""

    def __init__(self, folder: Path, cluster: str, most_bytes: int | None = None) -> None:
        self.folder = folder
        self.cluster = cluster
        self.most_bytes = most_bytes
        self._name = name_of(cluster)
        self._lock: IO[str] | None = None
        self.newest: Instant = 0
        """The time in the name of the newest file; 0 for none."""
        self._total = 0

    def __enter__(self) -> "Landing":
        """Raises LandingRefused."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            for left in self._leftovers():
                left.unlink(missing_ok=True)
        except OSError as error:
            self.__exit__()
            raise LandingRefused(
                f"{error.filename or self.folder} cannot be used: {error.strerror or error}."
            ) from None
        files = self._files()
        self._total = sum(file.size for file in files)
        self.newest = max((instant_of(file.stamp) for file in files), default=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def newest_survey(self) -> Path | None:
        files = [file for file in self._files() if file.path.name.startswith(SURVEY)]
        return files[-1].path if files else None

    def publish(self, kind: str, data: bytes, at: Instant) -> tuple[Path, list[LandedFile]]:
        """Writes a whole file, under a name after all others. Raises TooLarge, OSError.

        Also returns the files that were deleted to make room, the oldest first.
        """
        deleted = self._make_room(len(data))
        # A clock may go back; the order of names does not.
        stamp = max(at, self.newest + 1)
        moment = f"{datetime.fromtimestamp(stamp / 1000, UTC):%Y%m%dT%H%M%S}.{stamp % 1000:03}Z"
        path = self.folder / f"{kind}-{self._name}-{moment}{_ENDINGS[kind]}"
        unfinished = path.with_name(f".{path.name}.tmp")
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        self._sync()
        self.newest = stamp
        self._total += len(data)
        return path, deleted

    def _make_room(self, size: int) -> list[LandedFile]:
        if self.most_bytes is None or self._total + size <= self.most_bytes:
            return []
        if size > self.most_bytes:
            raise TooLarge
        files = self._files()  # A person may have deleted files.
        self._total = sum(file.size for file in files)
        gone = []
        for file in files:
            if self._total + size <= self.most_bytes:
                break
            file.path.unlink(missing_ok=True)
            self._total -= file.size
            gone.append(file)
        return gone

    def _files(self) -> list[LandedFile]:
        """The oldest first."""
        files = []
        for entry, match in _entries(self.folder):
            with suppress(OSError):
                if match[2] == self._name and _is_ours(Path(entry.path), match[1], self.cluster):
                    files.append(LandedFile(Path(entry.path), match[3], entry.stat().st_size))
        return sorted(files, key=lambda file: (file.stamp, file.path.name))

    def _leftovers(self) -> Iterator[Path]:
        """Of a collector that was killed while it wrote."""
        for path in self.folder.glob(".*.tmp"):
            match = _NAME.fullmatch(path.name[1 : -len(".tmp")])
            if match is not None and match[2] == self._name:
                yield path

    def _take_lock(self) -> None:
        path = self.folder / f".collect-{self._name}.lock"
        # The file stays: removing it would let two processes lock two files of one name.
        self._lock = path.open("a+", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            holder = self._lock.read(32).strip() or "unknown"
            self._lock.close()
            self._lock = None
            raise LandingRefused(
                f"Another kelpie collect (process {holder}) writes snapshots of cluster {self.cluster} into "
                f"{self.folder}. End it, or choose another folder."
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()

    def _sync(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def clusters_at(folder: Path, addresses: Iterable[str]) -> list[str]:
    """Clusters with snapshots here that were asked at one of these addresses; the one seen last first."""
    newest: dict[str, tuple[str, Path]] = {}
    for entry, match in _entries(folder):
        if match[1] == SURVEY:
            newest[match[2]] = max(newest.get(match[2], ("", Path())), (match[3], Path(entry.path)))
    wanted = set(addresses)
    clusters = []
    for _, path in sorted(newest.values(), reverse=True):
        with suppress(OSError, snapshot_files.Torn):
            header = snapshot_files.header_of(_head(path))
            if wanted & set(header.bootstrap.split(",")):
                clusters.append(header.cluster)
    return clusters


def name_of(cluster: str) -> str:
    """The cluster's id, or what it goes by, as it can stand in a file's name."""
    plain = _NOT_IN_NAMES.sub("_", cluster)
    if plain == cluster and len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[:_LONGEST_NAME]}-{hashlib.sha256(cluster.encode('utf-8', 'replace')).hexdigest()[:8]}"


def instant_of(stamp: str) -> Instant:
    try:
        moment = datetime.strptime(stamp, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return round(moment.timestamp() * 1000)


def _entries(folder: Path) -> Iterator[tuple["os.DirEntry[str]", "re.Match[str]"]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match is not None and match[4] == _ENDINGS[match[1]]:
                    yield entry, match
    except FileNotFoundError:
        return


def _is_ours(path: Path, kind: str, cluster: str) -> bool:
    head = _head(path)
    if kind == ZOOKEEPER:
        return zookeeper_dumps.is_own(head)
    try:
        return snapshot_files.header_of(head).cluster == cluster
    except snapshot_files.Torn:
        return False


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
