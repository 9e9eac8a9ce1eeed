"""What an unclean election would cost: what is known elsewhere, and not in the copy that would lead.

It can only be told as far as other copies were read, or earlier commits are known. What nobody has seen is
not missed here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, Commit, Observations
from kelpie.repair.offsets import Claim, of_copies, of_surveys, place_of, settle


@dataclass(frozen=True, slots=True)
class LostCommit:
    """A group would go back from `known` to `left` (None: to nothing)."""

    group: str
    partition: TopicPartition
    known: Claim
    left: int | None


def groups_on(partition: TopicPartition, count: int, *rows: Iterable[str]) -> list[str]:
    """Of these groups, those that live on a partition of the offsets topic."""
    return sorted(
        {group for names in rows for group in names if partition_for(group, count) == partition.partition}
    )


def lost_commits(
    groups: Sequence[str], kept: Sequence[Commit], end: int, known: Observations
) -> list[LostCommit]:
    """Commits that `known` has newer than the copy that stays.

    `kept`: what could be read of that copy, which tells nothing beyond its high watermark; `end`: where it
    ends. Records before that end are the same in every copy.
    """
    shared = [row for row in known.commits if 0 <= place_of(row.source)[1] < end]
    found = []
    for group in groups:
        ours = settle([*of_copies(shared, group), *of_copies(kept, group)])
        others = settle([*of_copies(known.commits, group), *of_surveys(known.committed, group)])
        for partition, standing in others.items():
            stays = ours.get(partition)
            left = stays.offset if stays is not None and not stays.claim.removed else None
            newer = stays is None or (standing.claim.at or -1) > (stays.claim.at or -1)
            if newer and standing.offset != left and not standing.claim.removed:
                found.append(LostCommit(group, partition, standing.claim, left))
    return found


def lost_records(partition: TopicPartition, end: int, known: Observations) -> tuple[int, str]:
    """How many records beyond `end` are known to have been there, and who says so. 0: of none."""
    best, source = end, ""
    for row in known.ends:
        if row.name == partition and row.latest > best:
            best, source = row.latest, row.source
    if partition.topic != OFFSETS_TOPIC:
        for claim in _committed(partition, known):
            if claim.offset > best:
                best, source = claim.offset, f"a commit, {claim.source}"
    return best - end, source


def _committed(partition: TopicPartition, known: Observations) -> Iterable[Claim]:
    """Whatever a group has committed was in the log once."""
    groups = {row.group for row in known.commits if row.name == partition}
    groups |= {row.group for row in known.committed if row.name == partition}
    for group in groups:
        for claim in (*of_copies(known.commits, group), *of_surveys(known.committed, group)):
            if claim.partition == partition:
                yield claim
