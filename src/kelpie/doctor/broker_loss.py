"""What would follow if a broker died now: which groups stop, and which only move to another broker.

A group stops if its partition of the offsets topic, or one that it reads, would have no leader: the broker
leads it, and no other living broker is in sync.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

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


class Needs(NamedTuple):
    """Groups, and the partitions without whose leaders they stop."""

    groups: list[str]
    reads: tuple[TopicPartition, ...]
    home: TopicPartition | None
    """Their partition of the offsets topic. None: they are in ZooKeeper, or nobody could say."""


class NeedsOfGroups:
    """Groups by what they need: thousands read the same, and share what follows from it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Needs] = {}
        """By identity: to compare for each group what it reads would take longer than all else."""

    def add(self, group: str, reads: tuple[TopicPartition, ...], home: TopicPartition | None) -> None:
        known = self._known.get((id(reads), id(home)))
        if known is None:
            self._known[id(reads), id(home)] = Needs([group], reads, home)
        else:
            known.groups.append(group)

    @property
    def all(self) -> list[Needs]:
        return list(self._known.values())


def needs_of(cases: Iterable[Case]) -> list[Needs]:
    needed = NeedsOfGroups()
    for case in cases:
        needed.add(case.group, case.reads.partitions, case.offsets_partition)
    return needed.all


def broker_losses(cluster: ClusterView, needed: Iterable[Needs]) -> tuple[BrokerLoss, ...]:
    """One for each broker that is alive, by its id. Groups that lack a leader already are left out."""
    alone: dict[TopicPartition, int] = {}
    for name in cluster.views:
        view = cluster.view(name)
        if view is not None and cluster.has_leader(name) and living_in_sync(cluster, view) == [view.leader]:
            alone[name] = view.leader
    living = sorted(node for node in cluster.brokers if cluster.is_alive(node))
    stopped: dict[int, list[str]] = {node: [] for node in living}
    moved: dict[int, list[str]] = {node: [] for node in living}
    for groups, reads, home in needed:
        names = reads if home is None else (*reads, home)
        if any(cluster.has_leader(name) is False for name in names):
            continue
        nodes = {alone[name] for name in names if name in alone}
        for node in nodes & stopped.keys():
            stopped[node] += groups
        coordinator = cluster.leader_of(home) if home is not None else None
        if coordinator in moved and coordinator not in nodes:
            moved[coordinator] += groups
    return tuple(
        BrokerLoss(
            node,
            tuple(sorted(stopped[node])),
            tuple(sorted(moved[node])),
            tuple(sorted(name for name, leader in alone.items() if leader == node)),
        )
        for node in living
    )
