"""range: each topic for itself is cut into consecutive pieces, the longer ones for the first members.

Of P partitions and C members that read the topic, each gets P ÷ C, and the first P mod C one more. The first
members get the larger piece of every topic, so with many small topics the last ones may get nothing.
Follows Kafka 4's RangeAssignor for members without a rack.
"""

from collections.abc import Sequence

from kelpie.assignors.members import MemberSubscription, PartitionCounts, Plan, in_order, subscribers
from kelpie.model.names import TopicPartition


def assign(members: Sequence[MemberSubscription], counts: PartitionCounts) -> Plan:
    plan: Plan = {member.member_id: [] for member in members}
    for topic, readers in subscribers(in_order(members), counts).items():
        share, extra = divmod(counts[topic], len(readers))
        for at, reader in enumerate(readers):
            start = share * at + min(at, extra)
            stop = start + share + (at < extra)
            plan[reader.member_id] += (TopicPartition(topic, number) for number in range(start, stop))
    return plan
