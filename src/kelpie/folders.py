"""Where things are kept, after the XDG base directory specification."""

import os
from pathlib import Path


def cache() -> Path:
    """What can be fetched again: jars."""
    return _folder("KELPIE_CACHE", "XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """What belongs to clusters that are up."""
    return _folder("KELPIE_STATE", "XDG_STATE_HOME", ".local/state")


def _folder(own: str, shared: str, under_home: str) -> Path:
    if chosen := os.environ.get(own):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get(shared, ""))
    if not base.is_absolute():  # The specification has relative paths ignored.
        base = Path.home() / under_home
    return base / "kelpie"
