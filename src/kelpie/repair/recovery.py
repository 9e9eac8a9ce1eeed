"""What every group had committed last, as far as any disk, topic, tool or table tells.

For each position the claims of all copies of the offsets topic and of all descriptions are settled as the
repairs settle them (`offsets`): the newest counts, and says how sure it is, and why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Commit, Committed, Observations
from kelpie.repair.offsets import Claim, Copy, Sure, of_copies, of_surveys, place_of, settle


@dataclass(frozen=True, slots=True)
class Recovered:
    """The last committed offset of one position."""

    group: str
    topic: str
    partition: int
    offset: int
    at: Instant | None
    """The commit's own time."""
    source: str
    sure: Sure
    why: str


def recover(
    observations: Observations, *, groups: Iterable[str] | None = None, at: Instant | None = None
) -> Iterator[Recovered]:
    """By group, topic and partition. `at`: as it was then; without it, the last that is known.

    A committed offset that was removed is no more, unless `at` is before.
    """
    commits: dict[str, list[Commit]] = {}
    for commit in observations.commits:
        if at is None or (commit.at is not None and commit.at <= at):
            commits.setdefault(commit.group, []).append(commit)
    told: dict[str, list[Committed]] = {}
    for row in observations.committed:
        if at is None or (row.at is not None and row.at <= at):
            told.setdefault(row.group, []).append(row)
    copies = _copies(observations)
    replicas = {
        str(view.name): len(view.replicas) for view in observations.partitions if view.topic == OFFSETS_TOPIC
    }
    wanted = sorted({*commits, *told}) if groups is None else sorted(set(groups))
    for group in wanted:
        claims = [*of_surveys(told.get(group, ()), group), *of_copies(commits.get(group, ()), group)]
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
                    standing.sure,
                    standing.why,
                )


def _copies(observations: Observations) -> dict[str, list[Copy]]:
    """Copies of partitions of the offsets topic that were read, by the name of their folder."""
    found: dict[str, list[Copy]] = {}
    for row in observations.ends:
        if row.topic == OFFSETS_TOPIC:
            folder, _ = place_of(row.source)
            partition = f"{row.topic}-{row.partition}"
            found.setdefault(partition, []).append(Copy(folder, row.latest))
    return found


def _home(claims: Iterable[Claim], copies: Mapping[str, list[Copy]]) -> str:
    """The partition of the offsets topic that the claims are from; empty: from none."""
    mine = {claim.copy for claim in claims if claim.copy}
    return next((name for name, own in copies.items() if any(it.name in mine for it in own)), "")
