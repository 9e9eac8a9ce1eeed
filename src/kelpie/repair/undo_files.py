"""Files that undo a repair: in the state folder, one for each repair."""

import re
from datetime import UTC, datetime
from pathlib import Path

from kelpie.model.time import Instant
from kelpie.store import default_folder


def undo_file(name: str, now: Instant, suffix: str) -> Path:
    """Where to keep what was there before; each group and second has its own file."""
    when = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80] or "_"
    return undo_folder() / f"{plain}-{when}{suffix}"


def undo_folder() -> Path:
    return default_folder() / "undo"


def write_whole(file: Path, text: str) -> None:
    """Writes the whole text, or no file. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)
