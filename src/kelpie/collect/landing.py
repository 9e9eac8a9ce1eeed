"""The landing folder: files appear whole or not at all, one collector writes for a cluster, and the oldest of
its files go when there would be too many.

    survey-ZkQ3…-20261116T051230.123Z.jsonl.gz        a snapshot; names sort by time
    .survey-ZkQ3…-20261116T051300.001Z.jsonl.gz.tmp   one that is being written: readers skip it
    .collect-ZkQ3….lock                               who writes: its process id; locked while that lives

Only files with such a name and such a beginning, of the same cluster, are ever deleted. On a store, there is
neither a lock nor an unfinished file: a collector that finds a newer file than its own ends.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from kelpie.collect.landing_folders import FILE_NAME, LandingFolder, LandingRefused, landing_folder
from kelpie.evidence import snapshot_files, zookeeper_dumps
from kelpie.model.time import Instant
from kelpie.places import Place

SURVEY, ZOOKEEPER = "survey", "zookeeper"
_ENDINGS = {SURVEY: snapshot_files.ENDING, ZOOKEEPER: zookeeper_dumps.ENDING}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_HEAD = 1 << 13
"""Holds the first line, packed as it is."""


class TooLarge(Exception):
    """A single file is larger than all of them may be."""


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file that a collector wrote for this cluster."""

    path: Place
    stamp: str
    size: int


class Landing:
    """The folder, for one cluster. Use it with `with`: the lock is held until the end."""

    def __init__(self, folder: Place, cluster: str, most_bytes: int | None = None) -> None:
        self.cluster = cluster
        self.most_bytes = most_bytes
        self._folder = landing_folder(folder)
        self._name = name_of(cluster)
        self.newest: Instant = 0
        """The time in the name of the newest file; 0 for none."""
        self._total = 0

    @property
    def folder(self) -> Place:
        return self._folder.path

    def __enter__(self) -> "Landing":
        """Raises LandingRefused."""
        try:
            self._folder.enter(self._name, self.cluster)
            files = self._files()
        except OSError as error:
            self.__exit__()
            raise LandingRefused(
                f"{error.filename or self.folder} cannot be used: {error.strerror or error}."
            ) from None
        self._total = sum(file.size for file in files)
        self.newest = max((instant_of(file.stamp) for file in files), default=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.leave()

    def newest_survey(self) -> Place | None:
        files = [file for file in self._files() if file.path.name.startswith(SURVEY)]
        return files[-1].path if files else None

    def publish(self, kind: str, data: bytes, at: Instant) -> tuple[Place, list[LandedFile]]:
        """Writes a whole file, under a name after all others. Raises TooLarge, OSError, LandingRefused.

        Also returns the files that were deleted to make room, the oldest first.
        """
        deleted = self._make_room(len(data))
        # A clock may go back; the order of names does not.
        stamp = max(at, self.newest + 1)
        moment = f"{datetime.fromtimestamp(stamp / 1000, UTC):%Y%m%dT%H%M%S}.{stamp % 1000:03}Z"
        path = self._folder.write(f"{kind}-{self._name}-{moment}{_ENDINGS[kind]}", data)
        self.newest = stamp
        self._total += len(data)
        return path, deleted

    def _make_room(self, size: int) -> list[LandedFile]:
        most = self.most_bytes
        if most is not None and size > most:
            raise TooLarge
        if self._folder.is_locked and (most is None or self._total + size <= most):
            return []
        files = self._files()  # A person may have deleted files.
        if not self._folder.is_locked and files and instant_of(files[-1].stamp) > self.newest:
            raise LandingRefused(
                f"Another kelpie collect writes snapshots of cluster {self.cluster} into {self.folder}. End "
                "it, or choose another folder."
            )
        self._total = sum(file.size for file in files)
        gone: list[LandedFile] = []
        for file in files:
            if most is None or self._total + size <= most:
                break
            if _is_ours(file.path, self.cluster):
                file.path.unlink(missing_ok=True)
                self._total -= file.size
                gone.append(file)
        return gone

    def _files(self) -> list[LandedFile]:
        """The oldest first."""
        files = []
        for path, match, size in _entries(self._folder):
            with suppress(OSError):
                is_named_so = match["cluster"] == self._name
                if is_named_so and (not self._folder.can_look_inside or _is_ours(path, self.cluster)):
                    files.append(LandedFile(path, match["stamp"], size))
        return sorted(files, key=lambda file: (file.stamp, file.path.name))


def clusters_at(folder: Place, addresses: Iterable[str]) -> list[str]:
    """Clusters with snapshots here that were asked at one of these addresses; the one seen last first."""
    newest: dict[str, tuple[str, Place]] = {}
    for path, match, _ in _entries(landing_folder(folder)):
        cluster, stamp = match["cluster"], match["stamp"]
        if match["kind"] == SURVEY and stamp > newest.get(cluster, ("", path))[0]:
            newest[cluster] = stamp, path
    wanted = set(addresses)
    clusters = []
    for _, path in sorted(newest.values(), key=lambda each: each[0], reverse=True):
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


def _entries(folder: LandingFolder) -> Iterator[tuple[Place, "re.Match[str]", int]]:
    for path, size in folder.files():
        match = FILE_NAME.fullmatch(path.name)
        if match is not None and match["ending"] == _ENDINGS[match["kind"]]:
            yield path, match, size


def _is_ours(path: Place, cluster: str) -> bool:
    head = _head(path)
    if path.name.startswith(ZOOKEEPER):
        return zookeeper_dumps.is_own(head)
    try:
        return snapshot_files.header_of(head).cluster == cluster
    except snapshot_files.Torn:
        return False


def _head(path: Place) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
