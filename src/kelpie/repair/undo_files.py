"""Files of repairs: the folder of records, and how a file is written so that it is there whole, or not."""

import os
from pathlib import Path

from kelpie.store import default_folder


def undo_folder() -> Path:
    return default_folder() / "undo"


def create(file: Path, text: str) -> None:
    """Writes a new file, only for its owner, and returns when the disk has it.

    Raises OSError, also if there is such a file already: a record is never overwritten.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(file: Path, text: str) -> None:
    """Writes the whole text, or no file. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)
