"""Archives as evidence: tar (plain or compressed), zip, and single compressed files, as rotated logs are.

An archive may come from anyone, so nothing in it is trusted. Its members are written into a temporary folder
under numbers, without links and devices. A budget limits what all archives together may yield, whatever their
headers say: every member counts, also folders and links, and every byte that comes out of a stream, also
headers, padding and what is skipped. What a tar archive says about its members is not kept.
"""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from kelpie.evidence.xz_stream import NeedsMemory, XzStream
from kelpie.model.time import Instant, plausible
from kelpie.observations import Unasked
from kelpie.places import Place

_PIECE = 1 << 20
_LARGEST_TAR_HEADER = 1 << 20
_LARGEST_ZIP_DIRECTORY = 1 << 23
_TAR_MAGIC_AT = 257
_LONG_NUMBER = re.compile(rb"(?<!\d)\d{400}")
_LONGEST_NAME = 1000
_MOST_GLOBAL_HEADERS = 1000
_SHOWN = 20
"""So many members that are not read are named."""
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
    """Members of any kind."""

    def take(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise Exhausted("what archives hold is larger than is unpacked")

    def check(self, size: int) -> None:
        """Before something is unpacked that says how large it is."""
        if size > self.bytes_left:
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


def unpack(path: Place, name: str, kind: Archive, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    """The files of an archive. A damaged archive yields the files before the damage, and a reason."""
    try:
        if kind is Archive.ZIP:
            yield from _zip(path, name, folder, budget)
        elif kind is Archive.TAR:
            with path.open("rb") as file:
                yield from _tar(file, name, folder, budget)
        else:
            yield from _compressed(path, name, kind, folder, budget)
    except (Exhausted, NeedsMemory) as error:
        reason = f"It was read in part only: {error}. Unpack it and name the folder instead."
        yield Unasked("file", name, reason, source=name)
    except _BROKEN as error:
        reason = f"It is a broken {kind} archive, read as far as it goes: {error or type(error).__name__}."
        yield Unasked("file", name, reason, source=name)


def _compressed(
    path: Place, name: str, kind: Archive, folder: Path, budget: Budget
) -> Iterator[Packed | Unasked]:
    opener: Any = {Archive.GZIP: gzip.open, Archive.XZ: XzStream, Archive.BZIP2: bz2.open}[kind]
    with path.open("rb") as file, opener(file) as stream:
        head = stream.read(512)
    with path.open("rb") as file, opener(file) as stream:
        if is_archive(head) is Archive.TAR:
            yield from _tar(stream, name, folder, budget)
            return
        inside = name
        for suffix in _SUFFIXES[kind]:
            inside = inside.removesuffix(suffix)
        # A rotated log keeps its name without the ending: server.log.gz becomes server.log.
        kept = _keep(stream, folder, budget)
    yield Packed(name if inside == name else inside, kept, kept.stat().st_size, None)


class _Counted:
    """A stream whose bytes count, whoever reads them for whatever."""

    def __init__(self, stream: IO[bytes], budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self._budget.take(len(piece))
        return piece


class _Replayed:
    """A stream of which one piece was read already."""

    def __init__(self, piece: bytes, stream: Any) -> None:
        self._piece: bytes | None = piece
        self._stream = stream

    def read(self, size: int | None = None) -> bytes:
        piece, self._piece = self._piece, None
        return bytes(self._stream.read(size)) if piece is None else piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Member":
        member = super().frombuf(buf, encoding, errors)
        if member.type in _EXTENDED_HEADERS and member.size > _LARGEST_TAR_HEADER:
            raise _BadHeader(f"a header of {member.size} bytes")  # It would be read into memory as a whole.
        return member

    def _proc_pax(self, archive: Any) -> Any:
        """Up to Python 3.11.9, tarfile takes hours for a header of many digits (CVE-2024-6232)."""
        stream = archive.fileobj
        header = stream.read(self._block(self.size))  # type: ignore[attr-defined]
        if _LONG_NUMBER.search(header):
            raise _BadHeader("a number of hundreds of digits in a header")
        archive.fileobj = _Replayed(header, stream)
        try:
            return super()._proc_pax(archive)  # type: ignore[misc]
        finally:
            archive.fileobj = stream
            if len(archive.pax_headers) > _MOST_GLOBAL_HEADERS:
                raise _BadHeader("more headers for all members than any tar program writes")


def _tar(stream: IO[bytes], name: str, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    links = 0
    counted: Any = _Counted(stream, budget)
    with tarfile.open(fileobj=counted, mode="r|", tarinfo=_Member, errors="replace") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # Otherwise it keeps all it has seen.
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                budget.check(member.size)
                # Holes of a sparse file are not in the stream.
                kept = _keep(content, folder, budget, is_counted=not member.issparse())
                modified = plausible(int(member.mtime * 1000)) if 0 < member.mtime < 2**40 else None
                yield Packed(_joined(name, member.name), kept, kept.stat().st_size, modified)
                continue
            budget.take_file()
            if not member.isdir():
                links += 1
                if links <= _SHOWN:
                    yield _not_read(member, _joined(name, member.name))
    if links > _SHOWN:
        reason = f"{links - _SHOWN} further links, devices and pipes in it are not read."
        yield Unasked("file", name, reason, source=name)


def _not_read(member: tarfile.TarInfo, inside: str) -> Unasked:
    kind = "link" if member.issym() or member.islnk() else "device or pipe"
    return Unasked("file", inside, f"It is a {kind} in an archive, and is not read.", source=inside)


def _zip(path: Place, name: str, folder: Path, budget: Budget) -> Iterator[Packed | Unasked]:
    broken = 0
    with _ZipFile(path.open("rb").detach()) as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.is_dir():
                budget.take_file()
                continue
            try:
                _check_method(member)
                with archive.open(member) as content:
                    kept = _keep(content, folder, budget)
            except _BROKEN as error:
                budget.take_file()
                broken += 1
                if broken <= _SHOWN:
                    inside = _joined(name, member.filename)
                    yield Unasked("file", inside, f"It cannot be unpacked: {error}.", source=inside)
                continue
            yield Packed(_joined(name, member.filename), kept, kept.stat().st_size, _zip_time(member))
    if broken > _SHOWN:
        reason = f"{broken - _SHOWN} further files in it cannot be unpacked."
        yield Unasked("file", name, reason, source=name)


class _ZipFile(io.BufferedReader):
    """zipfile reads the list of all members at once, and makes it about ten times as large in memory."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = _LARGEST_ZIP_DIRECTORY + 1
        piece = super().read(min(size, _LARGEST_ZIP_DIRECTORY + 1))
        if len(piece) > _LARGEST_ZIP_DIRECTORY:
            raise Exhausted("its list of files is larger than is read")
        return piece


def _check_method(member: zipfile.ZipInfo) -> None:
    """LZMA inside of zip takes as much memory as the archive says; Python's zipfile can set it no limit."""
    if member.compress_type == zipfile.ZIP_LZMA:
        raise NotImplementedError("it is packed with LZMA; unpack the archive and name the folder instead")


def _zip_time(member: zipfile.ZipInfo) -> Instant | None:
    """Zip stores local time of an unknown zone, and 1980 for an unknown time."""
    if member.date_time[0] <= 1980:
        return None
    return timegm((*member.date_time, 0, 0, 0)) * 1000


def _keep(content: IO[bytes], folder: Path, budget: Budget, *, is_counted: bool = False) -> Path:
    """Writes a member to a file. `is_counted`: its bytes are, as those of the stream."""
    budget.take_file()
    path = folder / f"{budget.files_left:08d}"
    with path.open("wb") as file:
        while piece := content.read(_PIECE):
            if not is_counted:
                budget.take(len(piece))
            file.write(piece)
    return path


def _joined(archive: str, member: str) -> str:
    """A name to show only. Parts that would lead out of the archive are removed."""
    parts = [part for part in member.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    shown = "/".join(parts)[:_LONGEST_NAME].encode("utf-8", "replace").decode()
    return f"{archive}/{''.join(sign if sign.isprintable() else '?' for sign in shown)}"
