"""The task of the leader of a classic group: assign the partitions to the members."""

from dataclasses import dataclass

from kelpie.assignors import ASSIGNORS, MemberSubscription, assignment, member_of
from kelpie.questions.join_group import Joined
from kelpie.wire.malformed import Malformed


@dataclass(frozen=True, slots=True)
class LeaderTask:
    """The members with their subscriptions, and the topics that the leader must know."""

    protocol: str
    members: tuple[MemberSubscription, ...]
    topics: frozenset[str]

    @classmethod
    def of(cls, joined: Joined) -> "LeaderTask":
        protocol = joined.protocol or ""
        members = []
        for row in joined.members:
            try:
                members.append(member_of(protocol, row.member_id, row.instance_id, row.subscription))
            except Malformed:
                # The subscription of this member cannot be read: it gets no partitions, and the others go on.
                members.append(MemberSubscription(row.member_id, (), row.instance_id))
        topics = frozenset(topic for member in members for topic in member.topics)
        return cls(protocol, tuple(members), topics)

    def done(self, partition_counts: dict[str, int]) -> tuple[tuple[str, bytes], ...]:
        """The assignment of each member."""
        plan = ASSIGNORS[self.protocol].assign(self.members, partition_counts)
        return tuple((member_id, assignment(partitions)) for member_id, partitions in plan.items())
