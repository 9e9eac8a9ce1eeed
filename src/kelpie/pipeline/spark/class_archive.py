"""Spark's classes in an archive (see `kelpie.real.class_archive`).

Java writes it when the first run ends, which takes some seconds. Measured on two cores: a session starts in
4.5 s instead of 8.6 s, and a short run costs 9.4 s of CPU instead of 14.2 s.
"""

from pathlib import Path

from kelpie.real.class_archive import QUIET, archive_of, may_make


def options(jars: Path, *, make: bool) -> str:
    """Options for Java to use the archive; or, if there is none, to `make` it. `jars`: those of Spark."""
    archive = archive_of(jars, "spark-classes")
    if archive is None or '"' in str(archive):  # Spark splits the options at quotes.
        return ""
    exists = archive.exists()
    if not exists and not (make and may_make(archive)):
        return ""
    return f'{" ".join(QUIET)} "-XX:{"SharedArchiveFile" if exists else "ArchiveClassesAtExit"}={archive}"'
