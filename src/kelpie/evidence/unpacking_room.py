"""The temporary folder into which archives are unpacked. It does not outlive its process.

A process that is killed cannot clean up, and may leave gigabytes. So each folder holds a lock as long as its
process lives, and whoever makes the next one removes those that nobody holds. A folder of another user, a
link, and a folder that has no lock yet are left alone; one without a lock is removed a day later.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "kelpie-evidence-"
_LOCK = "lock"
_DAY_S = 86_400.0


@contextmanager
def unpacking_room(place: Path | None = None) -> Iterator[Path]:
    """An empty folder, removed at the end. `place`: where, if not among this machine's temporary files.

    There, other machines may have theirs, whose locks are not always seen: nothing is removed.
    """
    if place is None:
        _remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        with _locked(folder):
            room = folder / "files"
            room.mkdir()
            yield room
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The lock gets its name when it is held: nobody ever finds one that is free and in use.
    unnamed = folder / "lock.new"
    descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        with suppress(OSError):  # Not every file system has locks. The folder then stays, if this is killed.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(folder / _LOCK)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(place: Path) -> None:
    with suppress(OSError):
        for folder in sorted(place.glob(f"{_PREFIX}*")):
            with suppress(OSError):
                if _is_abandoned(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Raises OSError."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - status.st_mtime > _DAY_S
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
