"""roundrobin: all partitions of all topics are dealt out in turn, past members that do not read the topic.

The deal goes on where it stopped when the topic changes. Follows Kafka 4's RoundRobinAssignor.
"""

from collections.abc import Sequence

from kelpie.assignors.members import MemberSubscription, PartitionCounts, Plan, in_order, subscribers
from kelpie.model.names import TopicPartition


def assign(members: Sequence[MemberSubscription], counts: PartitionCounts) -> Plan:
    plan: Plan = {member.member_id: [] for member in members}
    circle = in_order(members)
    at = 0
    for topic, readers in subscribers(circle, counts).items():
        reading = {reader.member_id for reader in readers}
        for number in range(counts[topic]):
            while circle[at].member_id not in reading:
                at = (at + 1) % len(circle)
            plan[circle[at].member_id].append(TopicPartition(topic, number))
            at = (at + 1) % len(circle)
    return plan
