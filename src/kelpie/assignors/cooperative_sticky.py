"""cooperative-sticky: sticky's target, reached in two rebalances, so that no member stops reading (KIP-429).

Members keep what they own while they join. A partition that is to change hands is given to no member in this
round: its owner sees that it is no longer its own, gives it up and joins again; the next round gives it to
the new owner.
"""

import struct
from collections.abc import Sequence

from kelpie.assignors import balance, claims
from kelpie.assignors.members import NO_GENERATION, MemberSubscription, PartitionCounts, Plan

_GENERATION = struct.Struct(">i")


def assign(members: Sequence[MemberSubscription], counts: PartitionCounts) -> Plan:
    settled = claims.settle(members, counts)
    plan = balance.target(members, counts, settled)
    return {
        member_id: [
            partition
            for partition in partitions
            if settled.owner.get(partition) == member_id
            or not settled.claimed_by.get(partition, set()) - {member_id}
        ]
        for member_id, partitions in plan.items()
    }


def user_data(generation: int) -> bytes:
    """The generation, for leaders older than version 2 of the subscription, which has a field for it."""
    return _GENERATION.pack(generation)


def generation_in(blob: bytes | None) -> int:
    if blob is None or len(blob) < _GENERATION.size:
        return NO_GENERATION
    generation: int = _GENERATION.unpack_from(blob)[0]
    return generation
