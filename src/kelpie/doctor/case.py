"""What a rule looks at: one group and all that is known of it, on the cluster as far as it could be seen.

A case is a value. Rules take nothing else: what is not in it is unknown to them. Tuples are ordered by time;
rows without a time come first. The same case comes from a live survey, from files, and from tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    Broker,
    Commit,
    Committed,
    CoordinatorAnswer,
    Event,
    Generation,
    GroupRemoved,
    GroupState,
    LogEnds,
    OpenTransaction,
    PartitionView,
    Unasked,
)


@dataclass(frozen=True)
class ClusterView:
    """The cluster that all cases share. `now` is when it was looked at: the end of what is known."""

    now: Instant
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    """Every broker that is known or named anywhere; `alive` is worked out of everything that was seen."""
    views: Mapping[TopicPartition, tuple[PartitionView, ...]] = field(default_factory=dict)
    """The newest view of each one who told, for each partition."""
    offsets_partitions: int | None = None
    """How many partitions the offsets topic has. None: nobody could say. 0: there is no such topic."""
    ends: Mapping[TopicPartition, tuple[LogEnds, ...]] = field(default_factory=dict)
    """By time: the last one is the newest."""
    transactions: Mapping[TopicPartition, tuple[OpenTransaction, ...]] = field(default_factory=dict)
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(of, name) → value; see observations.Setting."""
    events: tuple[Event, ...] = ()
    """What is said of brokers and partitions rather than of one group."""
    unasked: tuple[Unasked, ...] = ()
    listing_complete: bool = False
    """Whether every broker that could coordinate something has listed its groups."""
    bootstrap: str = ""
    """What to put after -b in commands; empty when there is no cluster to ask."""

    def view(self, partition: TopicPartition) -> PartitionView | None:
        """The view that counts: of the broker that knows best, that is with the highest leader epoch."""
        views = self.views.get(partition, ())
        return max(views, key=lambda it: (it.leader_epoch, it.at or 0), default=None)

    def is_alive(self, node_id: int) -> bool | None:
        broker = self.brokers.get(node_id)
        return None if broker is None else broker.alive

    def has_leader(self, partition: TopicPartition) -> bool | None:
        """Whether a living broker leads it. None: nobody can say."""
        view = self.view(partition)
        if view is None:
            return None
        return False if view.leader < 0 else self.is_alive(view.leader)

    def setting(self, name: str, of: str = "broker", default: str | None = None) -> str | None:
        return self.settings.get((of, name), default)

    def broker_name(self, node_id: int) -> str:
        return str(self.brokers.get(node_id) or Broker(node_id))


@dataclass(frozen=True)
class Case:
    """One group."""

    group: str
    cluster: ClusterView
    known_from: tuple[str, ...] = ()
    """Where this group is known from: "listed by broker 1", "an earlier survey", "clients/app.log" …"""
    listed: bool | None = None
    """Whether a broker lists it now. None: nobody could be asked who would know."""
    answers: tuple[CoordinatorAnswer, ...] = ()
    states: tuple[GroupState, ...] = ()
    generations: tuple[Generation, ...] = ()
    removals: tuple[GroupRemoved, ...] = ()
    commits: Mapping[TopicPartition, tuple[Commit, ...]] = field(default_factory=dict)
    """The history in the offsets topic, as far back as it was read."""
    committed: Mapping[TopicPartition, Committed] = field(default_factory=dict)
    """What the coordinator says now, or the newest commit of the history when it cannot be asked."""
    events: tuple[Event, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    history_from: Instant | None = None
    """Since when commits and generations are known. None: the offsets topic was not read."""

    @cached_property
    def offsets_partition(self) -> TopicPartition | None:
        """Where the group lives. None: nobody knows how many partitions the offsets topic has."""
        count = self.cluster.offsets_partitions
        return TopicPartition(OFFSETS_TOPIC, partition_for(self.group, count)) if count else None

    @property
    def state(self) -> GroupState | None:
        """As it was described last."""
        return self.states[-1] if self.states else None
