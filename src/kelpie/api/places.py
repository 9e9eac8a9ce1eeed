"""How a program names a cluster, and a folder."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from kelpie.client.profiles import read_profile
from kelpie.client.properties import read_settings
from kelpie.client.settings import Settings
from kelpie.model.kelpie_error import KelpieError
from kelpie.places import Place as FilePlace
from kelpie.places import PlaceRefused, RemotePath, place_of

Place: TypeAlias = str | Settings
"""Bootstrap servers ("kafka-1:9092,kafka-2:9092"), or settings, which also have security and time limits."""
PathLike: TypeAlias = str | Path
"""A path of this machine."""
FolderLike: TypeAlias = PathLike | RemotePath
"""A path of this machine, or a URL of a file system: hdfs://HOST:PORT/…, s3://BUCKET/…"""


def settings(
    bootstrap: str | None = None,
    *,
    command_config: PathLike | None = None,
    profile: str | None = None,
    timeout_s: float | None = None,
) -> Settings:
    """As the options -b, --command-config, --profile and --timeout of commands. Raises BadSettings.

    The environment is not looked at. What is given here counts before what the profile says.
    """
    if profile is not None:
        known = read_profile(profile)
        bootstrap, command_config = bootstrap or known.bootstrap, command_config or known.command_config
    return with_limit(read_settings(command_config, bootstrap), timeout_s)


def with_limit(made: Settings, timeout_s: float | None) -> Settings:
    """The same, with another time for one answer. None: as it is."""
    if timeout_s is None:
        return made
    return replace(
        made, request_timeout_s=timeout_s, connect_timeout_s=min(made.connect_timeout_s, timeout_s)
    )


def settings_at(place: Place) -> Settings:
    """Raises BadSettings."""
    return Settings.of(place) if isinstance(place, str) else place


def paths(given: FolderLike | Iterable[FolderLike]) -> list[Path]:
    """One or several, all of which are there. Raises KelpieError."""
    found = []
    for path in folders_of(given):
        if not isinstance(path, Path):
            raise KelpieError(f"{path} is not on this machine: only kelpie pipeline reads files there.")
        found.append(path)
    return found


def folders_of(given: FolderLike | Iterable[FolderLike]) -> list[FilePlace]:
    """One or several, all of which are there. Raises KelpieError."""
    several = [given] if isinstance(given, str | Path | RemotePath) else list(given)
    try:
        found = [place_of(str(each)) for each in several]
        missing = [str(each) for each in found if not each.exists()]
    except (PlaceRefused, OSError) as error:
        raise KelpieError(f"{error}") from None
    if missing:
        raise KelpieError(f"There is no {', '.join(missing)}.")
    return found
