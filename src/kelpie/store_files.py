"""The files of the store: one for each cluster, and an index that knows clusters by addresses.

They are SQLite, so that several doctors may use them at once. Every use is one short transaction.

- A file that cannot be read is renamed and begun anew; copies that were set aside before stay. It is the file
  of one cluster: what is kept of the others counts.
- A file that is locked, or a folder that cannot be written, is left alone.
- The format is part of the name of a file. Releases that write other formats use files of their own.
"""

import errno
import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_FOLDER = "surveys"
_FORMAT = 3
_PATIENCE_S = 2.0
_MOST_SET_ASIDE = 1_000
_FORMER_FILE, _FORMER_FORMAT = "surveys.sqlite3", 2
"""All clusters were in one file. What it holds is copied when a cluster is first used; the file stays."""
_FORMER_TABLES = {
    "survey": "cluster, at, data",
    "seen": "cluster, name, first_at, last_at, offsets, offsets_at",
    "illness": "cluster, name, code, since, at",
    "found": "cluster, name, code, severity",
}
"""Its tables by cluster, and their columns."""
_DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)
"""The second: SQLite quotes what it cannot read, and Python cannot read the quotation."""


class StoreFiles:
    """A file is named by its cluster; None names the index."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._folder = folder / _FOLDER
        self._former = folder / _FORMER_FILE
        self._words = words
        """What went wrong, for a person."""

    def of(self, cluster: str | None) -> Path:
        """Names of clusters that differ in any character have different files."""
        if cluster is None:
            return self._folder / f"index.v{_FORMAT}.sqlite3"
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", cluster)[:40]
        digest = hashlib.sha256(cluster.encode("utf-8", "surrogatepass")).hexdigest()[:10]
        return self._folder / f"{plain}-{digest}.v{_FORMAT}.sqlite3"

    def has(self, cluster: str | None) -> bool:
        """Whether there is anything to read. False: `within` would create the file."""
        return self.of(cluster).exists() or self._former.exists()

    def remove(self, cluster: str) -> None:
        with suppress(OSError):
            self.of(cluster).unlink()

    def within(self, cluster: str | None, tables: str, use: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `use` returns, in one transaction; None if the file cannot be used."""
        file = self.of(cluster)
        for attempt in (1, 2):
            opened = _inode(file)
            try:
                with self._open(file, tables, cluster) as database:
                    return use(database)
            except sqlite3.OperationalError as error:
                self._words.append(f"{file} could not be used: {error}. Earlier surveys are left out.")
                return None
            except _DAMAGED as error:
                if attempt == 2 or not self._set_aside(cluster, opened, error):
                    return None
            except OSError as error:
                self._words.append(
                    f"{error.filename or file} could not be used: {error.strerror}. Earlier surveys are "
                    "left out; --store DIR chooses another place."
                )
                return None
        return None

    @contextmanager
    def _open(self, file: Path, tables: str, cluster: str | None) -> Iterator[sqlite3.Connection]:
        # Other users must not read the names of groups.
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"it has format {version}, and its name says {_FORMAT}")
            for statement in tables.split(";"):
                database.execute(statement)
            if version == 0:
                self._copy_former(database, cluster)
                database.execute(f"PRAGMA user_version = {_FORMAT}")
            yield database
            database.execute("COMMIT")

    def _copy_former(self, database: sqlite3.Connection, cluster: str | None) -> None:
        """Into a new file: what the one file held of this cluster; into the index: its addresses."""
        if not self._former.exists():
            return
        try:
            place = f"{self._former.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(place, timeout=_PATIENCE_S, uri=True)) as former:
                if former.execute("PRAGMA user_version").fetchone() != (_FORMER_FORMAT,):
                    return
                if cluster is None:
                    rows = former.execute("SELECT address, cluster, at FROM address").fetchall()
                    database.executemany("INSERT OR IGNORE INTO address VALUES (?, ?, ?)", rows)
                    return
                for table, columns in _FORMER_TABLES.items():
                    marks = ", ".join("?" for _ in columns.split(","))
                    query = f"SELECT {columns} FROM {table} WHERE cluster = ?"  # noqa: S608 - names from here
                    into = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608 - names from here
                    database.executemany(into, former.execute(query, (cluster,)))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            word = (
                f"{self._former}, the store of an earlier release, cannot be read: {error}. It stays as it "
                "is; what it holds is left out."
            )
            if word not in self._words:
                self._words.append(word)

    def _set_aside(self, cluster: str | None, opened: int | None, error: Exception) -> bool:
        """Whether the file is out of the way. `opened`: the file that was read, by its inode."""
        file = self.of(cluster)
        try:
            if _inode(file) != opened:
                return True  # Another doctor was faster; what is there now is new.
            aside = _unused_name(file)
            for suffix in ("-journal", ""):  # A journal that stays would be applied to the new file.
                part = file.with_name(file.name + suffix)
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
        except OSError as failure:
            self._words.append(f"{file} is unreadable ({error}), and cannot be moved: {failure.strerror}.")
            return False
        lost = "Earlier surveys of this cluster" if cluster is not None else "The addresses of clusters"
        self._words.append(f"{file} was unreadable ({error}). It is now {aside.name}. {lost} are forgotten.")
        return True


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None


def _unused_name(file: Path) -> Path:
    """Raises OSError. Copies that were set aside before are never overwritten."""
    for number in range(1, _MOST_SET_ASIDE):
        name = file.with_name(f"{file.name}.unreadable" + (f"-{number}" if number > 1 else ""))
        with suppress(FileExistsError):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return name  # An empty file, which reserves the name until the rename replaces it.
    raise FileExistsError(errno.EEXIST, "too many copies were set aside before")
