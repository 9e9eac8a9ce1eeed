"""The assignors by name, and the subscriptions and assignments that members and leader exchange as bytes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kelpie.assignors import cooperative_sticky, roundrobin, sticky
from kelpie.assignors.members import NO_GENERATION, MemberSubscription, PartitionCounts, Plan
from kelpie.assignors.range import assign as assign_ranges
from kelpie.model.names import TopicPartition
from kelpie.wire import consumer_protocol
from kelpie.wire.consumer_protocol import Subscription, partitions_of, rows_of

Assign = Callable[[Sequence[MemberSubscription], PartitionCounts], Plan]


@dataclass(frozen=True, slots=True)
class Assignor:
    name: str
    assign: Assign
    is_cooperative: bool = False
    """Whether members may keep what they own while they join."""


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_ranges),
        Assignor("roundrobin", roundrobin.assign),
        Assignor("sticky", sticky.assign),
        Assignor("cooperative-sticky", cooperative_sticky.assign, is_cooperative=True),
    )
}


def subscription(
    name: str,
    topics: Sequence[str],
    owned: Sequence[TopicPartition],
    generation: int,
    remembered: Sequence[TopicPartition] = (),
    *,
    remembered_in: int = NO_GENERATION,
) -> bytes:
    """The subscription of a member for the assignor of this name.

    `owned`: the partitions that it holds now. `remembered`: those that it got in generation `remembered_in`;
    an eager member has given them up already.
    """
    user_data: bytes | None = None
    if name == "sticky":
        user_data = sticky.user_data(remembered, remembered_in)
    elif name == "cooperative-sticky":
        user_data = cooperative_sticky.user_data(remembered_in)
    message = Subscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=rows_of(sorted(owned)),
        generation_id=generation,
    )
    return consumer_protocol.encode(message, consumer_protocol.NEWEST)


def member_of(name: str, member_id: str, instance_id: str | None, blob: bytes) -> MemberSubscription:
    """A member as the assignor of this name sees it. Raises Malformed."""
    version, read = consumer_protocol.decode_subscription(blob)
    owned = tuple(partitions_of(read.owned_partitions))
    generation = read.generation_id
    if name == "sticky":
        owned, generation = sticky.previous(read.user_data)
    elif name == "cooperative-sticky" and (version < 2 or generation < 0):
        generation = cooperative_sticky.generation_in(read.user_data)
    return MemberSubscription(member_id, tuple(read.topics), instance_id, owned, generation)


def assignment(partitions: Iterable[TopicPartition]) -> bytes:
    message = consumer_protocol.Assignment(assigned_partitions=rows_of(sorted(partitions)))
    return consumer_protocol.encode(message, consumer_protocol.NEWEST)
