"""Committed offsets that disks, files and tables still know: `kelpie offsets recover`."""

from collections.abc import Iterable
from pathlib import Path

from kelpie.api.places import FolderLike, folders_of
from kelpie.api.tables import needs_pipeline
from kelpie.evidence import read_evidence
from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.places import Place
from kelpie.repair.claims import SettledOffset
from kelpie.repair.recovery import RemovedOffset, recover, removed


def recover_offsets(
    places: FolderLike | Iterable[FolderLike],
    *,
    groups: Iterable[str] | None = None,
    at: Instant | None = None,
    cluster: str | None = None,
) -> list[tuple[str, SettledOffset]]:
    """What every group had committed last in each partition, with where it is from and how certain it is.

    `places`: disks of brokers, evidence, archives, tables. `at`: as it was then, in milliseconds since 1970.
    `cluster`: which one, where tables are of several. Offsets that were deleted or have expired are left out:
    `removed_offsets` has them. Raises KelpieError.
    """
    return list(recover(read_witnesses(folders_of(places), cluster), groups=groups, at=at))


def removed_offsets(
    places: FolderLike | Iterable[FolderLike],
    *,
    groups: Iterable[str] | None = None,
    at: Instant | None = None,
    cluster: str | None = None,
) -> list[RemovedOffset]:
    """What `recover_offsets` leaves out. Raises KelpieError."""
    return list(removed(read_witnesses(folders_of(places), cluster), groups=groups, at=at))


def read_witnesses(places: Iterable[Place], cluster: str | None = None) -> Observations:
    """All that disks, evidence, archives and tables of the pipeline tell. Raises KelpieError."""
    observations = Observations()
    files = []
    for path in places:
        if not isinstance(path, Path) or (path / "bronze" / "evidence_file" / "_delta_log").is_dir():
            observations.add(_of_tables(path, cluster))
        else:
            files.append(path)
    if files:
        observations.add(read_evidence(files))
    return observations


def _of_tables(folder: Place, cluster: str | None) -> Observations:
    with needs_pipeline():
        from kelpie.pipeline.results import read_positions  # noqa: PLC0415 - an extra.
    return read_positions(folder, cluster)
