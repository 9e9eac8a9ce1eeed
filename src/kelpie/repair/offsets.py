"""Where a group stood: what several sources say, and which of them is believed.

Each source makes claims: the coordinator, copies of the offsets topic (on living brokers or on disks of dead
ones), earlier surveys, a file that a person gives. For each partition one claim wins:

1. What a person gives, because it was meant.
2. What the coordinator says, because it is the truth while it can be asked.
3. Else the newest claim. Within one copy the later record is newer, whatever its time says; between copies
   and surveys the time decides.

The winner says how sure it is, and why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed
from kelpie.observations.positions import NO_OFFSET


class Kind(IntEnum):
    """Who makes a claim. The higher one is believed; equals are compared by time."""

    SEEN = 0
    """A copy of the offsets topic, or an earlier survey: true at its time."""
    COORDINATOR = 1
    GIVEN = 2


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of the group's partition of the offsets topic that was read: which one, and up to where."""

    name: str
    end: int


class Sure(IntEnum):
    DATED = 0
    """True once; there may have been commits since."""
    LIKELY = 1
    """The newest that is in the copies that were read."""
    CERTAIN = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Claim:
    """What one source says that a group has committed of one partition."""

    partition: TopicPartition
    offset: int
    """NO_OFFSET: nothing any more; it was removed."""
    source: str
    at: Instant | None = None
    kind: Kind = Kind.SEEN
    copy: str = ""
    """Which copy of the offsets topic it is from; empty when it is from none."""
    record: int = -1
    """The offset of its record in the offsets topic."""
    leader_epoch: int = -1
    metadata: str = ""

    @property
    def removed(self) -> bool:
        return self.offset == NO_OFFSET


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a group stood in one partition, and how sure that is."""

    claim: Claim
    sure: Sure
    why: str
    others: tuple[Claim, ...] = ()
    """What the other sources say, if it is something else."""

    @property
    def partition(self) -> TopicPartition:
        return self.claim.partition

    @property
    def offset(self) -> int:
        return self.claim.offset


def of_copies(commits: Iterable[Commit], group: str, *, removals: bool = True) -> list[Claim]:
    """The last word of each copy on each partition. Rows are in the order of the log, copy by copy.

    Without `removals`: the last commit, whether it was removed since or not.
    """
    last: dict[tuple[str, TopicPartition], Claim] = {}
    for commit in commits:
        if commit.group != group or (commit.removed and not removals):
            continue
        copy, record = place_of(commit.source)
        before = last.get((copy, commit.name))
        # A tombstone of an old release has no time, and is not older than what it removes.
        at = commit.at if commit.at is not None else before.at if before is not None else None
        last[copy, commit.name] = Claim(
            commit.name,
            commit.offset,
            commit.source,
            at,
            copy=copy,
            record=record,
            leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
        )
    return list(last.values())


def of_surveys(rows: Iterable[Committed], group: str) -> list[Claim]:
    """What coordinators told earlier surveys; the newest of each partition."""
    last: dict[TopicPartition, Claim] = {}
    for row in rows:
        if row.group != group or row.error or row.offset == NO_OFFSET:
            continue
        before = last.get(row.name)
        if before is None or (before.at or 0) <= (row.at or 0):
            last[row.name] = Claim(
                row.name,
                row.offset,
                row.source,
                row.at,
                leader_epoch=row.leader_epoch,
                metadata=row.metadata,
            )
    return list(last.values())


def place_of(source: str) -> tuple[str, int]:
    """Which copy of the offsets topic a row is from (a folder, or who was asked), and where in it."""
    place, _, record = source.rpartition("@")
    place = place or source
    return place.rpartition("/")[0] or place, int(record) if record.isdigit() else -1


def settle(
    claims: Sequence[Claim], copies: Sequence[Copy] = (), *, replicas: int | None = None
) -> dict[TopicPartition, Standing]:
    """For each partition the claim that is believed.

    `copies`: those that were read; a record that several hold is claimed by one of them. `replicas`: how many
    copies there are in all, if that is known.
    """
    by_partition: dict[TopicPartition, list[Claim]] = {}
    for claim in claims:
        by_partition.setdefault(claim.partition, []).append(claim)
    found = {}
    for partition, made in sorted(by_partition.items()):
        # Of equals the later one in the list wins: max keeps the first, hence the turn.
        best = max(reversed(made), key=lambda it: (it.kind, it.at if it.at is not None else -1))
        others = tuple(it for it in made if it is not best and it.offset != best.offset)
        found[partition] = Standing(best, *_trust(best, copies, replicas), others)
    return found


def carried(standings: Mapping[TopicPartition, Standing]) -> list[Standing]:
    """Those that have an offset to carry over."""
    return [it for it in standings.values() if not it.claim.removed]


def _trust(best: Claim, copies: Sequence[Copy], replicas: int | None) -> tuple[Sure, str]:
    if best.kind is Kind.GIVEN:
        return Sure.CERTAIN, "as given"
    if best.kind is Kind.COORDINATOR:
        return Sure.CERTAIN, "its coordinator says so"
    if not best.copy:
        return Sure.DATED, "an earlier survey saw it; there may have been commits since"
    if replicas is not None and len(copies) >= replicas:
        return Sure.CERTAIN, "the only copy was read" if replicas == 1 else f"all {replicas} copies were read"
    holders = sum(best.record < copy.end for copy in copies)
    if holders > 1:
        return Sure.LIKELY, f"{holders} copies have it, and none has a newer one"
    if len(copies) > 1:
        return Sure.LIKELY, f"the newest in {len(copies)} copies"
    return Sure.LIKELY, "the newest in the one copy that was read"
