"""Recordings of real incidents, compressed, each with its truth beside it.

NAME.tar.xz holds what an operator would have: logs, outputs of tools, scrapes, segment files. NAME.truth/
says what had been done and what is right; it is kept out of the archive, so that nothing can be diagnosed
by reading it.
"""

import atexit
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Protocol

_HERE = Path(__file__).parent

NAMES = tuple(sorted(archive.name.removesuffix(".tar.xz") for archive in _HERE.glob("*.tar.xz")))


class Observation(Protocol):
    """An observation of any kind: when it was made, and where it was read."""

    @property
    def at(self) -> int | None: ...

    @property
    def source(self) -> str: ...


@cache
def _room() -> Path:
    room = Path(tempfile.mkdtemp(prefix="kelpie-evidence-"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    return room


@cache
def unpacked(name: str) -> Path:
    """The folder of a recording, unpacked once a session and removed at its end. Do not write there."""
    folder = _room() / name
    with tarfile.open(_HERE / f"{name}.tar.xz") as archive:
        # As an attribute, for `filter=` came only with Python 3.11.4.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder


def truth(name: str) -> Path:
    """The folder that says what is right about a recording."""
    return _HERE / f"{name}.truth"
