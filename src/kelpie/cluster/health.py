"""The health of a partition: whether a living broker leads it, and what the loss of one broker would do.

Also who may lead a partition that has no leader, and whether that loses records.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kelpie.cluster.view import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.observations import PartitionView


class Health(IntEnum):
    """The higher, the better."""

    NO_LEADER = 0
    LEADER_DEAD = 1
    """Kafka 0.9 goes on naming a leader that is dead."""
    UNKNOWN = 2
    """Nobody describes the partition, or nobody can say whether its leader is alive."""
    AT_RISK = 3
    """A living broker leads it, and no other is in sync."""
    LIKELY_SAFE = 4
    """Another broker is in sync, but nobody can say whether that one is alive."""
    SAFE = 5
    """It keeps a leader if any one broker dies."""

    @property
    def is_led(self) -> bool:
        """Whether a living broker leads it."""
        return self >= Health.AT_RISK


def health_of(cluster: ClusterView, partition: TopicPartition) -> Health:
    view, has_leader = cluster.view(partition), cluster.has_leader(partition)
    if view is None or has_leader is None:
        return Health.UNKNOWN
    if not has_leader:
        return Health.NO_LEADER if view.leader < 0 else Health.LEADER_DEAD
    if len(living_in_sync(cluster, view)) > 1:
        return Health.SAFE
    return Health.LIKELY_SAFE if len(not_dead_in_sync(cluster, view)) > 1 else Health.AT_RISK


def living_in_sync(cluster: ClusterView, view: PartitionView) -> list[int]:
    """In-sync replicas on brokers that are known to be alive."""
    return [node for node in view.in_sync if cluster.is_alive(node)]


def not_dead_in_sync(cluster: ClusterView, view: PartitionView) -> list[int]:
    """In-sync replicas on brokers that are alive, or of which nobody can say whether they are."""
    return [node for node in view.in_sync if cluster.is_alive(node) is not False]


def living_replicas(cluster: ClusterView, partition: TopicPartition) -> list[int]:
    """Living brokers that hold a copy, in the order of the replicas."""
    view = cluster.view(partition)
    return [node for node in view.replicas if cluster.is_alive(node)] if view is not None else []


class Electable(NamedTuple):
    """Which replicas of a partition without a leader may lead it again, and lose nothing."""

    in_sync: tuple[int, ...]
    eligible: tuple[int, ...]
    """Out of sync, and still complete: the eligible leader replicas of Kafka 4 (KIP-966)."""
    complete: tuple[int, ...]
    """Both kinds, in the order of the replicas. To elect any other replica is an unclean election."""


def electable(view: PartitionView, nodes: Sequence[int]) -> Electable:
    """Of these brokers."""
    return Electable(
        tuple(node for node in nodes if node in view.in_sync),
        tuple(node for node in nodes if node in view.eligible),
        tuple(node for node in nodes if node in view.in_sync or node in view.eligible),
    )
