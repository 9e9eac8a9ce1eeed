"""From observations to cases: one for every group that anybody knows of, on one view of the cluster.

One pass over each kind of row. Rows of a group are ordered by time, those without a time first. Of partitions
the newest view of each one who told counts; tools (kafka-topics and the like) are one such teller.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kelpie.doctor.case import Case, ClusterView
from kelpie.doctor.liveness import liveness
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import (
    OFFSETS_TOPIC,
    Broker,
    Commit,
    Committed,
    Listing,
    Observations,
    PartitionView,
    Setting,
)

T = TypeVar("T")

_DEAD = "Dead"
"""What a coordinator says of a group that it does not know."""
_LISTED, _DESCRIBED, _HISTORY = "listed by", "described by", "records of the offsets topic"
_MOST_SOURCES = 8
_MOST_ADDRESSES = 3
_LIST_MEMBERS_ONLY = {"0.9", "0.10.0"}
"""Releases whose brokers list no group that has no members: not to be listed means nothing there."""
_REPLICAS_LEFT_OUT = {ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE}


def build(
    observations: Observations,
    *,
    now: Instant | None = None,
    groups: Iterable[str] | None = None,
    bootstrap: str = "",
) -> tuple[ClusterView, list[Case]]:
    """Cases of these groups, or of all that anybody knows of, by name.

    Without `now`, it is the end of what was seen.
    """
    now = end_of(observations) if now is None else now
    newest, earlier = _views(observations.partitions)
    alive = liveness(observations, newest, now)
    if alive.ended_at is not None:
        now = min(now, alive.ended_at)
    settings = _settings(observations.settings)
    listings = _newest_listings(observations.listings)
    cluster_events, group_events = _split_events(observations)
    by_group = [row for row in observations.unasked if row.kind == "group"]
    cluster = ClusterView(
        now=now,
        brokers=alive.brokers,
        views=newest,
        earlier_views=earlier,
        outages=alive.outages,
        offsets_partitions=_offsets_partitions(observations, newest, settings),
        ends=_by_partition(observations.ends),
        transactions=_by_partition(observations.transactions),
        epoch_ends=_by_partition(observations.epoch_ends),
        settings=settings,
        events=cluster_events,
        unasked=tuple(row for row in observations.unasked if row.kind != "group"),
        listing_complete=_listing_complete(listings, alive.brokers),
        all_groups=groups is None,
        bootstrap=bootstrap or _addresses(alive.brokers.values()),
    )
    material = _Material(observations, listings, group_events, cluster)
    wanted = material.all_groups() if groups is None else dict.fromkeys(groups)
    unasked = _gathered(by_group, lambda row: row.name)
    return cluster, [material.case(group, unasked.get(group, ())) for group in sorted(wanted)]


def build_case(
    group: str,
    rows: Observations,
    cluster: ClusterView,
    *,
    listings: Iterable[Listing] = (),
    history_from: Instant | None = None,
) -> Case:
    """One group's case, of its own rows and those listings that may name it, on a cluster built before.

    For who has more groups than fit into memory: it is the case that `build` makes of all rows together.
    `history_from`: since when records of the group's offsets partition are known.
    """
    material = _Material(rows, _newest_listings(listings), _split_events(rows)[1], cluster)
    unasked = tuple(row for row in rows.unasked if row.kind == "group" and row.name == group)
    return replace(material.case(group, _in_order(unasked)), history_from=history_from)


def _addresses(brokers: Iterable[Broker]) -> str:
    """Those of living brokers: where to send commands when nobody gave an address."""
    living = [broker.address for broker in brokers if broker.alive and broker.address]
    return ",".join(living[:_MOST_ADDRESSES])


def end_of(observations: Observations) -> Instant:
    """The newest time at which anything was seen; 0 when nothing has a time."""
    kinds: Sequence[Iterable[Any]] = (
        observations.brokers,
        observations.partitions,
        observations.listings,
        observations.answers,
        observations.states,
        observations.generations,
        observations.removals,
        observations.commits,
        observations.committed,
        observations.ends,
        observations.events,
        observations.unasked,
    )
    return max((row.at for rows in kinds for row in rows if row.at is not None), default=0)


class _Material:
    """All rows, by group."""

    def __init__(
        self,
        observations: Observations,
        listings: Mapping[int | None, Listing],
        events: Mapping[str, tuple[Any, ...]],
        cluster: ClusterView,
    ) -> None:
        self.cluster = cluster
        self.known = observations.known_groups
        self.answers = _gathered(observations.answers, _group)
        self.states = _gathered(observations.states, _group)
        self.generations = _gathered(observations.generations, _group)
        self.removals = _gathered(observations.removals, _group)
        self.events = events
        names: dict[tuple[str, int], TopicPartition] = {}
        self.commits: dict[str, dict[TopicPartition, list[Commit]]] = {}
        _gather_positions(observations.commits, names, self.commits)
        self.committed: dict[str, dict[TopicPartition, list[Committed]]] = {}
        _gather_positions(observations.committed, names, self.committed)
        self.listed_by: defaultdict[str, list[Listing]] = defaultdict(list)
        for listing in listings.values():
            for group in listing.groups:
                self.listed_by[group].append(listing)
        self.asked = {
            teller
            for teller, listing in listings.items()
            if listing.error is ErrorCode.NONE and teller is not None
        }
        self.tool_listed = None in listings and listings[None].error is ErrorCode.NONE
        self.lists_members_only = any(
            broker.release in _LIST_MEMBERS_ONLY for broker in cluster.brokers.values()
        )
        self.history_from = _history_from(observations, cluster.offsets_partitions)

    def all_groups(self) -> set[str]:
        return {
            *self.known,
            *self.listed_by,
            *self.answers,
            *self.states,
            *self.generations,
            *self.commits,
            *self.committed,
            *self.events,
        }

    def case(self, group: str, unasked: tuple[Any, ...]) -> Case:
        commits = {name: _in_order(rows) for name, rows in self.commits.get(group, {}).items()}
        said = {name: _in_order(rows) for name, rows in self.committed.get(group, {}).items()}
        told = self._told_at(group)
        committed = {name: rows[-1] for name, rows in said.items() if _when(rows[-1]) >= told}
        for name, rows in commits.items():
            if name in committed and rows[-1].removed and _when(rows[-1]) > _when(committed[name]):
                del committed[name]  # It was there when somebody looked, and was removed since.
            if name not in committed and (rows[-1].removed or _when(rows[-1]) > told):
                committed[name] = _as_committed(rows[-1])
        return Case(
            group=group,
            cluster=self.cluster,
            known_from=self._known_from(group),
            listed=self._listed(group),
            answers=self.answers.get(group, ()),
            states=self.states.get(group, ()),
            generations=self.generations.get(group, ()),
            removals=self.removals.get(group, ()),
            commits=commits,
            committed=committed,
            committed_over_time=said,
            events=self.events.get(group, ()),
            unasked=unasked,
            history_from=self._history(group),
        )

    def _told_at(self, group: str) -> Instant:
        """When the coordinator told all that is committed: what it left out then is not there any more."""
        told = (row.at for row in self.answers.get(group, ()) if row.asked == "OffsetFetch" and not row.error)
        return max((at for at in told if at is not None), default=-1)

    def _known_from(self, group: str) -> tuple[str, ...]:
        sources: dict[str, None] = {}
        for listing in self.listed_by.get(group, ()):
            who = f"broker {listing.told_by}" if listing.told_by is not None else listing.source
            sources[f"{_LISTED} {who}"] = None
        if group in self.known:
            sources[self.known[group]] = None
        for state in self.states.get(group, ()):
            if state.source and state.state != _DEAD:
                sources[f"{_DESCRIBED} {_place(state.source)}"] = None
        for event in self.events.get(group, ()):
            sources[_place(event.source)] = None
            if len(sources) >= _MOST_SOURCES:
                break
        if group in self.commits or group in self.generations:
            sources[_HISTORY] = None
        return tuple(sources)

    def _listed(self, group: str) -> bool | None:
        if group in self.listed_by:
            return True
        if self.lists_members_only:
            return None
        if self.cluster.listing_complete or self.tool_listed:
            return False
        count = self.cluster.offsets_partitions
        if count:
            view = self.cluster.view(TopicPartition(OFFSETS_TOPIC, partition_for(group, count)))
            if view is not None and view.leader in self.asked:
                return False
        return None

    def _history(self, group: str) -> Instant | None:
        count = self.cluster.offsets_partitions
        if not count:
            return self.history_from.get(group)
        return self.history_from.get(partition_for(group, count))


def _group(row: Any) -> str:
    group: str = row.group
    return group


def _place(source: str) -> str:
    """The file without the line."""
    place, colon, line = source.rpartition(":")
    return place if colon and line.isdigit() and not place.rpartition(" ")[2].startswith("(") else source


def _in_order(rows: Sequence[T]) -> tuple[T, ...]:
    if len(rows) > 1:
        rows = sorted(rows, key=_when)
    return tuple(rows)


def _when(row: Any) -> Instant:
    return -1 if row.at is None else row.at


def _gathered(rows: Iterable[T], key: Callable[[T], Any]) -> dict[Any, tuple[T, ...]]:
    found: defaultdict[Any, list[T]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return {name: _in_order(own) for name, own in found.items()}


def _by_partition(rows: Iterable[Any]) -> dict[Any, tuple[Any, ...]]:
    return _gathered(rows, lambda row: TopicPartition(row.topic, row.partition))


def _gather_positions(
    rows: Iterable[Any],
    names: dict[tuple[str, int], TopicPartition],
    into: dict[str, dict[TopicPartition, list[Any]]],
) -> None:
    """By group and partition; partitions that many groups share are named once."""
    for row in rows:
        place = (row.topic, row.partition)
        name = names.get(place)
        if name is None:
            name = names[place] = TopicPartition(*place)
        own = into.get(row.group)
        if own is None:
            own = into[row.group] = {}
        before = own.get(name)
        if before is None:
            own[name] = [row]
        else:
            before.append(row)


def _as_committed(row: Commit) -> Committed:
    return Committed(
        row.group, row.topic, row.partition, row.offset, 0, row.leader_epoch, row.metadata, row.at, row.source
    )


def _views(
    rows: Iterable[PartitionView],
) -> tuple[dict[TopicPartition, tuple[PartitionView, ...]], dict[TopicPartition, tuple[PartitionView, ...]]]:
    """The newest of each teller, and all others."""
    all_of: defaultdict[tuple[str, int], list[PartitionView]] = defaultdict(list)
    for row in rows:
        all_of[row.topic, row.partition].append(row)
    newest, earlier = {}, {}
    for place, own in all_of.items():
        if place[1] < 0:
            continue
        name = TopicPartition(*place)
        ordered = _in_order(own)
        last = {view.told_by: view for view in ordered}
        newest[name] = tuple(_completed(view, ordered) for view in last.values())
        if len(last) < len(ordered):
            earlier[name] = tuple(view for view in ordered if last[view.told_by] is not view)
    return newest, earlier


def _completed(view: PartitionView, others: Sequence[PartitionView]) -> PartitionView:
    """Kafka 0.9 leaves dead replicas out, and says no more than that some are missing. Others knew them."""
    if view.error not in _REPLICAS_LEFT_OUT or view.leader_epoch >= 0 or view.told_by is None:
        return view
    fullest = max(others, key=lambda other: len(other.replicas))
    return view._replace(replicas=fullest.replicas) if len(fullest.replicas) > len(view.replicas) else view


def _settings(rows: Iterable[Setting]) -> dict[tuple[str, str], str]:
    """What one broker is set to stands for all of them, unless it was told of all."""
    found = {(row.of, row.name): row.value for row in rows}
    for row in rows:
        if row.of.startswith("broker "):
            found.setdefault(("broker", row.name), row.value)
    return found


def _newest_listings(rows: Iterable[Listing]) -> dict[int | None, Listing]:
    return {row.told_by: row for row in _in_order(list(rows))}


def _listing_complete(listings: Mapping[int | None, Listing], brokers: Mapping[int, Broker]) -> bool:
    asked = {teller for teller, listing in listings.items() if listing.error is ErrorCode.NONE}
    could = {node for node, broker in brokers.items() if broker.alive is not False}
    return bool(could) and could <= asked


def _split_events(observations: Observations) -> tuple[tuple[Any, ...], dict[str, tuple[Any, ...]]]:
    by_group = _gathered(observations.events, lambda event: event.group)
    of_cluster = by_group.pop(None, ())
    return of_cluster, by_group


def _offsets_partitions(
    observations: Observations,
    views: Mapping[TopicPartition, Sequence[PartitionView]],
    settings: Mapping[tuple[str, str], str],
) -> int | None:
    """What brokers describe now, the head of a tool's output, a whole output, a setting: the first there is.

    An output counts only if it is whole: pieces of it give no more than a bound.
    """
    own = {name: told for name, told in views.items() if name.topic == OFFSETS_TOPIC}
    seen = {name.partition for name in own}
    by_brokers = {
        name.partition for name, told in own.items() if any(view.told_by is not None for view in told)
    }
    if by_brokers and _is_whole(by_brokers):
        return len(by_brokers)
    head = settings.get((f"topic {OFFSETS_TOPIC}", "partitions"), "")
    if head.isdecimal() and int(head) > max(seen, default=0):
        return int(head)
    if seen and _is_whole(seen):
        return len(seen)
    if not seen and any(row.topic == OFFSETS_TOPIC and row.partition < 0 for row in observations.partitions):
        return 0
    value = settings.get(("broker", "offsets.topic.num.partitions"), "")
    return int(value) if value.isdecimal() and int(value) > max(seen, default=0) else None


def _is_whole(partitions: set[int]) -> bool:
    return partitions == set(range(len(partitions)))


def _history_from(observations: Observations, count: int | None) -> dict[int | str, Instant]:
    """Since when records are known, by offsets partition; by group when nobody knows how many there are."""
    first: dict[str, Instant] = {}
    for rows in (observations.commits, observations.generations):
        for row in rows:
            at = row.at
            if at is not None and at < first.get(row.group, at + 1):
                first[row.group] = at
    found: dict[int | str, Instant] = {}
    for group, at in first.items():
        key = partition_for(group, count) if count else group
        found[key] = min(at, found.get(key, at))
    return found
