"""Who reads which partition: Kafka's client-side assignors, as pure functions.

    plan = ASSIGNORS["range"].assign(members, {"orders": 6})      # member id -> partitions

`Member` is a member as its subscription describes it (`member_of` reads that out of a JoinGroup answer),
`subscription` and `assignment` write what goes into JoinGroup and SyncGroup. Racks are not looked at: members
of Kelpie have none, and Kafka's assignors look at racks only where members have some.
"""

from kelpie.assignors.blobs import (
    ASSIGNORS,
    Assignor,
    assignment,
    member_of,
    subscription,
    topics_in,
)
from kelpie.assignors.members import NO_GENERATION, Member, PartitionCounts, Plan, in_order, java_order

__all__ = [
    "ASSIGNORS",
    "NO_GENERATION",
    "Assignor",
    "Member",
    "PartitionCounts",
    "Plan",
    "assignment",
    "in_order",
    "java_order",
    "member_of",
    "subscription",
    "topics_in",
]
