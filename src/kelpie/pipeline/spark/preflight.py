"""Checks on an executor, before a run relies on it: modules, files, the folder of the tables.

This runs in the workers, and imports nothing that they might lack.
"""

import importlib
import os
import platform
import socket
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExecutorCheck:
    """What one executor has of what a run needs."""

    host: str
    python: str
    missing: tuple[tuple[str, str], ...] = ()
    """Modules that cannot be imported, and why."""
    unseen: tuple[tuple[str, str], ...] = ()
    """Files that the driver sees and this executor does not, and why."""
    folder: str = ""
    """Why it cannot write tables; empty if it can."""

    @property
    def is_good(self) -> bool:
        return not (self.missing or self.unseen or self.folder)


def check_executor(
    modules: Sequence[str], files: Sequence[tuple[str, int]], folder: str, mark: str
) -> ExecutorCheck:
    """`files`: paths and their least sizes. `mark`: a file that the driver put into the folder."""
    return ExecutorCheck(
        socket.gethostname(),
        f"{sys.executable} ({platform.python_version()})",
        tuple((name, why) for name in modules if (why := _lacks(name))),
        tuple((path, why) for path, size in files if (why := _cannot_read(path, size))),
        _cannot_write(folder, mark),
    )


def _lacks(name: str) -> str:
    try:
        importlib.import_module(name)
    except ImportError as error:
        return str(error)
    return ""


def _cannot_read(path: str, size: int) -> str:
    from kelpie.places import place_of  # noqa: PLC0415 - it needs no more than Python, for paths.

    try:
        with place_of(path).open("rb") as file:
            actual = file.seek(0, os.SEEK_END)
    except (OSError, ImportError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return "" if actual >= size else f"another file is there, of {actual} bytes"


def _cannot_write(text: str, mark: str) -> str:
    from kelpie.places import place_of  # noqa: PLC0415 - it needs no more than Python, for paths.
    from kelpie.places.place import try_to_write  # noqa: PLC0415

    folder = place_of(text)
    if not isinstance(folder, Path):
        try:
            if not (folder / mark).exists():
                return "another folder is there"
            try_to_write(folder)
        except (OSError, ImportError) as error:
            return str(error)
        return ""
    if not folder.is_dir():
        return "no such folder"
    if not (folder / mark).exists():
        return "another folder is there"
    try:
        probe = folder / f"{mark}-{uuid.uuid4()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
