"""The health of a partition: whether a living broker leads it, and what the loss of one broker would do.

Also who may lead a partition that has no leader, and whether that loses records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

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


def is_below_min_insync(cluster: ClusterView, view: PartitionView) -> bool:
    """Whether too few replicas are in sync to take a record. False where the setting is not known."""
    needed = cluster.number("min.insync.replicas", f"topic {view.topic}")
    return needed is not None and len(not_dead_in_sync(cluster, view)) < min(needed, len(view.replicas))


def living_replicas(cluster: ClusterView, partition: TopicPartition) -> list[int]:
    """Living brokers that hold a copy, in the order of the replicas."""
    view = cluster.view(partition)
    return [node for node in view.replicas if cluster.is_alive(node)] if view is not None else []


UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class Succession:
    """Which replicas may lead a partition that has no leader, and which of them lose nothing.

    A replica is complete if it is in sync, or, in Kafka 4, eligible (KIP-966): then it has every record that
    was acknowledged. The controller elects a complete replica as soon as its broker runs and its log
    directory is online; any other one only if unclean elections are allowed, or on request.
    """

    complete: tuple[int, ...]
    """In the order of the replicas. Empty: nobody says which replicas are complete."""
    incomplete: tuple[int, ...]
    """To elect one of these is an unclean election."""
    ready: tuple[int, ...]
    """Complete, on brokers that run."""
    to_start: tuple[int, ...]
    """Complete, on brokers that are not known to run."""
    offline: tuple[int, ...]
    """Complete, on brokers that run: but their log directory is offline."""
    allows_unclean: bool
    """The controller itself elects an incomplete replica if no complete one is there."""


def succession(
    view: PartitionView, is_alive: Callable[[int], bool | None], *, allows_unclean: bool = False
) -> Succession:
    nodes = dict.fromkeys([*view.replicas, *view.in_sync, *view.eligible])
    complete = tuple(node for node in nodes if node in view.in_sync or node in view.eligible)
    living = [node for node in complete if is_alive(node)]
    return Succession(
        complete,
        tuple(node for node in nodes if node not in complete) if complete else (),
        ready=tuple(node for node in living if node not in view.offline),
        to_start=tuple(node for node in complete if not is_alive(node)),
        offline=tuple(node for node in living if node in view.offline),
        allows_unclean=allows_unclean,
    )


def succession_in(cluster: ClusterView, view: PartitionView) -> Succession:
    setting = cluster.setting(UNCLEAN, of=f"topic {view.topic}") or cluster.setting(UNCLEAN)
    return succession(view, cluster.is_alive, allows_unclean=setting == "true")
