"""Archives as evidence: tar (plain or compressed), zip, and single compressed files, as rotated logs are.

An archive may come from anyone, so nothing in it is trusted. Its members are written into a temporary folder
under numbers, without links and devices. A budget limits what all archives together may yield, whatever their
headers say.
"""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from kelpie.model.time import Instant, plausible
from kelpie.observations import Unasked

_PIECE = 1 << 20
_LARGEST_TAR_HEADER = 1 << 20
_TAR_MAGIC_AT = 257
_EXTENDED_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # zipfile, when a password is needed.
    NotImplementedError,
    OverflowError,
    MemoryError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


class Archive(StrEnum):
    TAR = "tar"
    ZIP = "zip"
    GZIP = "gzip"
    XZ = "xz"
    BZIP2 = "bzip2"


_SUFFIXES = {
    Archive.GZIP: (".gz", ".tgz"),
    Archive.XZ: (".xz", ".txz"),
    Archive.BZIP2: (".bz2", ".tbz2", ".tbz"),
}


class Exhausted(Exception):
    """More would come out of archives than the budget allows."""


class _BadHeader(ValueError):
    """A header of a tar archive that no tar program writes."""


@dataclass(slots=True)
class Budget:
    """How much may come out of all archives together."""

    bytes_left: int = 4 * 1024**3
    files_left: int = 100_000

    def take(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise Exhausted("what archives hold is larger than is unpacked")

    def take_file(self) -> None:
        self.files_left -= 1
        if self.files_left < 0:
            raise Exhausted("archives hold more files than are unpacked")


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that was in an archive, and where it lies now."""

    name: str
    path: Path
    size: int
    modified: Instant | None


def is_archive(head: bytes) -> Archive | None:
    """Which kind of archive begins with these bytes, if any."""
    if head[:2] == b"\x1f\x8b":
        return Archive.GZIP
    if head[:6] == b"\xfd7zXZ\x00":
        return Archive.XZ
    if head[:3] == b"BZh" and head[4:10] == b"1AY&SY":
        return Archive.BZIP2
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return Archive.ZIP
    return Archive.TAR if head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar" else None


def unpack(path: Path, name: str, kind: Archive, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    """The files of an archive. A damaged archive yields the files before the damage, and a reason."""
    try:
        if kind is Archive.ZIP:
            yield from _zip(path, name, folder, budget)
        elif kind is Archive.TAR:
            with path.open("rb") as file:
                yield from _tar(file, name, folder, budget)
        else:
            yield from _compressed(path, name, kind, folder, budget)
    except Exhausted as error:
        reason = f"It was read in part only: {error}. Unpack it and name the folder instead."
        yield Unasked("file", name, reason, source=name)
    except _BROKEN as error:
        reason = f"It is a broken {kind} archive, read as far as it goes: {error or type(error).__name__}."
        yield Unasked("file", name, reason, source=name)


def _compressed(
    path: Path, name: str, kind: Archive, folder: Path, budget: Budget
) -> Iterator[Packed | Unasked]:
    opener: Any = {Archive.GZIP: gzip.open, Archive.XZ: lzma.open, Archive.BZIP2: bz2.open}[kind]
    with opener(path, "rb") as stream:
        head = stream.read(512)
    with opener(path, "rb") as stream:
        if is_archive(head) is Archive.TAR:
            yield from _tar(stream, name, folder, budget)
            return
        inside = name
        for suffix in _SUFFIXES[kind]:
            inside = inside.removesuffix(suffix)
        # A rotated log keeps its name without the ending: server.log.gz becomes server.log.
        kept = _keep(stream, folder, budget)
    yield Packed(name if inside == name else inside, kept, kept.stat().st_size, None)


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Member":
        member = super().frombuf(buf, encoding, errors)
        if member.type in _EXTENDED_HEADERS and member.size > _LARGEST_TAR_HEADER:
            raise _BadHeader(f"a header of {member.size} bytes")  # It would be read into memory as a whole.
        return member


def _tar(stream: IO[bytes], name: str, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member, errors="replace") as archive:
        for member in archive:
            if not member.isreg() and not member.isdir():
                inside = _joined(name, member.name)
                kind = "link" if member.issym() or member.islnk() else "device or pipe"
                yield Unasked(
                    "file", inside, f"It is a {kind} in an archive, and is not read.", source=inside
                )
            if member.isreg():
                content = archive.extractfile(member)
                if content is not None:
                    kept = _keep(content, folder, budget)
                    modified = plausible(int(member.mtime * 1000)) if 0 < member.mtime < 2**40 else None
                    yield Packed(_joined(name, member.name), kept, kept.stat().st_size, modified)


def _zip(path: Path, name: str, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                try:
                    with archive.open(member) as content:
                        kept = _keep(content, folder, budget)
                except _BROKEN as error:
                    inside = _joined(name, member.filename)
                    yield Unasked("file", inside, f"It cannot be unpacked: {error}.", source=inside)
                    continue
                yield Packed(_joined(name, member.filename), kept, kept.stat().st_size, _zip_time(member))


def _zip_time(member: zipfile.ZipInfo) -> Instant | None:
    """Zip stores local time of an unknown zone, and 1980 for an unknown time."""
    if member.date_time[0] <= 1980:
        return None
    return timegm((*member.date_time, 0, 0, 0)) * 1000


def _keep(content: IO[bytes], folder: Path, budget: Budget) -> Path:
    budget.take_file()
    path = folder / f"{budget.files_left:08d}"
    with path.open("wb") as file:
        while piece := content.read(_PIECE):
            budget.take(len(piece))
            file.write(piece)
    return path


def _joined(archive: str, member: str) -> str:
    """A name to show only. Parts that would lead out of the archive are removed."""
    parts = [part for part in member.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    shown = "/".join(parts).encode("utf-8", "replace").decode()
    return f"{archive}/{''.join(sign if sign.isprintable() else '?' for sign in shown)}"
