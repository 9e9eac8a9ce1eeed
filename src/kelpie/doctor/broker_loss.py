"""What would follow if a broker died now: which groups stop, and which only move to another broker.

A group stops if its partition of the offsets topic, or one that it reads, would have no leader: the broker
leads it, and no other living broker is in sync.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelpie.cluster import ClusterView
from kelpie.cluster.health import living_in_sync
from kelpie.doctor.case import Case
from kelpie.model.names import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerLoss:
    node_id: int
    stopped: tuple[str, ...]
    """Groups without a coordinator, or with a partition that nobody leads."""
    moved: tuple[str, ...]
    """Groups that find another coordinator."""
    leaderless: tuple[TopicPartition, ...]
    """Partitions that nobody would lead."""


Needs = tuple[str, Sequence[TopicPartition]]
"""A group, and the partitions without whose leaders it stops."""


def needs(case: Case) -> Needs:
    home = case.offsets_partition
    return case.group, (*case.reads.partitions, *([home] if home is not None else []))


def broker_losses(cluster: ClusterView, groups: Iterable[Needs]) -> tuple[BrokerLoss, ...]:
    """One for each broker that is alive, by its id. Groups that lack a leader already are left out."""
    alone: dict[TopicPartition, int] = {}
    for name in cluster.views:
        view = cluster.view(name)
        if view is not None and cluster.has_leader(name) and living_in_sync(cluster, view) == [view.leader]:
            alone[name] = view.leader
    living = sorted(node for node in cluster.brokers if cluster.is_alive(node))
    stopped: dict[int, list[str]] = {node: [] for node in living}
    moved: dict[int, list[str]] = {node: [] for node in living}
    for group, needed in groups:
        if any(cluster.has_leader(name) is False for name in needed):
            continue
        nodes = {alone[name] for name in needed if name in alone}
        for node in nodes & stopped.keys():
            stopped[node].append(group)
        coordinator = cluster.coordinator_of(group)
        if coordinator in moved and coordinator not in nodes:
            moved[coordinator].append(group)
    return tuple(
        BrokerLoss(
            node,
            tuple(sorted(stopped[node])),
            tuple(sorted(moved[node])),
            tuple(sorted(name for name, leader in alone.items() if leader == node)),
        )
        for node in living
    )
