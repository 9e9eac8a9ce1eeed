"""sticky: even to one partition, and a member keeps the partitions that it had, if possible (KIP-54).

Members give up everything before they join (eager), so what they had travels in the user data of their
subscription: the partitions, and since 2.3 the generation in which they got them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kelpie.assignors import balance, claims
from kelpie.assignors.members import NO_GENERATION, MemberSubscription, PartitionCounts, Plan
from kelpie.model.names import TopicPartition
from kelpie.wire import compiler
from kelpie.wire.consumer_protocol import partitions_of, rows_of
from kelpie.wire.malformed import Malformed
from kelpie.wire.schema import Int32, data, field
from kelpie.wire.structs import TopicPartitions


@data(versions="0-1")
class StickyUserData:
    previous_assignment: list[TopicPartitions]
    generation: Int32 = field("1+", default=NO_GENERATION)


def assign(members: Sequence[MemberSubscription], counts: PartitionCounts) -> Plan:
    return balance.target(members, counts, claims.settle(members, counts))


def user_data(owned: Sequence[TopicPartition], generation: int) -> bytes | None:
    if not owned:
        return None
    return compiler.encode(StickyUserData(previous_assignment=rows_of(owned), generation=generation), 1)


def previous(blob: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """The partitions that a member had, and in which generation. Unreadable bytes count as none."""
    for version in (1, 0) if blob else ():
        try:
            read = compiler.decode(StickyUserData, version, blob or b"")
        except Malformed:
            continue
        return tuple(partitions_of(read.previous_assignment)), read.generation
    return (), NO_GENERATION
