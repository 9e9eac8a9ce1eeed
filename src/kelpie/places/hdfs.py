"""HDFS, by a client without Java.

A file gets its name by a rename after all of it was written. A rename that must not overwrite is one step of
the NameNode, so of several writers of one name one succeeds.
"""

import errno
import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hdfs_native import Client, FileStatus, WriteOptions

from kelpie.places.stores import UNNAMED, Entry

_PIECE = 4 << 20
_CONNECT_S = 10.0
_NUMBERS: dict[type[Exception], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
}


class Hdfs:
    def __init__(self, authority: str) -> None:
        self._authority = authority
        _reach(authority)
        with self._plain_errors():
            self._client = Client(f"hdfs://{authority}")

    def look(self, key: str) -> Entry | None:
        try:
            with self._plain_errors():
                return _entry(self._client.get_file_info(f"/{key}"))
        except FileNotFoundError:
            return None

    def list(self, key: str) -> Iterator[Entry]:
        return self._listed(key, recursive=False)

    def walk(self, key: str) -> Iterator[Entry]:
        return (entry for entry in self._listed(key, recursive=True) if not entry.is_folder)

    def _listed(self, key: str, *, recursive: bool) -> Iterator[Entry]:
        try:
            with self._plain_errors():
                for status in self._client.list_status(f"/{key}", recursive):
                    yield _entry(status)
        except FileNotFoundError:
            return

    def size(self, key: str) -> int:
        with self._plain_errors():
            return self._client.get_file_info(f"/{key}").length

    def read(self, key: str, start: int, length: int) -> bytes:
        with self._plain_errors():
            file = self._client.read(f"/{key}")
            return bytes(file.read_range(start, max(0, min(length, len(file) - start))))

    def write(self, key: str, data: bytes) -> None:
        self._named(self._written(key, [data]), key, overwrite=True)

    def create(self, key: str, data: bytes) -> None:
        self._named(self._written(key, [data]), key, overwrite=False)

    def upload(self, file: Path, key: str) -> None:
        with file.open("rb") as source:
            pieces = iter(lambda: source.read(_PIECE), b"")
            self._named(self._written(key, pieces), key, overwrite=False)

    def _written(self, key: str, pieces: Iterable[bytes]) -> str:
        """The path of a new file beside the place where it is to be."""
        folder, _, name = f"/{key}".rpartition("/")
        path = f"{folder}/{UNNAMED}{name}.{uuid.uuid4()}"
        with self._plain_errors(), self._client.create(path, WriteOptions(create_parent=True)) as file:
            for piece in pieces:
                file.write(piece)
        return path

    def _named(self, path: str, key: str, *, overwrite: bool) -> None:
        try:
            with self._plain_errors():
                self._client.rename(path, f"/{key}", overwrite)
        except BaseException:
            with suppress(Exception):
                self._client.delete(path)
            raise

    def rename(self, key: str, to: str) -> None:
        self.make_folder(to.rpartition("/")[0])
        with self._plain_errors():
            self._client.rename(f"/{key}", f"/{to}", False)

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError), self._plain_errors():
            self._client.delete(f"/{key}")

    def delete_folder(self, key: str) -> None:
        with suppress(FileNotFoundError), self._plain_errors():
            self._client.delete(f"/{key}", True)

    def make_folder(self, key: str) -> None:
        with self._plain_errors():
            self._client.mkdirs(f"/{key}", create_parent=True)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Without the stack traces of the NameNode, which the client adds to its texts."""
        try:
            yield
        except OSError as error:
            raise type(error)(*_told(error, self._authority)) from None
        except RuntimeError as error:
            raise OSError(*_told(error, self._authority)) from None


def _told(error: Exception, authority: str) -> tuple[int, str]:
    text = str(error).partition("\n")[0].strip() or type(error).__name__
    return _NUMBERS.get(type(error), errno.EIO), f"hdfs://{authority}: {text}"


def _entry(status: FileStatus) -> Entry:
    key = status.path.strip("/")
    return Entry(key, status.isdir, status.length, status.modification_time / 1000)


def _reach(authority: str) -> None:
    """Connects once. The client would try a NameNode that is not there again and again, for minutes.

    A name without a port is that of several NameNodes, in the configuration of Hadoop.
    """
    host, _, port = authority.rpartition(":")
    if not port.isdigit() or not host:
        if not os.environ.get("HADOOP_CONF_DIR"):
            raise OSError(
                errno.EIO,
                f"hdfs://{authority} names no port. Write hdfs://HOST:PORT/…, or set HADOOP_CONF_DIR to the "
                "folder with Hadoop's configuration, which knows this name",
            )
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OSError(error.errno or errno.EIO, f"No NameNode at hdfs://{authority} ({why})") from None
