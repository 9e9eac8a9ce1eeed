"""Where files are kept, by the XDG base directory specification.

What is in the cache is run: jars, compiled code, archives of classes. So nothing is taken from a cache that
others may write to.
"""

import errno
import os
import stat
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class Untrusted(PermissionError):
    """Somebody else may have written this file, or may write into this folder."""


def cache() -> Path:
    """Files that can be fetched again, or made again: jars. `trusted_cache` before anything of it is run."""
    return _folder("KELPIE_CACHE", "XDG_CACHE_HOME", ".cache")


def trusted_cache(*below: str) -> Path:
    """A folder in the cache, made for its owner only. Raises Untrusted, and OSError if it cannot be made."""
    folder = cache()
    folder.parent.mkdir(parents=True, exist_ok=True)
    for part in ("", *below):
        folder = folder / part
        folder.mkdir(mode=0o700, exist_ok=True)
        trusted(folder)
    return folder


def trusted(path: Path) -> Path:
    """The same path. Raises Untrusted unless only this user, or root, can have written it; OSError."""
    state = path.stat()
    why = why_untrusted(state)
    if why is None:
        return path
    if state.st_uid not in (os.geteuid(), _ROOT):
        cure = "Set KELPIE_CACHE to a folder of yours"
    else:
        cure = (
            f"If you trust them: chmod -R go-w {cache()}. If not, delete it, or set KELPIE_CACHE to another"
        )
    raise Untrusted(errno.EPERM, f"{path} {why}, and what is in the cache is run. {cure}", str(path))


def why_untrusted(state: os.stat_result) -> str | None:
    """Who else can have written a file or folder, in words; None: only this user, or root."""
    if state.st_uid not in (os.geteuid(), _ROOT):
        return f"belongs to another user (uid {state.st_uid})"
    if state.st_mode & _OTHERS_MAY_WRITE:
        return f"can be written by others (mode {stat.S_IMODE(state.st_mode):04o})"
    return None


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
