"""The offsets that a group had committed: what several sources claim, and which claim is believed.

Each source makes claims: the coordinator, copies of the offsets topic (on living brokers or on disks of dead
ones), earlier surveys, a file that a person gives. For each partition one claim wins:

1. The one that a person gives, because it is meant.
2. The one of the coordinator, because that is the truth while the coordinator answers.
3. Else the newest. Within one copy the later record is newer, whatever its time says; between copies the
   time of the commit decides, which the coordinator's clock gave, and of surveys the time of the survey.
4. A commit in a copy and an offset that a survey saw have times of two clocks, which are never compared:
   whatever differs between them may be the clocks. A copy that holds the offset of the survey as well,
   before its last commit, is newer by the order of its log; so are the copies if all of them were read.
   Else, where they disagree, the lower offset is taken, so that records are read again rather than skipped,
   and the settled offset says so.

The settled offset says how certain it is, and why.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from kelpie.model.names import TopicPartition
from kelpie.model.numbers import whole_number
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, Observations
from kelpie.observations.positions import NO_OFFSET


class ClaimKind(IntEnum):
    """Who makes a claim. The highest kind is believed; claims of one kind are compared by time."""

    SEEN = 0
    """A copy of the offsets topic, or an earlier survey: true at its time."""
    COORDINATOR = 1
    GIVEN = 2


@dataclass(frozen=True, slots=True)
class CopyRead:
    """A copy of the group's partition of the offsets topic that was read, and up to where."""

    name: str
    end: int


class Certainty(IntEnum):
    DATED = 0
    """True once; there may have been commits since."""
    LIKELY = 1
    """The newest commit in the copies that were read."""
    CERTAIN = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Claim:
    """What one source says that a group has committed of one partition."""

    partition: TopicPartition
    offset: int
    """NO_OFFSET: the commit was removed."""
    source: str
    at: Instant | None = None
    kind: ClaimKind = ClaimKind.SEEN
    copy: str = ""
    """The copy of the offsets topic that has it; empty if it is from another source."""
    record: int = -1
    """The offset of its record in the offsets topic."""
    leader_epoch: int = -1
    metadata: str = ""
    earlier: frozenset[int] = frozenset()
    """The offsets that the same copy holds before this one."""

    @property
    def removed(self) -> bool:
        return self.offset == NO_OFFSET

    @classmethod
    def of_row(cls, row: Commit | Committed, at: Instant | None, **more: Any) -> "Claim":
        epoch, metadata = row.leader_epoch, row.metadata
        return cls(row.name, row.offset, row.source, at, leader_epoch=epoch, metadata=metadata, **more)


@dataclass(frozen=True, slots=True)
class SettledOffset:
    """The claim that is believed for one partition, and how certain it is."""

    claim: Claim
    certainty: Certainty
    why: str

    @property
    def partition(self) -> TopicPartition:
        return self.claim.partition

    @property
    def offset(self) -> int:
        return self.claim.offset


def of_copies(commits: Iterable[Commit], group: str, *, removals: bool = True) -> list[Claim]:
    """The last commit of each partition in each copy. Rows are in the order of the log, copy by copy.

    Without `removals`: the last commit even if it was removed since.
    """
    last: dict[tuple[str, TopicPartition], Claim] = {}
    earlier: defaultdict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
    for commit in commits:
        if commit.group != group or (commit.removed and not removals):
            continue
        copy, record = place_in_copy(commit.source)
        before = last.get((copy, commit.name))
        # A tombstone of an old release has no time. It is not older than the commit that it removes.
        at = commit.at if commit.at is not None else before.at if before is not None else None
        if before is not None:
            earlier[copy, commit.name].add(before.offset)
        last[copy, commit.name] = Claim.of_row(commit, at, copy=copy, record=record)
    return [replace(claim, earlier=frozenset(earlier.get(key, ()))) for key, claim in last.items()]


