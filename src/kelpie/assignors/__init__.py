"""Kafka's client-side assignors, as pure functions: they decide which member reads which partition.

    plan = ASSIGNORS["range"].assign(members, {"orders": 6})      # member id -> partitions

`MemberSubscription` is a member as its subscription describes it (`member_of` reads one from a JoinGroup
answer); `subscription` and `assignment` write the blobs of JoinGroup and SyncGroup. Racks are ignored, since
members of Kelpie have none.
"""

from kelpie.assignors.blobs import (
    ASSIGNORS,
    Assignor,
    assignment,
    member_of,
    subscription,
)
from kelpie.assignors.members import (
    NO_GENERATION,
    MemberSubscription,
    PartitionCounts,
    Plan,
    in_order,
    java_order,
)

__all__ = [
    "ASSIGNORS",
    "NO_GENERATION",
    "Assignor",
    "MemberSubscription",
    "PartitionCounts",
    "Plan",
    "assignment",
    "in_order",
    "java_order",
    "member_of",
    "subscription",
]
