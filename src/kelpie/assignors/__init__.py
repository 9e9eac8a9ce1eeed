"""Kafka's client-side assignors, as pure functions: they decide which member reads which partition.

    plan = ASSIGNORS["range"].assign(members, {"orders": 6})      # member id -> partitions

`MemberSubscription` is a member as its subscription describes it (`member_of` reads one from a JoinGroup
answer); `subscription` and `assignment` write the blobs of JoinGroup and SyncGroup. Racks are ignored, since
members of Kelpie have none.
"""

from kelpie.assignors.blobs import ASSIGNORS, assignment, member_of, subscription
from kelpie.assignors.members import MemberSubscription, Plan

__all__ = ["ASSIGNORS", "MemberSubscription", "Plan", "assignment", "member_of", "subscription"]
