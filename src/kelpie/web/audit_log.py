"""Who did what, when, from where, and what came of it: a file to which lines are added, and nothing else.

Each line is an object of JSON in ASCII, so that no name can end a line or drive a terminal. A line is on the
disk before what it tells is begun. A file that others may write to is not used.
"""

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kelpie.client.survey import wall_clock
from kelpie.folders import why_untrusted
from kelpie.model.time import Instant, iso_time
from kelpie.web.access.operators import Operator

_MOST_REFUSED_LOGINS = 60
_MINUTE_MS = 60_000
_LONGEST_TAIL = 1_000_000


class BadAuditLog(Exception):
    """The file cannot be used. The text says why, and what to do."""


class AuditLog:
    def __init__(self, path: Path, clock: Callable[[], Instant] = wall_clock) -> None:
        """Raises BadAuditLog."""
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._descriptor = _opened(path)
        self._is_torn = _ends_in_the_middle(path)
        self._minute, self._refused, self._left_out = 0, 0, 0

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def note(self, event: str, operator: Operator, **facts: object) -> None:
        """Returns when the disk has it. Raises OSError: then nothing of what it tells may be done."""
        line = {
            "at": iso_time(self._clock()),
            "event": event,
            "user": operator.name,
            "address": operator.origin.address,
            **({"via": operator.origin.via} if operator.origin.via else {}),
            **facts,
        }
        with self._lock:
            self._write(json.dumps(line) + "\n")

    def note_refused_login(self, operator: Operator, **facts: object) -> None:
        """Only so many in a minute: who guesses passwords must not fill the disk."""
        minute = self._clock() // _MINUTE_MS
        with self._lock:
            if minute != self._minute:
                self._minute, self._refused = minute, 0
            self._refused += 1
            if self._refused > _MOST_REFUSED_LOGINS:
                self._left_out += 1
                return
            left_out, self._left_out = self._left_out, 0
        self.note("login refused", operator, **facts, **({"left_out_before": left_out} if left_out else {}))

    def tail(self, most: int) -> list[Mapping[str, Any]]:
        """The newest lines, newest first, as far as they are in the last part of the file. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            begins = max(0, size - _LONGEST_TAIL)
            stream.seek(begins)
            lines = stream.read(_LONGEST_TAIL).splitlines()
        return list(_objects(reversed(lines[1:] if begins else lines), most))

    def _write(self, text: str) -> None:
        data = text.encode("ascii")
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        written = os.write(self._descriptor, data)
        if written < len(data):
            raise OSError(f"{self.path}: only {written} of {len(data)} bytes were written.")
        self._is_torn = False
        os.fsync(self._descriptor)


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise BadAuditLog(
            f"The audit log {path} cannot be written: {error.strerror}. Choose another file with --audit."
        ) from None
    state = os.fstat(descriptor)
    why = why_untrusted(state) if stat.S_ISREG(state.st_mode) else "is no file"
    if why is not None:
        os.close(descriptor)
        raise BadAuditLog(
            f"The audit log {path} {why}: what it says could be changed. Choose another file with --audit."
        )
    return descriptor


def _ends_in_the_middle(path: Path) -> bool:
    """Whether the last line has no end: the disk was full, or the machine stopped."""
    try:
        with path.open("rb") as stream:
            if not stream.seek(0, os.SEEK_END):
                return False
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:
        return True  # It can only be written to. An empty line does no harm.


def _objects(lines: Iterator[bytes], most: int) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if most <= 0:
            return
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue  # Torn, or somebody else's.
        if isinstance(found, dict):
            most -= 1
            yield found
