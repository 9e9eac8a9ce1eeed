"""Which member owns which partition now. Members report what they own, and may be wrong or late.

The claim of the later generation wins. Two claims of the same generation cannot both be true, so neither
counts: the partition is given anew. A claim counts only while the member reads the topic and the partition
exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.assignors.members import MemberSubscription, PartitionCounts
from kelpie.model.names import TopicPartition


@dataclass(frozen=True, slots=True)
class Claims:
    owner: dict[TopicPartition, str]
    """The owner of each partition whose owner is certain."""
    claimed_by: dict[TopicPartition, set[str]]
    """All members that report the partition as their own, rightly or not."""


def settle(members: Sequence[MemberSubscription], counts: PartitionCounts) -> Claims:
    owner: dict[TopicPartition, str] = {}
    claimed_by: dict[TopicPartition, set[str]] = {}
    best: dict[TopicPartition, int] = {}
    for member in members:
        topics = frozenset(member.topics)
        for partition in dict.fromkeys(member.owned):
            claimed_by.setdefault(partition, set()).add(member.member_id)
            if partition.topic not in topics or not 0 <= partition.partition < counts.get(partition.topic, 0):
                continue
            before = best.get(partition)
            if before is None or member.generation > before:
                best[partition] = member.generation
                owner[partition] = member.member_id
            elif member.generation == before:
                owner.pop(partition, None)
    return Claims(owner, claimed_by)
