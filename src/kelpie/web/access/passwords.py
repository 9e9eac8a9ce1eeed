"""A file of passwords, as `htpasswd -B` writes it: NAME:HASH in each line, hashed by bcrypt.

The file is read again when it changes, so that a person who is removed from it is out at once. A file that
others may write to is not used: whoever writes to it can log in.
"""

import hashlib
import hmac
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import bcrypt

from kelpie.folders import why_untrusted

_LARGEST_FILE = 1_000_000
_LONGEST_NAME = 255
_BYTES_OF_BCRYPT = 72
"""bcrypt looks at no more of a password, and htpasswd cuts it off there."""
_LEAST_COST, _MOST_COST = 4, 16
"""A check at cost 16 takes seconds; each step up doubles that."""
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_OTHER_KINDS = {
    "$apr1$": "MD5 as Apache has it",
    "$1$": "MD5",
    "$5$": "SHA-256 of crypt",
    "$6$": "SHA-512 of crypt",
    "$y$": "yescrypt",
    "$argon2": "Argon2",
    "$scrypt": "scrypt",
    "{SHA}": "SHA-1",
    "{SSHA}": "salted SHA-1",
    "$2": "bcrypt, but cut short or damaged",
}


class BadPasswords(Exception):
    """The file cannot be used. The text says why, and what to do. It never holds a hash."""


@dataclass(frozen=True, slots=True)
class _Content:
    hashes: Mapping[str, bytes]
    decoy: bytes
    """Checked for names that are not in the file, at the highest cost in it: that takes as long."""


class PasswordFile:
    def __init__(self, path: Path, complain: Callable[[str], None] = lambda _: None) -> None:
        """`complain`: hears, later, that the file can no longer be used. Raises BadPasswords."""
        self.path = path
        self._tell = complain
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._content = _Content({}, _decoy(_LEAST_COST))
        self._complaint = ""
        self._read()

    @property
    def is_readable_by_others(self) -> bool:
        return bool(self.path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))

    def check(self, name: str, password: str) -> bool:
        """Takes as long for a name that is not in the file."""
        content = self._current()
        hashed = content.hashes.get(name)
        given = password.encode("utf-8", "surrogatepass")
        has_end = b"\0" in given  # htpasswd reads up to there, and no keyboard types it.
        fits = bcrypt.checkpw(given.replace(b"\0", b"")[:_BYTES_OF_BCRYPT], hashed or content.decoy)
        return fits and hashed is not None and not has_end

    def knows(self, name: str) -> bool:
        return name in self._current().hashes

    def mark(self, name: str) -> str:
        """Differs when the person's password does; empty for a name that is not in the file."""
        hashed = self._current().hashes.get(name)
        return "" if hashed is None else hashlib.sha256(hashed).hexdigest()

    def _current(self) -> _Content:
        """What the file says now. One that cannot be used any more lets nobody in."""
        with self._lock:
            try:
                state = self.path.stat()
                if _changing(state) != self._seen:
                    self._read()
                self._complaint = ""
            except (OSError, BadPasswords) as error:
                self._seen = None
                self._content = _Content({}, self._content.decoy)
                self._complain(str(error))
            return self._content

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._tell(f"Nobody can log in. {text}")
        self._complaint = text

    def _read(self) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                state = os.fstat(stream.fileno())
                _check_owner(self.path, state)
                data = stream.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise BadPasswords(f"{self.path} cannot be read: {error.strerror}.") from None
        if len(data) > _LARGEST_FILE:
            raise BadPasswords(f"{self.path} has more than {_LARGEST_FILE:,} bytes: it is no password file.")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise BadPasswords(f"{self.path} is no text in UTF-8.") from None
        self._content = _parsed(self.path, text)
        self._seen = _changing(state)


class CheckedBefore:
    """Which passwords were right a moment ago, for programs that send theirs with each request.

    Keeps no passwords: a hash of each under a key that ends with the process.
    """

    def __init__(self, most: int = 256, life_s: float = 300.0) -> None:
        self._key = os.urandom(32)
        self._lock = threading.Lock()
        self._until: dict[bytes, float] = {}
        self._most, self._life_s = most, life_s

    def has(self, name: str, password: str, mark: str, now_s: float) -> bool:
        return self._until.get(self._digest(name, password, mark), 0.0) > now_s

    def add(self, name: str, password: str, mark: str, now_s: float) -> None:
        key = self._digest(name, password, mark)
        with self._lock:
            while len(self._until) >= self._most:
                self._until.pop(next(iter(self._until)))
            self._until[key] = now_s + self._life_s

    def _digest(self, *parts: str) -> bytes:
        text = "\0".join(map(repr, parts))
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


def _parsed(path: Path, text: str) -> _Content:
    hashes: dict[str, bytes] = {}
    costs = [_LEAST_COST]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        hashed = rest.partition(":")[0].strip()  # What follows a second colon is a remark.
        if not colon or not name:
            raise BadPasswords(f"{path}, line {number}: it is not NAME:HASH, as htpasswd -B writes it.")
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise BadPasswords(f"{path}, line {number}: the name is too long, or has signs that do not show.")
        if name in hashes:
            raise BadPasswords(f"{path}, line {number}: {name} is in an earlier line, too. Delete one.")
        costs.append(_cost(path, number, name, hashed))
        hashes[name] = hashed.encode()
    if not hashes:
        raise BadPasswords(f"{path} names nobody. Add a person: htpasswd -B {path} NAME")
    return _Content(hashes, _decoy(max(costs)))


def _cost(path: Path, number: int, name: str, hashed: str) -> int:
    found = _BCRYPT.fullmatch(hashed)
    where = f"{path}, line {number}: the password of {name} is"
    if found is None:
        kind = next((kind for start, kind in _OTHER_KINDS.items() if hashed.startswith(start)), "not known")
        raise BadPasswords(
            f"{where} kept in a way that is not accepted ({kind}). Only bcrypt is: htpasswd -B {path} {name}"
        )
    cost = int(found[1])
    if not _LEAST_COST <= cost <= _MOST_COST:
        raise BadPasswords(
            f"{where} hashed at cost {cost}; {_LEAST_COST} to {_MOST_COST} are accepted: "
            f"htpasswd -B -C 10 {path} {name}"
        )
    return cost


def _decoy(cost: int) -> bytes:
    return b"$2b$%02d$" % cost + b"." * 53


def _check_owner(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise BadPasswords(f"{path} is no file.")
    if (why := why_untrusted(state)) is not None:
        raise BadPasswords(f"{path} {why}: whoever writes to it can log in. Try: chmod 600 {path}")
    folder = path.absolute().parent
    of_folder = folder.stat()
    if not of_folder.st_mode & stat.S_ISVTX and (why := why_untrusted(of_folder)) is not None:
        raise BadPasswords(
            f"{folder} {why}: whoever writes to it can put another file in the place of {path.name}. "
            "Keep it in a folder that only you can write to."
        )


def _changing(state: os.stat_result) -> tuple[int, ...]:
    """Differs when the file does, or who may write to it."""
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
