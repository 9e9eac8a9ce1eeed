"""The states of a classic group, and which may follow which (ClassicGroupState of Kafka 4).

Empty                 no members; there may be offsets
PreparingRebalance    members are to (re)join; their joins are parked
CompletingRebalance   joins are answered; syncs are parked until the leader hands in the assignment
Stable                each member has its assignment, or can ask for it
Dead                  deleted, or moved to another coordinator

Kafka 0.9 has no Empty: a new group is Stable without members, and one that loses its last member dies.
"""

from enum import Enum


class ClassicGroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_FOLLOW: dict[ClassicGroupState, frozenset[ClassicGroupState]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}
"""To: from."""

WITH_MEMBERS = frozenset(
    {ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
)
