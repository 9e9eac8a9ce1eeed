"""Object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure Data Lake Storage.

Each file is written by one PUT, never in parts: so a killed writer leaves nothing, neither a torn object nor
an upload that was begun. `If-None-Match: *` lets one writer of a key win.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, from_url

from kelpie.places.stores import Entry

if TYPE_CHECKING:
    from obstore import ObjectMeta

_MOST_BYTES = 5 << 30
"""Of one PUT, by S3's rules."""


class Objects:
    def __init__(self, scheme: str, authority: str) -> None:
        self._root = f"{scheme}://{authority}"
        with self._plain_errors(""):
            # The client takes keys and secrets from the environment.
            self._store: ObjectStore = from_url(self._root.replace("s3a:", "s3:", 1))

    def look(self, key: str) -> Entry | None:
        if key:
            try:
                with self._plain_errors(key):
                    found = obstore.head(self._store, key)
                    return Entry(key, False, found["size"], found["last_modified"].timestamp())
            except FileNotFoundError:
                pass
        return Entry(key, True) if next(self.walk(key), None) else None

    def list(self, key: str) -> Iterator[Entry]:
        with self._plain_errors(key):
            found = obstore.list_with_delimiter(self._store, key or None)
        yield from (Entry(prefix, True) for prefix in found["common_prefixes"])
        yield from map(_entry, found["objects"])

    def walk(self, key: str) -> Iterator[Entry]:
        with self._plain_errors(key):
            for objects in obstore.list(self._store, key or None):
                yield from map(_entry, objects)

    def size(self, key: str) -> int:
        with self._plain_errors(key):
            return obstore.head(self._store, key)["size"]

    def read(self, key: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        with self._plain_errors(key):
            return bytes(obstore.get_range(self._store, key, start=start, length=length))

    def write(self, key: str, data: bytes) -> None:
        with self._plain_errors(key):
            obstore.put(self._store, key, data, use_multipart=False)

    def create(self, key: str, data: bytes) -> None:
        try:
            with self._plain_errors(key):
                obstore.put(self._store, key, data, mode="create")
        except FileExistsError:
            # The client asks again when an answer is lost, and then finds what it has just written.
            if self.size(key) != len(data) or self.read(key, 0, len(data)) != data:
                raise

    def upload(self, file: Path, key: str) -> None:
        if file.stat().st_size > _MOST_BYTES:
            raise OSError(27, f"{self._root}/{key}: one PUT takes at most 5 GiB")
        with self._plain_errors(key):
            obstore.put(self._store, key, file, use_multipart=False)

    def rename(self, key: str, to: str) -> None:
        with self._plain_errors(key):
            obstore.copy(self._store, key, to)
            obstore.delete(self._store, key)

    def delete(self, key: str) -> None:
        with self._plain_errors(key):
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError:
                return

    def delete_folder(self, key: str) -> None:
        with self._plain_errors(key):
            for objects in obstore.list(self._store, key):
                obstore.delete(self._store, [each["path"] for each in objects])

    def make_folder(self, key: str) -> None:
        """A folder is there as soon as something is in it."""

    @contextmanager
    def _plain_errors(self, key: str) -> Iterator[None]:
        where = f"{self._root}/{key}"
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(2, os.strerror(2), where) from None
        except AlreadyExistsError:
            raise FileExistsError(17, os.strerror(17), where) from None
        except (PermissionDeniedError, UnauthenticatedError):
            raise PermissionError(
                13,
                f"{where}: the server refused the key and the secret, or does not let them do this",
            ) from None
        except BaseError as error:
            raise OSError(5, f"{where}: {_brief(str(error))}") from None


def _entry(found: "ObjectMeta") -> Entry:
    return Entry(found["path"], False, found["size"], found["last_modified"].timestamp())


def _brief(text: str) -> str:
    """The first line, without the headers and bodies of HTTP that follow it."""
    return text.partition("\n")[0].partition("<?xml")[0].strip()[:300]
