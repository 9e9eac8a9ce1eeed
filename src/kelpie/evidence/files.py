"""Files of evidence, in folders of any layout and in archives.

Nothing that lies there stops the search. A loop of links, a folder that may not be read, a device, an archive
that is broken or would fill the disk: each becomes an `Unasked` row, and the other files are read.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.evidence import snapshot_files, zookeeper_dumps
from kelpie.evidence.archives import Budget, is_archive, unpack
from kelpie.evidence.unreadable import unreadable, why
from kelpie.model.time import Instant, plausible
from kelpie.observations import Unasked
from kelpie.places import Place, RemotePath
from kelpie.places.stores import UNNAMED

DEEPEST_FOLDER = 40
DEEPEST_ARCHIVE = 3
HEAD_SIZE = 64 * 1024
_UNFINISHED = re.compile(r"\.(?:survey|zookeeper)-.*\.tmp|\.collect-.*\.lock")
"""What `kelpie collect` has not finished, and its lock."""
_EARLIEST = 631_152_000  # 1990, before there was any Kafka.


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file, and the name that its rows have as their source."""

    name: str
    """From the folder that was given: "clients/app.log", "case.tar.gz/clients/app.log"."""
    path: Place
    """Where its bytes are."""
    size: int
    modified: Instant | None
    head: bytes = field(repr=False)
    """Its first bytes."""

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]


class Search:
    """Goes through files and folders; `unasked` says what could not be opened, and why."""

    def __init__(
        self,
        folder: Path,
        budget: Budget,
        is_known: Callable[[RemotePath, int, Instant | None], bool] = lambda *_: False,
    ) -> None:
        """`is_known`: files of a store, by path, size and time of change, that need not be opened."""
        self._folder = folder
        self._is_known = is_known
        self._budget = budget
        self._seen: set[tuple[int, int]] = set()
        self._root = Path()
        self.unasked: list[Unasked] = []

    def files(self, paths: Iterable[Place]) -> Iterator[EvidenceFile]:
        """All regular files below the paths, in the order of their names, each once."""
        roots = list(paths)
        for root, name in zip(roots, _names(roots), strict=True):
            alone = len(roots) == 1 and root.is_dir()
            if isinstance(root, RemotePath):
                yield from self._list(root, "" if alone else name)
                continue
            self._root = Path(os.path.realpath(root))
            yield from self._visit(root, "" if alone else name, 0)

    def _list(self, root: RemotePath, name: str) -> Iterator[EvidenceFile]:
        """The files that a store holds: it has neither links nor devices, and lists them all at once."""
        try:
            status = root.stat()
            found = [*root.files()] if status.is_folder else [(root, status)]
        except OSError as error:
            self._skip(name or str(root), f"It cannot be opened: {why(error)}.")
            return
        for path, entry in sorted(found, key=lambda each: each[0].parts):
            if _UNFINISHED.fullmatch(path.name) or path.name.startswith(UNNAMED):
                continue
            inside = _printable(path.relative_to(root)) if path != root else ""
            below = "/".join(filter(None, (name, inside)))
            changed = _milliseconds(entry.st_mtime)
            if self._is_known(path, entry.st_size, changed):
                yield EvidenceFile(below, path, entry.st_size, changed, b"")
            else:
                yield from self._open(path, below, changed, entry.st_size)

    def _visit(self, path: Path, name: str, depth: int) -> Iterator[EvidenceFile]:
        if depth and path.is_symlink() and not _leads_into(path, self._root):
            self._skip(
                name, "It is a link out of the folder, and is not followed. To read it, name its target."
            )
            return
        try:
            status = path.stat()
        except OSError as error:
            self._skip(name or str(path), f"It cannot be opened: {why(error)}.")
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            return  # A link to what was seen already, perhaps to a folder that we are in.
        self._seen.add(identity)
        if stat.S_ISDIR(status.st_mode):
            yield from self._enter(path, name, depth)
        elif stat.S_ISREG(status.st_mode):
            yield from self._open(path, name, _milliseconds(status.st_mtime), status.st_size)
        else:
            self._skip(name, "It is no regular file; a pipe or a device is not read.")

    def _enter(self, path: Path, name: str, depth: int) -> Iterator[EvidenceFile]:
        if depth >= DEEPEST_FOLDER:
            self._skip(name, f"Folders are followed {DEEPEST_FOLDER} deep, and no further.")
            return
        try:
            entries = sorted(os.listdir(path))
        except OSError as error:
            self._skip(name or str(path), f"The folder cannot be read: {why(error)}.")
            return
        for entry in entries:
            if _UNFINISHED.fullmatch(entry):
                continue
            yield from self._visit(
                path / entry, f"{name}/{_printable(entry)}" if name else _printable(entry), depth + 1
            )

    def _open(
        self, path: Place, name: str, modified: Instant | None, size: int, nested: int = 0
    ) -> Iterator[EvidenceFile]:
        try:
            with path.open("rb") as file:
                head = file.read(HEAD_SIZE)
        except OSError as error:
            self._skip(name, unreadable(error))
            return
        kind = is_archive(head)
        # Snapshots are many, and read where they are.
        if kind is None or snapshot_files.is_snapshot(head) or zookeeper_dumps.is_own(head):
            yield EvidenceFile(name, path, size, modified, head)
        elif nested >= DEEPEST_ARCHIVE:
            self._skip(name, f"It is an archive in an archive, more than {DEEPEST_ARCHIVE} deep.")
        else:
            for unpacked in unpack(path, name, kind, self._folder, self._budget):
                if isinstance(unpacked, Unasked):
                    self.unasked.append(unpacked)
                else:
                    at, size = unpacked.modified or modified, unpacked.size
                    yield from self._open(unpacked.path, unpacked.name, at, size, nested + 1)

    def _skip(self, name: str, reason: str) -> None:
        self.unasked.append(Unasked("file", name, reason, source=name))


def _leads_into(link: Path, folder: Path) -> bool:
    """Whether a link ends within the folder. What others have packed must not choose what else is read."""
    return Path(os.path.realpath(link)).is_relative_to(folder)


def _milliseconds(seconds: float) -> Instant | None:
    """None for a time before Kafka: some tools write 0, and some clocks begin in 1980."""
    return plausible(int(seconds * 1000)) if seconds > _EARLIEST else None


def _names(roots: Sequence[Place]) -> list[str]:
    """The end of each path, long enough to be unique: disks of brokers are all called data."""
    whole = [root.absolute().parts for root in roots]
    for length in range(1, max(map(len, whole), default=1)):
        names = ["/".join(parts[-length:]) for parts in whole]
        if len(set(names)) == len(set(whole)):
            return [_printable(name) for name in names]
    return [_printable(str(root)) for root in roots]


def _printable(name: str) -> str:
    """A name as it can be written anywhere: bytes that are no text are replaced."""
    return name.encode("utf-8", "replace").decode("utf-8", "replace")
