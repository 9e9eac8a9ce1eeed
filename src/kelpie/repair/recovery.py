"""What every group had committed last, as far as disks, the offsets topic, tools or tables tell.

For each partition the claims of all copies of the offsets topic and of all descriptions are settled as the
repairs settle them (see `claims`): the newest counts, and says how certain it is, and why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Commit, Committed, Observations
from kelpie.repair.claims import Certainty, Claim, CopyRead, of_copies, of_surveys, place_in_copy, settle


@dataclass(frozen=True, slots=True)
class Recovered:
    """The last committed offset of a group in one partition."""

    group: str
    topic: str
    partition: int
    offset: int
    at: Instant | None
    """The commit's own time."""
    source: str
    certainty: Certainty
    why: str


def recover(
    observations: Observations, *, groups: Iterable[str] | None = None, at: Instant | None = None
) -> Iterator[Recovered]:
    """By group, topic and partition. `at`: as it was at that time; without it, the last that is known.

    A committed offset that was removed is left out, unless it was removed after `at`.
    """
    commits: dict[str, list[Commit]] = {}
    for commit in observations.commits:
        if at is None or (commit.at is not None and commit.at <= at):
            commits.setdefault(commit.group, []).append(commit)
    described: dict[str, list[Committed]] = {}
    for row in observations.committed:
        if at is None or (row.at is not None and row.at <= at):
            described.setdefault(row.group, []).append(row)
    copies = _copies(observations)
    replicas = {
        str(view.name): len(view.replicas) for view in observations.partitions if view.topic == OFFSETS_TOPIC
    }
    wanted = sorted({*commits, *described}) if groups is None else sorted(set(groups))
    for group in wanted:
        claims = [*of_surveys(described.get(group, ()), group), *of_copies(commits.get(group, ()), group)]
        home = _home(claims, copies)
        settled = settle(claims, copies.get(home, ()), replicas=replicas.get(home))
        for name, standing in sorted(settled.items()):
            if not standing.claim.removed:
                yield Recovered(
                    group,
                    name.topic,
                    name.partition,
                    standing.offset,
                    standing.claim.at,
                    standing.claim.source,
                    standing.certainty,
                    standing.why,
                )


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
