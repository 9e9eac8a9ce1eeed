"""The members of an assignment, and their order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelpie.model.names import TopicPartition

NO_GENERATION = -1
PartitionCounts = Mapping[str, int]
"""How many partitions each topic has; a topic that is not there, or has none, is assigned to no member."""
Plan = dict[str, list[TopicPartition]]
"""What each member gets, by member id. Members that get nothing are in it too."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that it reports as its own; only sticky assignors read them."""
    generation: int = NO_GENERATION
    """The generation in which it got them."""


def java_order(text: str) -> bytes:
    """A key that sorts as Java does: by UTF-16 units. Python's own order differs above U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by instance id first, so that they keep their places through restarts (KIP-345)."""
    return sorted(members, key=_rank)


def subscribers(
    members: Sequence[MemberSubscription], counts: PartitionCounts
) -> dict[str, list[MemberSubscription]]:
    """The members that read each topic, topics in Java's order and members in the order given."""
    topics = sorted({topic for member in members for topic in member.topics}, key=java_order)
    wanted = {member.member_id: frozenset(member.topics) for member in members}
    return {
        topic: [member for member in members if topic in wanted[member.member_id]]
        for topic in topics
        if counts.get(topic, 0) > 0
    }


def _rank(member: MemberSubscription) -> tuple[bool, bytes]:
    if member.instance_id is None:
        return True, java_order(member.member_id)
    return False, java_order(member.instance_id)
