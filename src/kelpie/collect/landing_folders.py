"""Where snapshots land: a folder of this machine, or one on a store that a URL names.

They differ in how a file appears as a whole, in how a second collector is kept out, and in what it costs to
look at a file.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from kelpie.model.kelpie_error import KelpieError
from kelpie.places import Place, RemotePath
from kelpie.places.stores import store_of

FILE_NAME = re.compile(
    r"(?P<kind>survey|zookeeper)-(?P<cluster>.+)-(?P<stamp>\d{8}T\d{6}\.\d{3}Z)(?P<ending>\.jsonl?\.gz)"
)


class LandingRefused(KelpieError):
    """The folder cannot be used for this. The text says why, and what to do."""


class ListedFile(NamedTuple):
    path: Place
    size: int


class LandingFolder(Protocol):
    path: Place
    is_locked: bool
    """Whether a second collector is kept out by a lock. If not, it shows by its files."""
    can_look_inside: bool
    """Whether every file may be opened to see whose it is. On a store, that is a request for each."""

    def enter(self, name: str, cluster: str, /) -> None:
        """Raises OSError, LandingRefused. `name`: that of the cluster in names of files."""
        ...

    def leave(self) -> None: ...

    def files(self) -> Iterator[ListedFile]:
        """Nothing if the folder is not there. Raises OSError."""
        ...

    def write(self, name: str, data: bytes) -> Place:
        """A whole file that lasts, and never a part of it. Raises OSError."""
        ...


def landing_folder(place: Place) -> LandingFolder:
    """Raises LandingRefused."""
    if isinstance(place, Path):
        return LocalLanding(place)
    try:
        store_of(place.scheme, place.authority)
    except ImportError as error:
        raise LandingRefused(
            f"{place}: to write there, Kelpie needs more: pip install 'kelpie-kafka[pipeline]'. ({error})"
        ) from None
    except OSError as error:
        raise LandingRefused(f"{place} cannot be used: {error.strerror or error}.") from None
    return StoreLanding(place)


class LocalLanding:
    """A file gets its name when it is complete. A lock lives as long as its process."""

    is_locked = can_look_inside = True

    def __init__(self, path: Path) -> None:
        self.path: Place = path
        self._folder = path
        self._lock: IO[str] | None = None

    def enter(self, name: str, cluster: str, /) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._take_lock(name, cluster)
        # Of a collector that was killed while it wrote.
        for left in self._folder.glob(".*.tmp"):
            match = FILE_NAME.fullmatch(left.name[1 : -len(".tmp")])
            if match is not None and match["cluster"] == name:
                left.unlink(missing_ok=True)

    def leave(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def files(self) -> Iterator[ListedFile]:
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    with suppress(OSError):
                        yield ListedFile(Path(entry.path), entry.stat().st_size)
        except FileNotFoundError:
            return

    def write(self, name: str, data: bytes) -> Place:
        path, unfinished = self._folder / name, self._folder / f".{name}.tmp"
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
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return path

    def _take_lock(self, name: str, cluster: str) -> None:
        # The file stays: removing it would let two processes lock two files of one name.
        lock = (self._folder / f".collect-{name}.lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read(32).strip() or "unknown"
            lock.close()
            raise LandingRefused(
                f"Another kelpie collect (process {holder}) writes snapshots of cluster {cluster} into "
                f"{self._folder}. End it, or choose another folder."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._lock = lock


class StoreLanding:
    """One request writes a file. No lock would end with its process, so there is none."""

    is_locked = can_look_inside = False

    def __init__(self, path: RemotePath) -> None:
        self.path: Place = path
        self._folder = path

    def enter(self, _name: str, _cluster: str, /) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def leave(self) -> None:
        """Nothing is held."""

    def files(self) -> Iterator[ListedFile]:
        return (ListedFile(path, entry.st_size) for path, entry in self._folder.children())

    def write(self, name: str, data: bytes) -> Place:
        path = self._folder / name
        path.create(data)
        return path
