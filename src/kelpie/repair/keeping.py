"""Files that a repair leaves behind so that it can be undone: in the state folder, one for each repair."""

import re
from datetime import UTC, datetime
from pathlib import Path

from kelpie.model.time import Instant
from kelpie.store import default_folder


def undo_file(name: str, now: Instant, suffix: str) -> Path:
    """Where to keep what was before: a name of its own for each group and second."""
    when = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80] or "_"
    return default_folder() / "undo" / f"{plain}-{when}{suffix}"


def keep(file: Path, text: str) -> None:
    """Writes it, whole or not at all. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    begun = file.with_name(file.name + ".part")
    begun.write_text(text, encoding="utf-8")
    begun.replace(file)
