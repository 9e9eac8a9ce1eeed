import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kelpie.places.stores import Entry, Store, store_of

_READ_AHEAD = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class RemotePath:
    """A place on a file system that a URL names: has those methods of `Path` that Kelpie uses."""

    scheme: str
    authority: str
    key: str = ""
    """From the root, without slashes at its ends, and as it is: nothing in it is escaped."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}/{self.key}"

    def __truediv__(self, name: str) -> "RemotePath":
        return self._at("/".join(filter(None, (self.key, name.strip("/")))))

    def joinpath(self, *names: str) -> "RemotePath":
        path = self
        for name in names:
            path = path / name
        return path

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0] or self.name

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"{self.scheme}://{self.authority}/", *filter(None, self.key.split("/")))

    @property
    def parent(self) -> "RemotePath":
        return self._at(self.key.rpartition("/")[0])

    def absolute(self) -> "RemotePath":
        return self

    def relative_to(self, folder: "RemotePath") -> str:
        assert self.key.startswith(f"{folder.key}/"), f"{self} is not in {folder}"
        return self.key.removeprefix(f"{folder.key}/")

    def with_name(self, name: str) -> "RemotePath":
        return self.parent / name

    def with_suffix(self, suffix: str) -> "RemotePath":
        return self.parent / f"{self.stem}{suffix}"

    def stat(self) -> Entry:
        """Size and time, as those of a file of this machine."""
        found = self._store.look(self.key)
        if found is None:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        return found

    def exists(self) -> bool:
        return self._store.look(self.key) is not None

    def is_dir(self) -> bool:
        found = self._store.look(self.key)
        return found is not None and found.is_folder

    def is_file(self) -> bool:
        found = self._store.look(self.key)
        return found is not None and not found.is_folder

    def iterdir(self) -> Iterator["RemotePath"]:
        return (path for path, _ in self.children())

    def children(self) -> Iterator[tuple["RemotePath", Entry]]:
        """What the folder holds, with sizes and times."""
        return ((self._at(entry.key), entry) for entry in self._store.list(self.key))

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Files and folders; an asterisk stands for any part of one name."""
        first, _, rest = pattern.partition("/")
        for entry in self._store.list(self.key):
            found = self._at(entry.key)
            if not fnmatchcase(found.name, first):
                continue
            if not rest:
                yield found
            elif entry.is_folder:
                yield from found.glob(rest)

    def files(self) -> Iterator[tuple["RemotePath", Entry]]:
        """All files below."""
        return ((self._at(entry.key), entry) for entry in self._store.walk(self.key))

    def open(self, mode: str = "rb") -> io.BufferedReader:
        assert mode == "rb", "a remote file is written as a whole"
        return io.BufferedReader(_Reader(self._store, self.key), _READ_AHEAD)

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Replaces the file in one step."""
        self._store.write(self.key, data)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        self.write_bytes(text.encode(encoding))

    def create(self, data: bytes) -> None:
        """Raises FileExistsError, also if another writer is faster."""
        self._store.create(self.key, data)

    def upload(self, file: Path) -> None:
        """The bytes of a file of this machine. Readers see all of them, or nothing."""
        self._store.upload(file, self.key)

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        assert parents, "a folder is made with those above it"
        assert exist_ok, "a folder may be there"
        self._store.make_folder(self.key)

    def rename(self, target: "RemotePath") -> "RemotePath":
        self._store.rename(self.key, target.key)
        return target

    def unlink(self, *, missing_ok: bool = False) -> None:
        if not missing_ok and not self.exists():
            raise FileNotFoundError(2, os.strerror(2), str(self))
        self._store.delete(self.key)

    def remove_folder(self) -> None:
        self._store.delete_folder(self.key)

    @property
    def _store(self) -> Store:
        return store_of(self.scheme, self.authority)

    def _at(self, key: str) -> "RemotePath":
        return RemotePath(self.scheme, self.authority, key)


class _Reader(io.RawIOBase):
    """The bytes of a file of a fixed size, by ranges."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self._size, self._at = store.size(key), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._store.read(self._key, self._at, min(len(buffer), self._size - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
