"""The picture of a cluster at one time, as far as it is known."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from kelpie.cluster.clocks import Skew
from kelpie.cluster.failovers import moved_partitions, unsettled_brokers
from kelpie.cluster.log_ends import ends_over_time
from kelpie.cluster.mappings import MappingHistory, mapping_history
from kelpie.cluster.outages import Outage
from kelpie.cluster.topics import NO_TOPICS, Existence, Topics
from kelpie.cluster.traffic import TrafficHistory, traffic_history
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    BrokerView,
    Certificate,
    Event,
    EventKind,
    LeaderEpochEnd,
    LogEnds,
    LogSize,
    MalformedSeries,
    MappingListing,
    MappingNode,
    OpenTransaction,
    PartitionView,
    Scrape,
    TrafficSeries,
    Unasked,
)
from kelpie.observations.cluster import NO_LEADER

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")

ONE_SURVEY_MS = 60_000
"""Rows of one survey lie closer together than that."""


@dataclass(frozen=True)
class ClusterView:
    """The cluster as far as it is known. `now` is the time of the picture: the end of what is known."""

    now: Instant
    brokers: Mapping[int, BrokerView] = field(default_factory=dict)
    """Every broker that is named anywhere; `liveness` has decided which of them are alive."""
    views: Mapping[TopicPartition, tuple[PartitionView, ...]] = field(default_factory=dict)
    """The newest view of each witness, for each partition."""
    earlier_views: Mapping[TopicPartition, tuple[PartitionView, ...]] = field(default_factory=dict)
    """By time: the views that newer ones have replaced."""
    outages: Mapping[int, tuple[Outage, ...]] = field(default_factory=dict)
    """By broker, by time: those that logs, tools or surveys show."""
    last_reached: Mapping[int, Instant] = field(default_factory=dict)
    """Of brokers that could not be reached and that others list: when an earlier survey reached them."""
    offsets_topic_hidden: bool = False
    """Brokers describe no offsets topic and list groups: it is there, and this user may not see it."""
    offsets_partitions: int | None = None
    """How many partitions the offsets topic has. None: nobody could say. 0: there is no such topic."""
    ends: Mapping[TopicPartition, tuple[LogEnds, ...]] = field(default_factory=dict)
    """By time: the last one is the newest."""
    sizes: Mapping[TopicPartition, LogSize] = field(default_factory=dict)
    """Of partitions of the offsets topic, on the disks of their leaders. Empty: nobody was asked, or told."""
    compacted_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of those that are large: how large they would be at most if they were compacted."""
    clocks: Mapping[int, Skew] = field(default_factory=dict)
    """By broker, how far its clock is from the clock here. Empty: all times are of one clock."""
    certificates: tuple[Certificate, ...] = ()
    """The newest that each broker has shown, and that of the caller. Empty: no look was over TLS."""
    known_topics: Topics = NO_TOPICS
    """Whether topics are there, gone, hidden, or were created again."""
    transactions: Mapping[TopicPartition, tuple[OpenTransaction, ...]] = field(default_factory=dict)
    epoch_ends: Mapping[TopicPartition, tuple[LeaderEpochEnd, ...]] = field(default_factory=dict)
    """Where leader epochs of commits end in the log of the present leader."""
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(of, name) → value; see observations.Setting."""
    events: tuple[Event, ...] = ()
    """Those about brokers and partitions, not about one group."""
    scrapes: tuple[Scrape, ...] = ()
    """By time, as far as times are known: those of brokers with KoP. The next four are, too."""
    traffic: tuple[TrafficSeries, ...] = ()
    malformed: tuple[MalformedSeries, ...] = ()
    mapping_listings: tuple[MappingListing, ...] = ()
    mappings: tuple[MappingNode, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    listing_complete: bool = False
    """Whether every broker that may coordinate groups has listed them."""
    all_groups: bool = True
    """Whether there is a case of every known group, and not only of groups that a person named."""
    listed_groups: frozenset[str] = frozenset()
    """Groups that living brokers list. Empty where nobody needs them: a picture from tables has none."""
    cluster_id: str = ""
    """As most living brokers say. Empty: none said."""
    controller: int | None = None
    """The same."""
    bootstrap: str = ""
    """What to put after -b in commands; empty when there is no cluster to ask."""
    zookeeper: str = ""
    """What to put after --zookeeper in commands; empty when nobody gave it."""

    def at(self, now: Instant) -> "ClusterView":
        """The same picture, at another time. Both share what does not depend on it, so this takes no time."""
        if now == self.now:
            return self
        for name in _TIMELESS:
            getattr(self, name)
        later = object.__new__(ClusterView)
        later.__dict__.update({name: it for name, it in self.__dict__.items() if name not in _OF_ITS_TIME})
        later.__dict__["now"] = now
        return later

    @cached_property
    def topics(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """The known partitions of each topic."""
        by_topic: dict[str, list[TopicPartition]] = {}
        for name in sorted({*self.views, *self.ends}):
            by_topic.setdefault(name.topic, []).append(name)
        return {topic: tuple(names) for topic, names in by_topic.items()}

    @cached_property
    def offsets_topic(self) -> tuple[TopicPartition, ...]:
        """All partitions of the offsets topic; empty if there is none, or nobody could say."""
        return tuple(TopicPartition(OFFSETS_TOPIC, number) for number in range(self.offsets_partitions or 0))

    @cached_property
    def leaderless(self) -> tuple[TopicPartition, ...]:
        """The partitions of the offsets topic without a living leader."""
        return tuple(name for name in self.offsets_topic if self.has_leader(name) is False)

    @cached_property
    def dead_brokers(self) -> tuple[int, ...]:
        return tuple(sorted(node for node, broker in self.brokers.items() if broker.alive is False))

    @cached_property
    def unsettled_brokers(self) -> frozenset[int]:
        """Brokers that are away, or came back a moment ago: their clients may still look for others."""
        return unsettled_brokers(self.brokers.values(), self.outages, self.now)

    @cached_property
    def moved_partitions(self) -> frozenset[TopicPartition]:
        """Partitions of the offsets topic whose leader was elected a moment ago, as surveys saw it."""
        known = (
            (*self.views.get(name, ()), *self.earlier_views.get(name, ())) for name in self.offsets_topic
        )
        return moved_partitions((views for views in known if views), self.now)

    def is_failing_over(self, *names: TopicPartition | None) -> bool:
        """Whether a leader of these partitions moved, or a broker with a replica went or came back."""
        if not self.moved_partitions.isdisjoint(names):
            return True
        if not self.unsettled_brokers:
            return False
        views = (self.view(name) for name in names if name is not None)
        return any(not self.unsettled_brokers.isdisjoint(view.replicas) for view in views if view is not None)

    @cached_property
    def topics_were_listed(self) -> bool:
        """Whether a broker listed all topics, so that one that is not among them is gone."""
        views = (view for views in self.views.values() for view in views)
        return any(view.told_by is not None and view.topic != OFFSETS_TOPIC for view in views)

    def is_gone(self, topic: str) -> bool:
        """Whether the topic was deleted. Where it was not asked for by name: it is missing from all views."""
        known = self._gone.get(topic)
        if known is None:
            known = self._gone[topic] = self._is_gone(topic)
        return known

    @cached_property
    def _gone(self) -> dict[str, bool]:
        return {}

    def _is_gone(self, topic: str) -> bool:
        if topic in self.known_topics.views:
            return self.known_topics.existence(topic) is Existence.GONE
        return self.topics_were_listed and topic not in self.topics

    @cached_property
    def traffic_history(self) -> TrafficHistory:
        """What scrapes show, by broker and time."""
        return traffic_history(self.scrapes, self.traffic, has_mappings=bool(self.mappings))

    @cached_property
    def mapping_history(self) -> MappingHistory:
        """What listings of KoP's mapping tree show, by time."""
        return mapping_history(self.mapping_listings, self.mappings)

    @cached_property
    def partition_events(self) -> Mapping[TopicPartition, tuple[Event, ...]]:
        """By partition: those of `events` that name one. Coordinators' lines mean the offsets topic."""
        by_partition: dict[TopicPartition, list[Event]] = {}
        for event in self.events:
            if event.partition is not None:
                name = TopicPartition(event.topic or OFFSETS_TOPIC, event.partition)
                by_partition.setdefault(name, []).append(event)
        return {name: tuple(events) for name, events in by_partition.items()}

    def leader_losses(self, partition: TopicPartition | None) -> Iterator[Event]:
        """The events that say that the partition has no leader."""
        for event in self.partition_events.get(partition, ()) if partition is not None else ():
            if event.kind is EventKind.LEADER_CHANGED and event.details.get("leader") == str(NO_LEADER):
                yield event

    def view(self, partition: TopicPartition) -> PartitionView | None:
        """The view that counts: of the last survey, that of the broker with the newest leader epoch.

        Metadata of Kafka before 2.1 has no leader epochs: there the leader that most brokers name counts.
        """
        if partition not in self._best:
            views = self.views.get(partition, ())
            self._best[partition] = views[0] if len(views) == 1 else _best_of(views)
        return self._best[partition]

    @cached_property
    def _best(self) -> dict[TopicPartition, PartitionView | None]:
        return {}

    def ends_over_time(self, partition: TopicPartition) -> tuple[LogEnds, ...]:
        """Where its log ended, by time. All groups that read it share this."""
        known = self._ends_over_time.get(partition)
        if known is None:
            known = self._ends_over_time[partition] = ends_over_time(self.ends.get(partition, ()))
        return known

    def newest_end(self, partition: TopicPartition) -> LogEnds | None:
        """Where its log ends now. None: unknown."""
        ends = self.ends_over_time(partition)
        return ends[-1] if ends else None

    def newest_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch, as its view and the end of its log say; -1: unknown."""
        view, end = self.view(partition), self.newest_end(partition)
        return max(view.leader_epoch if view else -1, end.leader_epoch if end else -1)

    @cached_property
    def _ends_over_time(self) -> dict[TopicPartition, tuple[LogEnds, ...]]:
        return {}

    def is_alive(self, node_id: int) -> bool | None:
        broker = self.brokers.get(node_id)
        return None if broker is None else broker.alive

    def last_loss(self, nodes: Iterable[int]) -> Instant | None:
        """When the last of these brokers went that are away now."""
        outages = [outage for node in nodes for outage in self.outages.get(node, ()) if outage.until is None]
        return max((outage.since for outage in outages if outage.since is not None), default=None)

    def has_leader(self, partition: TopicPartition) -> bool | None:
        """Whether a living broker leads it. None: nobody can say."""
        view = self.view(partition)
        if view is None:
            return None
        return False if view.leader < 0 else self.is_alive(view.leader)

    def home_of(self, group: str) -> TopicPartition | None:
        """The partition of the offsets topic that a group lives on. None: there is no such topic, or nobody
        could say how many partitions it has.
        """
        count = self.offsets_partitions
        if not count:
            return None
        home = self._homes.get(group)
        if home is None:
            home = self._homes[group] = self.offsets_topic[partition_for(group, count)]
        return home

    @cached_property
    def _homes(self) -> dict[str, TopicPartition]:
        return {}

    def coordinator_of(self, group: str) -> int | None:
        """The living broker that coordinates a group; None if there is none, or nobody can say."""
        home = self.home_of(group)
        return self.leader_of(home) if home is not None else None

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The living broker that leads it; None if there is none, or nobody can say."""
        view = self.view(partition)
        return view.leader if view is not None and self.is_alive(view.leader) else None

    def once(self, make: Callable[["ClusterView", Key], Made], key: Key) -> Made:
        """What this function makes of the cluster and the key, made once: thousands of groups share it."""
        made: Made = self._made.get((make, key), _NOT_MADE)
        if made is _NOT_MADE:
            made = self._made[make, key] = make(self, key)
        return made

    def once_by_identity(self, make: Callable[["ClusterView", Key], Made], key: Key) -> Made:
        """Does what `once` does; the key is one object in thousands of groups, and is hashed once."""
        known = self._made_by_identity.get((make, id(key)))
        if known is None:
            known = self._made_by_identity[make, id(key)] = key, self.once(make, key)
        made: Made = known[1]
        return made

    @cached_property
    def _made(self) -> dict[tuple[object, object], Any]:
        return {}

    @cached_property
    def _made_by_identity(self) -> dict[tuple[object, int], tuple[object, Any]]:
        """With the key: while it is kept, no other object has its identity."""
        return {}

    def setting(self, name: str, of: str = "broker") -> str | None:
        return self.settings.get((of, name))

    def number(self, name: str, of: str = "broker") -> int | None:
        """The setting of a broker or topic, else that of all brokers. None: unknown, or not a number."""
        value = self.setting(name, of) or self.setting(name) or ""
        return int(value) if value.isdecimal() else None

    def broker_name(self, node_id: int) -> str:
        return str(self.brokers.get(node_id) or BrokerView(node_id))


_NOT_MADE: Any = object()
_OF_ITS_TIME = ("unsettled_brokers", "moved_partitions", "_made", "_made_by_identity")
_TIMELESS = tuple(
    name
    for name, it in vars(ClusterView).items()
    if isinstance(it, cached_property) and name not in _OF_ITS_TIME
)


def are_of_one_survey(one: PartitionView, other: PartitionView) -> bool:
    return one.at is None or other.at is None or abs(one.at - other.at) < ONE_SURVEY_MS


def _best_of(views: Sequence[PartitionView]) -> PartitionView | None:
    newest = max((view.at for view in views if view.at is not None), default=None)
    current = [
        view for view in views if newest is None or (view.at is not None and view.at > newest - ONE_SURVEY_MS)
    ]
    current = [view for view in current if view.told_by is not None] or current
    votes = Counter(view.leader for view in current)

    def weight(view: PartitionView) -> tuple[int, int, bool, Instant]:
        return view.leader_epoch, votes[view.leader], view.leader == view.told_by, view.at or 0

    return max(current, key=weight, default=None)
