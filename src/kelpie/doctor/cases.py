"""From observations to cases: one for every known group, on one view of the cluster.

One pass over each kind of row. Rows of a group are ordered by time, those without a time first.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from operator import attrgetter
from typing import Any

from kelpie.cluster.picture import build_cluster, newest_listings
from kelpie.cluster.view import ClusterView
from kelpie.doctor.broker_times import on_our_clock, skew_of
from kelpie.doctor.case import OFFSET_FETCH, Case
from kelpie.doctor.group_positions import LastOffsets, Positions, Run, runs_by_group
from kelpie.doctor.positions import IllPeriod
from kelpie.doctor.zookeeper_cases import ZooKeeperMaterial, is_of_zookeeper
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition, is_scratch_group
from kelpie.model.selection import Selection
from kelpie.model.time import Instant
from kelpie.observations import Commit, Committed, Generation, Listing, Observations
from kelpie.observations.ordering import by_time, grouped, time_of
from kelpie.observations.positions import NO_OFFSET

_DEAD = "Dead"
"""What a coordinator says of a group that it does not know."""
_LISTED, _DESCRIBED, _HISTORY = "listed by", "described by", "records of the offsets topic"
_MOST_SOURCES = 8
_LIST_MEMBERS_ONLY = {"0.9", "0.10.0"}
"""Releases whose brokers list no group that has no members: not to be listed means nothing there."""
_group = attrgetter("group")
Names = tuple[TopicPartition, ...]


def build(
    observations: Observations,
    *,
    now: Instant | None = None,
    groups: Iterable[str] | Selection | None = None,
    bootstrap: str = "",
    zookeeper: str = "",
) -> tuple[ClusterView, list[Case]]:
    """Cases of these groups, or of all known ones, by name. A selection chooses among those that are known.

    Without `now`, it is the end of what was seen. `bootstrap` and `zookeeper` are for commands to paste.
    """
    is_all = groups is None or (isinstance(groups, Selection) and groups.is_all)
    cluster = build_cluster(
        observations, now=now, bootstrap=bootstrap, zookeeper=zookeeper, all_groups=is_all
    )
    if now is not None:
        observations, cluster = on_our_clock(observations, cluster, now)
    material = _Material(observations, observations.listings, cluster)
    of_zookeeper = ZooKeeperMaterial(observations, cluster)
    of_kafka = material.all_groups(but=of_zookeeper.groups)
    if isinstance(groups, Selection):
        groups = groups.chosen(of_kafka | of_zookeeper.groups)
    if groups is None:
        wanted, in_zookeeper = of_kafka, of_zookeeper.groups
    else:
        groups = list(groups)
        in_zookeeper = {group for group in groups if group in of_zookeeper.groups}
        wanted = {group for group in groups if group in of_kafka or group not in in_zookeeper}
    unasked = grouped((row for row in observations.unasked if row.kind == "group"), lambda row: row.name)
    cases = [material.case(group, unasked.get(group, ())) for group in wanted]
    cases += [of_zookeeper.case(group, has_namesake=group in of_kafka) for group in in_zookeeper]
    return cluster, sorted(cases, key=_group)


def build_cases(
    group: str,
    rows: Observations,
    cluster: ClusterView,
    *,
    listings: Iterable[Listing] = (),
    history_from: Instant | None = None,
) -> list[Case]:
    """The cases of one name, from its rows and the listings that may name it, on a given cluster.

    For callers with more groups than fit into memory: they are those that `build` makes of all rows together.
    Two, if Kafka and ZooKeeper each keep a group of this name; none, if nothing shows that there is one.
    `history_from`: since when records of the group's offsets partition are known.
    """
    material = _Material(rows, listings, cluster)
    of_zookeeper = ZooKeeperMaterial(rows, cluster)
    cases = []
    if group in material.all_groups(but=of_zookeeper.groups):
        unasked = [row for row in rows.unasked if row.kind == "group" and row.name == group]
        cases.append(replace(material.case(group, by_time(unasked)), history_from=history_from))
    if group in of_zookeeper.groups:
        cases.append(of_zookeeper.case(group, has_namesake=bool(cases)))
    return cases


class _Material:
    """All rows, by group."""

    def __init__(self, observations: Observations, listings: Iterable[Listing], cluster: ClusterView) -> None:
        self.cluster = cluster
        self._blank = Case("", cluster)
        self.known = observations.known_groups
        self.answers = grouped(observations.answers, _group)
        self.states = grouped(observations.states, _group)
        self.generations = grouped(observations.generations, _group)
        self.pending = grouped(observations.pending_commits, _group)
        self.events = grouped(
            (row for row in observations.events if row.group is not None and not is_of_zookeeper(row)), _group
        )
        self.commits = runs_by_group(observations.group_commits, observations.commits)
        self.committed = runs_by_group(observations.group_offsets, observations.committed)
        self._has_all: dict[tuple[int, int], bool] = {}
        """By ids of partitions that are in rows here: thousands of groups share them."""
        self._described_by: dict[str, str] = {}
        """By source of a state: where the group is known from. Few sources tell of thousands of groups."""
        self._known_as: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._of_home: dict[TopicPartition | None, tuple[Instant | None, int]] = {}
        self.listed_by: defaultdict[str, list[str]] = defaultdict(list)
        """By group: where it is known from."""
        newest = newest_listings(listings)
        for listing in newest.values():
            who = f"broker {listing.told_by}" if listing.told_by is not None else listing.source
            word = f"{_LISTED} {who}"
            for group in listing.groups:
                self.listed_by[group].append(word)
        self.answered = {told_by for told_by, row in newest.items() if row.error is ErrorCode.NONE}
        """The brokers that listed their groups; None: a tool did."""
        self.lists_members_only = any(
            broker.release in _LIST_MEMBERS_ONLY for broker in cluster.brokers.values()
        )
        self.illnesses = grouped(observations.illnesses, _group)
        self.history_from = _history_from(self.commits, observations.generations, cluster)

    def all_groups(self, *, but: Set[str] = frozenset()) -> set[str]:
        """All that there are rows of, and those that are known by name only, without some of these.

        Groups of a probe are left out: it has deleted them, and the offsets topic still tells of them.
        """
        by_group = (self.listed_by, self.answers, self.states, self.generations, self.commits, self.committed)
        known = (set(self.known) - but).union(*by_group, self.events)
        return {group for group in known if not is_scratch_group(group)}

    def case(self, group: str, unasked: tuple[Any, ...]) -> Case:
        commits, over_time = self.commits.get(group, ()), self.committed.get(group, ())
        history_from, uncertain_ms = self._by_home(group)
        illnesses = self.illnesses.get(group)
        return self._blank.with_fields(
            group=group,
            known_from=self._known_from(group),
            listed=self._listed(group),
            answers=self.answers.get(group, ()),
            states=self.states.get(group, ()),
            generations=self.generations.get(group, ()),
            commits=Positions(commits),
            committed=self._committed(commits, over_time, self._asked_at(group)),
            committed_over_time=Positions(over_time),
            pending=self.pending.get(group, ()),
            events=self.events.get(group, ()),
            unasked=unasked,
            history_from=history_from,
            ages_uncertain_ms=uncertain_ms,
            ill=tuple(IllPeriod(row.since, row.at, row.code) for row in illnesses if row.at is not None)
            if illnesses
            else (),
        )

    def _committed(
        self, commits: Sequence[Run[Commit]], over_time: Sequence[Run[Committed]], asked_at: Instant
    ) -> Mapping[TopicPartition, Committed]:
        """What the coordinator told last; where it did not, or what is newer, by the commits."""
        first = len(over_time)
        while first and time_of(over_time[first - 1]) >= asked_at:  # They are by time.
            first -= 1
        told = over_time[first:]
        names = told[-1].names if told else ()
        if self._is_told_by(told, commits, names):
            return LastOffsets(told[-1]) if told else {}
        committed = {name: row for run in told for name, row in zip(run.names, run.rows, strict=True)}
        for name, rows in Positions(commits).items():
            last = rows[-1]
            if last.offset == NO_OFFSET and name in committed and time_of(last) > time_of(committed[name]):
                del committed[name]  # The survey saw it, and it was removed since.
            if name not in committed and (last.removed or time_of(last) > asked_at):
                committed[name] = _as_committed(last)
        return committed

    def _is_told_by(
        self, told: Sequence[Run[Committed]], commits: Sequence[Run[Commit]], names: Names
    ) -> bool:
        """Whether these are the partitions of all that was told and of all commits, none of which removes an
        offset.
        """
        for run in told:
            if run.names is not names and run.names != names:
                return False
        for commit in commits:
            if min(commit.offsets) < 0:
                return False
            known = self._has_all.get((id(commit.names), id(names)))
            if known is None:
                known = set(commit.names) <= set(names)
                self._has_all[id(commit.names), id(names)] = known
            if not known:
                return False
        return True

    def _asked_at(self, group: str) -> Instant:
        """When the coordinator listed all committed offsets: what it left out did not exist then."""
        answers = self.answers.get(group, ())
        return max(
            [time_of(row) for row in answers if row.asked == OFFSET_FETCH and not row.error], default=-1
        )

    def _known_from(self, group: str) -> tuple[str, ...]:
        words = [*self.listed_by.get(group, ())]
        if group in self.known:
            words.append(self.known[group])
        described_by = self._described_by
        for state in self.states.get(group, ()):
            source = state.source
            if source and state.state != _DEAD:
                if source not in described_by:
                    described_by[source] = f"{_DESCRIBED} {_place(source)}"
                words.append(described_by[source])
        if group in self.events:
            sources = dict.fromkeys(words)
            for event in self.events[group]:
                sources[_place(event.source)] = None
                if len(sources) >= _MOST_SOURCES:
                    break
            words = [*sources]
        if group in self.commits or group in self.generations:
            words.append(_HISTORY)
        known = self._known_as.get(key := tuple(words))
        if known is None:
            known = self._known_as[key] = tuple(dict.fromkeys(words))
        return known

    def _listed(self, group: str) -> bool | None:
        if group in self.listed_by:
            return True
        if self.lists_members_only:
            return None
        home = self.cluster.home_of(group)
        if home in self.cluster.moved_partitions and self.cluster.has_leader(home):
            return None  # A new coordinator lists its groups once it has loaded them.
        if self.cluster.listing_complete or None in self.answered:
            return False
        view = self.cluster.view(home) if home is not None else None
        return False if view is not None and view.leader in self.answered else None

    def _by_home(self, group: str) -> tuple[Instant | None, int]:
        """Since when its history is known, and how far ages may be wrong (`Case.ages_uncertain_ms`)."""
        home = self.cluster.home_of(group)
        known = self._of_home.get(home)
        if known is None:
            uncertain_ms = skew_of(self.cluster, group).uncertain_ms
            known = self.history_from.get(home or group), uncertain_ms
            if home is not None:
                self._of_home[home] = known
        return known


def _place(source: str) -> str:
    """The file without the line."""
    place, colon, line = source.rpartition(":")
    return place if colon and line.isdigit() and not place.rpartition(" ")[2].startswith("(") else source


def _as_committed(row: Commit) -> Committed:
    return Committed(
        row.group, row.topic, row.partition, row.offset, 0, row.leader_epoch, row.metadata, row.at, row.source
    )


def _history_from(
    commits: Mapping[str, Sequence[Run[Commit]]], generations: Iterable[Generation], cluster: ClusterView
) -> dict[TopicPartition | str, Instant]:
    """Since when records are known, by offsets partition; by group if their number is unknown."""
    first: dict[str, Instant] = {}
    for group, runs in commits.items():
        at = next((run.at for run in runs if run.at is not None), None)
        if at is not None:
            first[group] = at
    for row in generations:
        if row.at is not None and row.at < first.get(row.group, row.at + 1):
            first[row.group] = row.at
    first_by_partition: dict[TopicPartition | str, Instant] = {}
    for group, at in first.items():
        key = cluster.home_of(group) or group
        first_by_partition[key] = min(at, first_by_partition.get(key, at))
    return first_by_partition
