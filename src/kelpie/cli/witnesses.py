"""Folders that are named as witnesses of offsets: disks, evidence, archives, tables of the pipeline."""

from collections.abc import Iterable
from pathlib import Path

from kelpie.cli.command import CommandError
from kelpie.cli.progress import progress
from kelpie.evidence import read_evidence
from kelpie.observations import Observations


def read_witnesses(paths: Iterable[Path], cluster: str | None = None) -> Observations:
    """All that they tell. `cluster`: which one, where tables are of several. Raises CommandError."""
    observations = Observations()
    files = []
    for path in paths:
        if (path / "bronze" / "evidence_file" / "_delta_log").is_dir():
            observations.add(_of_tables(path, cluster))
        else:
            files.append(path)
    if files:
        with progress("", "reading files"):
            observations.add(read_evidence(files))
    return observations


def _of_tables(folder: Path, cluster: str | None) -> Observations:
    try:
        from kelpie.pipeline.results import NoTables, read_positions  # noqa: PLC0415 - only who has tables.
    except ImportError as error:
        raise CommandError(
            f"Tables need the pipeline: pip install 'kelpie-kafka[pipeline]'. ({error})"
        ) from None
    try:
        return read_positions(folder, cluster)
    except NoTables as error:
        raise CommandError(str(error)) from None
