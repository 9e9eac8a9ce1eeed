"""Class data sharing (JEP 350): Spark's classes as Java has loaded and verified them, in an archive.

Theory: half of Java's start goes into loading and verifying classes. Java writes the archive when the first
run ends, which takes some seconds, and maps it into memory at later starts. Measured on two cores: a session
starts in 4.5 s instead of 8.6 s, and a short run costs 9.4 s of CPU instead of 14.2 s. The plain way is to
start without the archive, and Java itself does so where an archive does not fit; so the result of a run
cannot depend on it. Each Java and each Spark has an archive. Without a writable cache there is none.
"""

import hashlib
import time
from pathlib import Path

from kelpie import folders
from kelpie.real import java

_KEPT = 4
"""Each has 60 MB."""
_AN_HOUR_S = 3600
_QUIET = "-Xshare:auto -Xlog:disable"
"""No warnings about an archive that does not fit, or classes that cannot be in one."""


def options(jars: Path, *, make: bool) -> str:
    """Options for Java to use the archive; or, if there is none, to `make` it. `jars`: those of Spark."""
    try:
        folder = folders.cache() / "spark-classes"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{_digest(jars)}.jsa"
        exists = path.exists()
        if not exists and not (make and _may_make(path)):
            return ""
    except (OSError, RuntimeError):  # No home folder, or it cannot be written.
        return ""
    if '"' in str(path):  # Spark splits the options at quotes.
        return ""
    return f'{_QUIET} "-XX:{"SharedArchiveFile" if exists else "ArchiveClassesAtExit"}={path}"'


def _digest(jars: Path) -> str:
    """Changes with the version and the place of Java and of Spark."""
    digest = hashlib.sha256()
    for path in (java.find().resolve(), jars.resolve()):
        state = path.stat()
        digest.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0".encode())
    return digest.hexdigest()[:16]


def _may_make(path: Path) -> bool:
    """One process at a time, for it takes as long as three starts. Deletes the oldest archives."""
    mark = path.with_suffix(".making")
    if mark.exists() and time.time() - mark.stat().st_mtime < _AN_HOUR_S:
        return False
    mark.touch()
    known = sorted(path.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in known[_KEPT - 1 :]:
        old.unlink(missing_ok=True)
    return True
