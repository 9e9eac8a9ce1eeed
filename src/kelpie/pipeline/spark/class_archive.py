"""Classes of Spark as Java has once loaded and checked them: half of what Java costs to start.

Java keeps them in an archive (class data sharing, JEP 350), which it writes when the first run ends (that
takes some seconds more), and maps when the next one starts. It looks itself whether an archive fits, and does
without one that does not; so one is kept for each Java, each Spark, and each use of it: tasks alone, or
queries, which need more classes. Where nothing may be kept, there is none.
"""

import hashlib
import time
from pathlib import Path

from kelpie import folders
from kelpie.real import java

_KEPT = 4
"""One has 60 MB."""
_AN_HOUR_S = 3600
_QUIET = "-Xshare:auto -Xlog:disable"
"""An archive that does not fit, and classes that cannot be in one, are not worth a word."""


def options(jars: Path, *, queries: bool, make: bool) -> str:
    """For Java: to use the archive; or, if there is none, to `make` it. `jars`: Spark's."""
    try:
        folder = folders.cache() / "spark-classes"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{_digest(jars)}-{'queries' if queries else 'tasks'}.jsa"
        exists = path.exists()
        if not exists and not (make and _may_make(path)):
            return ""
    except (OSError, RuntimeError):  # No home, or one that cannot be written.
        return ""
    if '"' in str(path):  # Spark takes the options apart by quotes.
        return ""
    return f'{_QUIET} "-XX:{"SharedArchiveFile" if exists else "ArchiveClassesAtExit"}={path}"'


def _digest(jars: Path) -> str:
    """Another one when Java or Spark are others, or elsewhere."""
    digest = hashlib.sha256()
    for path in (java.find().resolve(), jars.resolve()):
        state = path.stat()
        digest.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0".encode())
    return digest.hexdigest()[:16]


def _may_make(path: Path) -> bool:
    """One at a time: it takes as long as three starts. Those of Javas and Sparks that are gone make room."""
    mark = path.with_suffix(".making")
    if mark.exists() and time.time() - mark.stat().st_mtime < _AN_HOUR_S:
        return False
    mark.touch()
    known = sorted(path.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in known[_KEPT - 1 :]:
        old.unlink(missing_ok=True)
    return True
