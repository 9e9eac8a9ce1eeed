"""From the text that a person writes to a place; and what both kinds of places can do."""

import math
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kelpie.places.remote import RemotePath

Place: TypeAlias = Path | RemotePath

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//.*)?", re.DOTALL)
_SCHEMES = {
    "hdfs": "hdfs",
    # Hadoop's file system for S3 has this name; others call it s3.
    "s3": "s3a",
    "s3a": "s3a",
    "gs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
}
_FORMS = "a path, file:///…, hdfs://HOST:PORT/…, s3://BUCKET/…, gs://BUCKET/… or abfss://CONTAINER@ACCOUNT/…"
_ODD = re.compile(r"[^\w./=+,@:~-]")


class PlaceRefused(ValueError):
    """A text that names no place."""


def place_of(text: str) -> Place:
    """The place that a path or a URL names. What `str` of a place says names the same place again.

    Raises PlaceRefused.
    """
    url = _URL.match(text)
    if url is None or (url[2] is None and not text.lower().startswith("file:")):
        return Path(text)
    scheme = url[1].lower()
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme not in _SCHEMES:
        raise PlaceRefused(f"{scheme}: is no kind of place that is known here. Write {_FORMS}.")
    authority, _, key = url[2].removeprefix("//").partition("/")
    if ":" in authority.rpartition("@")[0]:
        raise PlaceRefused(
            f"The URL {scheme}://…@{authority.rpartition('@')[2]} has a password in it, which others see in "
            "command lines and logs. Put the key and the secret into the environment (AWS_ACCESS_KEY_ID, …)."
        )
    if not authority:
        raise PlaceRefused(f"{text!r} names no host or bucket. Write {_FORMS}.")
    return RemotePath(_SCHEMES[scheme], authority, "/".join(filter(None, key.split("/"))))


def is_remote(text: str) -> bool:
    return not isinstance(place_of(text), Path)


def for_tables(place: Place) -> Place:
    """The same place. Raises PlaceRefused if its name has characters that readers of Delta tables escape."""
    odd = None if isinstance(place, Path) else _ODD.search(place.key)
    if odd is not None:
        raise PlaceRefused(
            f"{place} has {odd[0]!r} in its name: not every reader of tables finds them there. Use letters, "
            "digits and -_./=."
        )
    return place.absolute()


def create_exclusively(place: Place, data: bytes, draft: str) -> None:
    """Writes a file in one step that lasts. Raises FileExistsError if there is one; one writer wins.

    `draft`: how the name begins that a local file has before.
    """
    if not isinstance(place, Path):
        place.create(data)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    unnamed = place.with_name(f"{draft}{uuid.uuid4()}")
    with unnamed.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(unnamed, place)
    finally:
        unnamed.unlink()


def try_to_write(folder: RemotePath) -> None:
    """Writes a file and deletes it. Raises OSError."""
    mark = folder / f"_seen-{uuid.uuid4()}"
    mark.write_bytes(b"")
    mark.unlink(missing_ok=True)


def write_whole(place: Place, data: bytes) -> None:
    """Replaces a file in one step: readers see the old or the new one."""
    if isinstance(place, Path):
        draft = place.with_suffix(".draft")
        draft.write_bytes(data)
        draft.replace(place)
    else:
        place.write_bytes(data)


def files_in(folder: Place, pattern: str) -> list[Place]:
    """What a folder holds under names like these."""
    return [*folder.glob(pattern)]


def newest_change(place: Place) -> float:
    """When a file, or something in a folder, was changed last, in seconds since 1970.

    Some object stores still show a folder when all its objects are gone: there is nothing in it to be old.
    """
    if isinstance(place, Path):
        return place.stat().st_mtime
    times = [entry.st_mtime for _, entry in place.files()]
    try:
        return max(times) if times else place.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def files_below(folder: Place) -> Iterator[Place]:
    """All files in a folder and in those below it."""
    if isinstance(folder, Path):
        yield from (path for path in folder.rglob("*") if path.is_file())
    else:
        yield from (path for path, _ in folder.files())


def move(file: Place, target: Place) -> None:
    """Within one file system, to a name that is not taken."""
    if isinstance(file, Path):
        assert isinstance(target, Path)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    else:
        assert not isinstance(target, Path)
        file.rename(target)


def remove_folder(place: Place) -> None:
    """With all that is in it, if it is there."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.remove_folder()
