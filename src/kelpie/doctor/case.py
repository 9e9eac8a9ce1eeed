"""What a rule looks at: one group and all that is known of it, on the cluster as far as it could be seen.

A case is a value. Rules take nothing else: what is not in it is unknown to them. Tuples are ordered by time;
rows without a time come first. The same case comes from a live survey, from files, and from tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kelpie.cluster.view import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import (
    Commit,
    Committed,
    CoordinatorAnswer,
    Event,
    Generation,
    GroupRemoved,
    GroupState,
    Unasked,
)
from kelpie.observations.groups import ZOOKEEPER


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
    committed_over_time: Mapping[TopicPartition, tuple[Committed, ...]] = field(default_factory=dict)
    """What the coordinator said in this survey and in earlier ones, by time."""
    events: tuple[Event, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    history_from: Instant | None = None
    """Since when commits and generations are known. None: the offsets topic was not read."""

    @cached_property
    def offsets_partition(self) -> TopicPartition | None:
        """Where it lives. None: in ZooKeeper, or nobody knows how many partitions the offsets topic has."""
        if self.states and all(state.kind == ZOOKEEPER for state in self.states):
            return None
        return self.cluster.home_of(self.group)

    @property
    def state(self) -> GroupState | None:
        """As it was described last."""
        return self.states[-1] if self.states else None
