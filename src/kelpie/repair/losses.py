"""What an unclean election would lose: what is known elsewhere, and is not in the copy that would lead.

Losses are found only where another copy was read, or an earlier commit is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Commit, Observations
from kelpie.repair.claims import Claim, claims_of, of_copies, place_in_copy, settle


@dataclass(frozen=True, slots=True)
class LostCommit:
    """A group would go back from `known` to `left` (None: to nothing)."""

    group: str
    partition: TopicPartition
    known: Claim
    left: int | None


def lost_commits(
    groups: Sequence[str], kept: Sequence[Commit], end: int, known: Observations
) -> list[LostCommit]:
    """Commits of `known` that are newer than those in the copy that would lead.

    `kept`: what could be read of that copy, up to its high watermark; `end`: where it ends. Records before
    that end are the same in every copy.
    """
    shared = [row for row in known.commits if 0 <= place_in_copy(row.source)[1] < end]
    lost = []
    for group in groups:
        ours = settle([*of_copies(shared, group), *of_copies(kept, group)])
        others = settle(claims_of(known, group))
        for partition, settled in others.items():
            stays = ours.get(partition)
            left = stays.offset if stays is not None and not stays.claim.removed else None
            newer = stays is None or _is_newer(settled.claim, stays.claim)
            if newer and settled.offset != left and not settled.claim.removed:
                lost.append(LostCommit(group, partition, settled.claim, left))
    return lost


def _is_newer(known: Claim, kept: Claim) -> bool:
    """Times of commits are of one clock. What a tool or a survey saw has a time of another: there it counts
    if it is further on.
    """
    if known.copy and kept.copy:
        return (known.at or -1) > (kept.at or -1)
    return known.offset > kept.offset


def lost_records(partition: TopicPartition, end: int, known: Observations) -> tuple[int, str]:
    """How many records beyond `end` are known to have been in the log, and from which source."""
    best, source = end, ""
    for row in known.ends:
        if row.name == partition and row.latest > best:
            best, source = row.latest, row.source
    if partition.topic != OFFSETS_TOPIC:
        # Every offset that a group has committed was in the log once.
        groups = {row.group for row in known.commits if row.name == partition}
        groups |= {row.group for row in known.committed if row.name == partition}
        for group in groups:
            for claim in claims_of(known, group):
                if claim.partition == partition and claim.offset > best:
                    best, source = claim.offset, f"a commit, {claim.source}"
    return best - end, source
