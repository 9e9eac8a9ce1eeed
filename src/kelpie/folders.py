"""Where files are kept, by the XDG base directory specification."""

import os
from pathlib import Path


def cache() -> Path:
    """Files that can be fetched again: jars."""
    return _folder("KELPIE_CACHE", "XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """Files of clusters that are up."""
    return _folder("KELPIE_STATE", "XDG_STATE_HOME", ".local/state")


def config() -> Path:
    """Files that people write: profiles of clusters."""
    return _folder("KELPIE_CONFIG", "XDG_CONFIG_HOME", ".config")


def _folder(variable: str, shared: str, under_home: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get(shared, ""))
    if not base.is_absolute():  # The specification says to ignore relative paths.
        base = Path.home() / under_home
    return base / "kelpie"
