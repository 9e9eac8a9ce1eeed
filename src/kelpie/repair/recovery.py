"""What every group had committed last, as far as disks, the offsets topic, tools or tables tell.

For each partition the claims of all copies of the offsets topic and of all descriptions are settled as the
repairs settle them (see `claims`): the newest counts, and says how certain it is, and why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Commit, Committed, Observations
from kelpie.repair.claims import Claim, CopyRead, SettledOffset, of_copies, of_surveys, place_in_copy, settle

Row = TypeVar("Row", Commit, Committed)


def recover(
    observations: Observations, *, groups: Iterable[str] | None = None, at: Instant | None = None
) -> Iterator[tuple[str, SettledOffset]]:
    """Each group with its last committed offset in each partition, in order.

    `at`: as it was at that time; without it, the last that is known.
    A committed offset that was removed is left out, unless it was removed after `at`.
    """
    commits = _by_group(observations.commits, at)
    described = _by_group(observations.committed, at)
    copies = _copies(observations)
    replicas = {
        str(view.name): len(view.replicas) for view in observations.partitions if view.topic == OFFSETS_TOPIC
    }
    wanted = sorted({*commits, *described}) if groups is None else sorted(set(groups))
    for group in wanted:
        claims = [*of_surveys(described.get(group, ()), group), *of_copies(commits.get(group, ()), group)]
        home = _home(claims, copies)
        settled = settle(claims, copies.get(home, ()), replicas=replicas.get(home))
        yield from ((group, offset) for offset in settled.values() if not offset.claim.removed)


@dataclass(frozen=True, slots=True)
class RemovedOffset:
    """A committed offset that was removed (deleted, or expired), and what stood before."""

    group: str
    before: Claim
    at: Instant | None
    """When it was removed, if the record says so."""


def removed(
    observations: Observations, *, groups: Iterable[str] | None = None, at: Instant | None = None
) -> Iterator[RemovedOffset]:
    """What `recover` leaves out, because the last thing that the copies say is a removal."""
    commits = _by_group(observations.commits, at)
    for group in sorted(commits if groups is None else set(groups) & set(commits)):
        last = settle(of_copies(commits[group], group))
        stood = settle(of_copies(commits[group], group, removals=False))
        for partition, settled in last.items():
            if settled.claim.removed and partition in stood:
                yield RemovedOffset(group, stood[partition].claim, settled.claim.at)


def _by_group(rows: Iterable[Row], at: Instant | None) -> dict[str, list[Row]]:
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        if at is None or (row.at is not None and row.at <= at):
            by_group.setdefault(row.group, []).append(row)
    return by_group


def _copies(observations: Observations) -> dict[str, list[CopyRead]]:
    """Copies of partitions of the offsets topic that were read, by the name of their folder."""
    copies: dict[str, list[CopyRead]] = {}
    for row in observations.ends:
        if row.topic == OFFSETS_TOPIC:
            folder, _ = place_in_copy(row.source)
            partition = f"{row.topic}-{row.partition}"
            copies.setdefault(partition, []).append(CopyRead(folder, row.latest))
    return copies


def _home(claims: Iterable[Claim], copies: Mapping[str, list[CopyRead]]) -> str:
    """The partition of the offsets topic that the claims are from; empty: from none."""
    claimed = {claim.copy for claim in claims if claim.copy}
    return next((name for name, read in copies.items() if any(copy.name in claimed for copy in read)), "")
