"""What Kelpie needs of a file system that a URL names, and the client for each.

Keys are paths from the root, without a slash at either end. Errors are those of Python: FileNotFoundError,
FileExistsError, and OSError for all others, with a text that says no more than a person needs: what a server
answers may be long, and may quote what it was asked.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from kelpie.places.credentials import adopt

UNNAMED = ".kelpie-"
"""How the name of a file begins that is being written, where a file gets its own name in a second step."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder."""

    key: str
    is_folder: bool
    st_size: int = 0
    st_mtime: float = 0.0
    """Of folders of object stores, 0: they are only the beginnings of names."""


class Store(Protocol):
    def look(self, key: str) -> Entry | None:
        """What is there, if anything."""
        ...

    def list(self, key: str) -> Iterator[Entry]:
        """What a folder holds. A folder that is not there holds nothing."""
        ...

    def walk(self, key: str) -> Iterator[Entry]:
        """All files below a folder."""
        ...

    def size(self, key: str) -> int: ...

    def read(self, key: str, start: int, length: int) -> bytes: ...

    def write(self, key: str, data: bytes) -> None:
        """Replaces the file in one step: readers see the old or the new one."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """The same, but raises FileExistsError if there is one, also when several try at once."""
        ...

    def upload(self, file: Path, key: str) -> None:
        """Copies a file of this machine. Readers see all of it, or nothing."""
        ...

    def rename(self, key: str, to: str) -> None:
        """Moves a file to a name that is not taken."""
        ...

    def delete(self, key: str) -> None:
        """Deletes a file, if it is there."""
        ...

    def delete_folder(self, key: str) -> None:
        """Deletes a folder with all that is in it, if it is there."""
        ...

    def make_folder(self, key: str) -> None: ...


def store_of(scheme: str, authority: str) -> Store:
    """The client of this process: the threads of a client do not survive a fork."""
    return _store(scheme, authority, os.getpid())


def forget() -> None:
    """Makes new clients from now on, with the settings that the environment has then."""
    _store.cache_clear()


@cache
def _store(scheme: str, authority: str, _process: int) -> Store:
    if scheme == "hdfs":
        from kelpie.places.hdfs import Hdfs  # noqa: PLC0415 - only who names HDFS needs its client.

        return Hdfs(authority)
    from kelpie.places.objects import Objects  # noqa: PLC0415

    if scheme == "s3a":
        adopt({})
    return Objects(scheme, authority)
