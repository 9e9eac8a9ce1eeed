"""Class data sharing (JEP 310, JEP 350): classes as Java has loaded and verified them, in an archive.

Theory: half of Java's start goes into loading and verifying classes. Java maps an archive of them into memory
instead. The plain way is to start without one, and Java itself does so where an archive does not fit; so what
a program does cannot depend on it. Each Java and each folder of jars has an archive. Without a writable cache
there is none. An archive is code: one that others may have written is not used.

Servers are killed, and write no archive at their end. So one cluster's JVMs list the classes that they load
(`recording`), and `make` hands these lists to Java. Measured on two cores: a broker of Kafka 4.3.1 starts
with 1.9 s of CPU instead of 3.2 s, a tool with 0.8 s instead of 1.2 s; `make` takes as much as two starts.
"""

import contextlib
import hashlib
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from kelpie import folders
from kelpie.real import java, locks
from kelpie.real.cluster_errors import RealError

_KIND = "kafka-classes"
_LIST = ".classes"
_KEPT = 4
"""Of each kind. An archive has 60 MB."""
_AN_HOUR_S = 3600
_MAKING_LIMIT_S = 120.0
_HEAP_MB = 512
QUIET = ("-Xshare:auto", "-Xlog:disable")
"""No warnings about an archive that does not fit, or classes that cannot be in one."""


def archive_of(jars: Path, kind: str) -> Path | None:
    """Where the archive of these jars is, or is to be; None where nothing can be kept, or trusted."""
    try:
        archive = folders.trusted_cache(kind) / f"{_digest(jars)}.jsa"
        return folders.trusted(archive) if archive.exists() else archive
    except (OSError, RuntimeError):  # No home folder, or it cannot be written, or others may write it.
        return None


def may_make(archive: Path) -> bool:
    """For a Java that writes the archive when it ends: one at a time. Deletes the oldest archives."""
    try:
        mark = archive.with_suffix(".making")
        if mark.exists() and time.time() - mark.stat().st_mtime < _AN_HOUR_S:
            return False
        mark.touch()
        _make_room(archive.parent)
    except OSError:
        return False
    return True


def options(libraries: Path) -> tuple[str, ...]:
    """Options for Java to use the archive of a release of Kafka, if there is one."""
    archive = archive_of(libraries, _KIND)
    if archive is None or not archive.exists():
        return ()
    return (*QUIET, f"-XX:SharedArchiveFile={archive}")


def is_missing(libraries: Path) -> bool:
    """Whether there is none of a release of Kafka, and one can be made."""
    archive = archive_of(libraries, _KIND)
    return archive is not None and not archive.exists()


def recording(folder: Path) -> tuple[str, ...]:
    """Options for Java to list the classes that it loads, in a file of its own in this folder."""
    return (f"-XX:DumpLoadedClassList={folder}/%p{_LIST}",)


def make(libraries: Path, lists: Path) -> None:
    """Make the archive of a release from the lists in a folder; not if another process is about it.

    Where that fails there is none: see above.
    """
    archive = archive_of(libraries, _KIND)
    if archive is None or archive.exists():
        return
    with (
        contextlib.suppress(OSError, RealError, subprocess.SubprocessError),
        locks.held(archive.with_suffix(".lock"), limit_s=0, purpose="archiving classes"),
    ):
        if not archive.exists():
            _make(libraries, lists, archive)


def _make(libraries: Path, lists: Path, archive: Path) -> None:
    names, part = lists / "all-classes", archive.with_suffix(".part")
    names.write_text("".join(_listed(lists)))
    part.unlink(missing_ok=True)
    dump = ("-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={part}")
    subprocess.run(
        java.command(f"{libraries}/*", "-version", heap_mb=_HEAP_MB, options=("-Xlog:disable", *dump)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_MAKING_LIMIT_S,
        check=True,
    )
    _make_room(archive.parent)
    part.rename(archive)


def _make_room(folder: Path) -> None:
    known = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in known[_KEPT - 1 :]:
        old.unlink(missing_ok=True)


def _listed(lists: Path) -> Iterable[str]:
    """Each class once. Lines that begin with @ tell of lambdas: with them the archive takes half as much time
    again to make, and starts are no quicker.
    """
    lines = (line for path in sorted(lists.glob(f"*{_LIST}")) for line in path.read_text().splitlines(True))
    return dict.fromkeys(line for line in lines if line.endswith("\n") and not line.startswith("@"))


def _digest(jars: Path) -> str:
    """Changes with the version and the place of Java and of the jars."""
    digest = hashlib.sha256()
    for path in (java.find().resolve(), jars.resolve()):
        state = path.stat()
        digest.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0".encode())
    return digest.hexdigest()[:16]
