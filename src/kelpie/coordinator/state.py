"""The states of a classic group, and which may follow which (ClassicGroupState of Kafka 4).

Empty                 no members; there may be offsets
PreparingRebalance    members are to (re)join; their joins are parked
CompletingRebalance   joins are answered; syncs are parked until the leader hands in the assignment
Stable                everyone has, or can fetch, its assignment
Dead                  gone, or gone to another coordinator

Kafka 0.9 has no Empty: a new group is Stable without members, and one that loses its last member dies.
"""

from enum import Enum


class State(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_FOLLOW: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
    State.PREPARING_REBALANCE: frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE}),
    State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    State.DEAD: frozenset(State),
}
"""To: from."""

WITH_MEMBERS = frozenset({State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE})