def of_surveys(rows: Iterable[Committed], group: str) -> list[Claim]:
    """The newest offset of each partition that a coordinator gave to an earlier survey."""
    last: dict[TopicPartition, Claim] = {}
    for row in rows:
        if row.group != group or row.error or row.offset == NO_OFFSET:
            continue
        before = last.get(row.name)
        if before is None or (before.at or 0) <= (row.at or 0):
            last[row.name] = Claim.of_row(row, row.at)
    return list(last.values())


def claims_of(rows: Observations, group: str, *, removals: bool = True) -> list[Claim]:
    """All claims in rows of files or surveys."""
    return [*of_copies(rows.commits, group, removals=removals), *of_surveys(rows.committed, group)]


def place_in_copy(source: str) -> tuple[str, int]:
    """The copy of the offsets topic that a row is from (a folder, or a broker), and its place in it."""
    place, _, record = source.rpartition("@")
    place = place or source
    number = whole_number(record)
    return place.rpartition("/")[0] or place, -1 if number is None else number


def settle(
    claims: Sequence[Claim], copies: Sequence[CopyRead] = (), *, replicas: int | None = None
) -> dict[TopicPartition, SettledOffset]:
    """For each partition the claim that is believed.

    `copies`: those that were read; of a record that several hold, only one makes a claim. `replicas`: how
    many copies there are in all, if that is known.
    """
    by_partition: dict[TopicPartition, list[Claim]] = {}
    for claim in claims:
        by_partition.setdefault(claim.partition, []).append(claim)
    settled = {}
    for partition, rivals in sorted(by_partition.items()):
        # Of equal claims the last one counts. max() keeps the first, so the list is reversed.
        highest = max(claim.kind for claim in rivals)
        equals = [claim for claim in reversed(rivals) if claim.kind is highest]
        best, other = _believed(equals, all_read=replicas is not None and len(copies) >= replicas)
        certainty, why = _certainty(best, copies, replicas)
        if other is not None:
            certainty = Certainty.DATED
            why = (
                f"the lower of two: {_place(best)} says {_offset_words(best)}, {_place(other)} says "
                f"{_offset_words(other)}, and their times are of two clocks"
            )
        settled[partition] = SettledOffset(best, certainty, why)
    return settled


def _believed(rivals: Sequence[Claim], *, all_read: bool) -> tuple[Claim, Claim | None]:
    """The claim that is believed, and one of another clock that contradicts it."""
    of_copies_ = [claim for claim in rivals if claim.copy]
    of_surveys_ = [claim for claim in rivals if not claim.copy]
    newest = [
        max(claims, key=lambda claim: -1 if claim.at is None else claim.at)
        for claims in (of_copies_, of_surveys_)
        if claims
    ]
    if len(newest) == 1 or newest[0].offset == newest[1].offset:
        return newest[0], None
    by_copy, by_survey = newest
    if all_read or by_survey.offset in by_copy.earlier:
        return by_copy, None
    if by_copy.removed:
        # Whether the group went on after the removal only clocks could say. What was seen is a place.
        return by_survey, by_copy
    best, other = sorted(newest, key=lambda claim: claim.offset)
    return best, other


def _place(claim: Claim) -> str:
    return "a copy of the offsets topic" if claim.copy else "an earlier survey"


def _offset_words(claim: Claim) -> str:
    return "that the offset was removed" if claim.removed else str(claim.offset)


def _certainty(best: Claim, copies: Sequence[CopyRead], replicas: int | None) -> tuple[Certainty, str]:
    if best.kind is ClaimKind.GIVEN:
        return Certainty.CERTAIN, "as given"
    if best.kind is ClaimKind.COORDINATOR:
        return Certainty.CERTAIN, "its coordinator says so"
    if not best.copy:
        return Certainty.DATED, "an earlier survey saw it; there may have been commits since"
    if replicas is not None and len(copies) >= replicas:
        which = "the only copy was read" if replicas == 1 else f"all {replicas} copies were read"
        return Certainty.CERTAIN, which
    holders = sum(best.record < copy.end for copy in copies)
    if holders > 1:
        return Certainty.LIKELY, f"{holders} copies have it, and none has a newer one"
    if len(copies) > 1:
        return Certainty.LIKELY, f"the newest in {len(copies)} copies"
    return Certainty.LIKELY, "the newest in the one copy that was read"
