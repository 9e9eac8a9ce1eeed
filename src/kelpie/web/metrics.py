"""Kelpie's own names for the numbers of the last look. docs/metrics.md lists the families; a test compares.

A number that is not known has no sample. What the last look could not see keeps its last known value:
`kelpie_group_stale_seconds` says how old that is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import Severity
from kelpie.doctor.generation_changes import CAUSES
from kelpie.doctor.overview import GroupOverview, StandingRows
from kelpie.doctor.rules import rules
from kelpie.doctor.standings import PartitionOverview, Standing
from kelpie.model.names import TopicPartition
from kelpie.observations.groups import UNTOLD
from kelpie.web.families import COUNTER, NO_LABELS, Column, Each, Family, Labels, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers

NO_BROKER = -1
_NO_REBALANCES = [0] * len(CAUSES)


class Families:
    """Every name that Kelpie exports."""

    AGE = Family("kelpie_look_age_seconds", "Seconds since the last look at the cluster began.")
    FAILED = Family("kelpie_failed_looks", "Looks in a row that ended with a defect of Kelpie itself.")
    TOOK = Family("kelpie_look_duration_seconds", "Seconds that the last look took.")
    UP = Family("kelpie_cluster_answers", "1 if a broker or ZooKeeper answered in the last look, else 0.")
    REQUESTS = Family("kelpie_look_requests", "Requests that the last look sent to the cluster.")
    LEFT_OUT = Family("kelpie_metrics_left_out_groups", "Groups that have no series, by options of Kelpie.")
    BROKER = Family("kelpie_broker_alive", "1 if the broker is alive, 0 if it is dead.")
    COORDINATED = Family("kelpie_broker_groups", "Groups that the broker coordinates.")
    LOSS = Family("kelpie_broker_loss_groups", "Groups that would stop if this broker died now.")
    MOVED = Family("kelpie_broker_loss_moved_groups", "Groups that would only find another coordinator.")
    HOME = Family("kelpie_offsets_partition_leader", "The broker that leads it; -1: it has no leader.")
    LIVING = Family("kelpie_offsets_partition_groups", "Groups that live on this partition.")
    GROUPS = Family("kelpie_groups", "Groups that are known.")
    CUT_OFF = Family("kelpie_groups_without_coordinator", "Groups whose offsets partition has no leader.")
    FINDINGS = Family("kelpie_findings", "Findings that nobody has acknowledged.")
    OF_GROUP = Family("kelpie_group_finding", "1 for each finding of a group.")
    STATE = Family("kelpie_group_state", "1 for the state that the group is in; Unknown: nobody could say.")
    STALE = Family("kelpie_group_stale_seconds", "Age of what the last look could not see; 0: it saw all.")
    MEMBERS = Family("kelpie_group_members", "Members of the group.")
    COORDINATOR = Family("kelpie_group_coordinator", "The broker that coordinates the group; -1: none.")
    LAG = Family("kelpie_group_lag", "Records left to read, as far as known.")
    COMMITTED_LAG = Family("kelpie_group_read_committed_lag", "Records up to the last stable offset.")
    UNCOMMITTED_LAG = Family("kelpie_group_read_uncommitted_lag", "Records up to the high watermark.")
    LAG_S = Family("kelpie_group_lag_seconds", "Age of the oldest record that is left to read.")
    CHANGE = Family("kelpie_group_lag_change_per_minute", "Records a minute by which the lag grows.")
    COMMIT = Family("kelpie_group_last_commit_timestamp_seconds", "When the group committed last.")
    COMMIT_AGE = Family("kelpie_group_commit_age_seconds", "Seconds from its last commit to the look.")
    COMMITS = Family("kelpie_group_commits_total", "Offsets committed, as far as looks saw them.", COUNTER)
    REBALANCES = Family("kelpie_group_rebalances_total", "Rebalances, as far as looks saw them.", COUNTER)
    TOPIC_LAG = Family("kelpie_group_topic_lag", "Records of the topic left to read, as far as known.")
    OFFSET = Family("kelpie_group_partition_offset", "The committed offset.")
    PARTITION_LAG = Family("kelpie_group_partition_lag", "Records of the partition left to read.")
    PARTITION_COMMIT = Family(
        "kelpie_group_partition_last_commit_timestamp_seconds", "When the group committed there last."
    )


class _Partitions(NamedTuple):
    """What is the same for all groups that stand at the same offsets of the same partitions."""

    places: Sequence[Labels]
    offsets: "_Values"
    lags: "_Values"
    topic_lags: "_Values"
    committed_lag: int | None
    uncommitted_lag: int | None


class _Values(NamedTuple):
    """Those that are known, and where."""

    places: Sequence[Labels]
    values: Sequence[float]


_NONE_KNOWN = _Values((), ())


class KelpieExporter:
    def __init__(self, cluster: str) -> None:
        self._cluster = labels(cluster=cluster)
        self._places = Places()
        self._topics, self._homes = Each("topic"), Each("offsets_partition")
        self._causes = [labels(cause=cause) for cause in CAUSES]
        self._places_of: dict[int, tuple[Sequence[TopicPartition], list[Labels]]] = {}
        """Of partitions that many groups read; by identity, as below."""
        self._states: dict[tuple[str, str], Labels] = {}
        self._coordinators: dict[int | None, int | None] = {}
        self._standings: dict[int, tuple[Standing, _Partitions]] = {}
        """By identity, with the object: to compare thousands of standings takes longer than to show them."""

    def of_cluster(self, numbers: ClusterNumbers) -> Iterator[Row]:
        here, cluster = self._cluster, numbers.cluster
        yield Families.TOOK, here, NO_LABELS, numbers.took_ms / 1000
        yield Families.UP, here, NO_LABELS, int(numbers.answers)
        yield from known(Families.REQUESTS, here, NO_LABELS, numbers.requests)
        coordinated = Counter(group.row.coordinator for group in numbers.groups.values())
        for node, broker in sorted(cluster.brokers.items()):
            if broker.alive is not None:
                yield Families.BROKER, here, labels(broker=node), int(broker.alive)
                yield Families.COORDINATED, here, labels(broker=node), coordinated[node]
        for loss in numbers.losses:
            yield Families.LOSS, here, labels(broker=loss.node_id), len(loss.stopped)
            yield Families.MOVED, here, labels(broker=loss.node_id), len(loss.moved)
        yield from self._of_offsets_topic(numbers)
        yield from self._of_findings(numbers)

    def _of_offsets_topic(self, numbers: ClusterNumbers) -> Iterator[Row]:
        here, cluster = self._cluster, numbers.cluster
        living = Counter(group.row.offsets_partition for group in numbers.groups.values())
        cut_off = 0
        for name in cluster.offsets_topic:
            view, has_leader = cluster.view(name), cluster.has_leader(name)
            place = labels(partition=name.partition)
            yield Families.LIVING, here, place, living[name.partition]
            if view is not None and has_leader is not None:
                yield Families.HOME, here, place, view.leader if has_leader else NO_BROKER
                cut_off += 0 if has_leader else living[name.partition]
        yield Families.GROUPS, here, NO_LABELS, len(numbers.groups)
        yield Families.CUT_OFF, here, NO_LABELS, cut_off

    def _of_findings(self, numbers: ClusterNumbers) -> Iterator[Row]:
        """Each rule has its counts, also when they are 0: a series that is not there alerts nobody."""
        counts = Counter((finding.code, finding.severity) for finding in numbers.findings)
        for code, rule in rules().items():
            for severity in Severity:
                of_rule = labels(code=code, name=rule.name, severity=severity.word)
                yield Families.FINDINGS, self._cluster, of_rule, counts[code, severity]
        of_groups = {(each.group, each.code, each.severity) for each in numbers.findings if each.group}
        for group, code, severity in sorted(of_groups):
            of_group = labels(group=group, code=code, severity=severity.word)
            yield Families.OF_GROUP, self._cluster, of_group, 1

    def of_group(
        self, group: GroupNumbers, numbers: ClusterNumbers, *, by_partition: bool
    ) -> Iterator[Row | Column]:
        return self.of_groups([group], numbers, by_partition=by_partition)

    def of_groups(
        self, groups: Sequence[GroupNumbers], numbers: ClusterNumbers, *, by_partition: bool
    ) -> Iterator[Row | Column]:
        """Of many at once: family by family, they are written in half the time."""
        heres = [self._cluster.also(labels(group=group.row.group)) for group in groups]
        partitions = [self._partitions(group.partitions) for group in groups]
        for group, here in zip(groups, heres, strict=True):
            row = group.row
            if row.state or not group.has_state:
                yield Families.STATE, here, self._state(row.kind, row.state or UNTOLD), 1
            if row.offsets_partition is not None:
                home = self._homes[row.offsets_partition]
                yield from known(Families.COORDINATOR, here, home, self._coordinator(row, numbers.cluster))
        for family, values in _values(groups, partitions, numbers):
            yield Column(family, NO_LABELS, *_known(heres, values))
        rebalances = numbers.totals.rebalances
        for group, here, of_group in zip(groups, heres, partitions, strict=True):
            if group.can_rebalance:
                causes = rebalances.get(group.row.group)
                counts = _NO_REBALANCES if causes is None else [causes.get(cause, 0) for cause in CAUSES]
                yield Column(Families.REBALANCES, here, self._causes, counts)
            yield Column(Families.TOPIC_LAG, here, *of_group.topic_lags)
            if by_partition:
                yield Column(Families.OFFSET, here, *of_group.offsets)
                yield Column(Families.PARTITION_LAG, here, *of_group.lags)
                last_commits = _last_commits(of_group.places, group.partitions)
                yield Column(Families.PARTITION_COMMIT, here, *last_commits)

    def _partitions(self, rows: Sequence[PartitionOverview]) -> _Partitions:
        if not isinstance(rows, StandingRows):
            return self._shown(rows, [self._places[row.name] for row in rows])
        standing = rows.standing
        known = self._standings.get(id(standing))
        if known is None:
            shown = self._shown(standing.rows, self._placed(standing.names))
            known = self._standings[id(standing)] = standing, shown
        return known[1]

    def _placed(self, names: Sequence[TopicPartition]) -> list[Labels]:
        known = self._places_of.get(id(names))
        if known is None:
            known = self._places_of[id(names)] = names, [self._places[name] for name in names]
        return known[1]

    def _shown(self, rows: Sequence[PartitionOverview], places: Sequence[Labels]) -> _Partitions:
        offsets, lags = [row.offset for row in rows], [row.lag for row in rows]
        topic_lags: dict[str, int] = {}
        for row, lag in zip(rows, lags, strict=True):
            if lag is not None:
                topic = row.name.topic
                topic_lags[topic] = topic_lags.get(topic, 0) + lag
        return _Partitions(
            places,
            _known(places, offsets),
            _known(places, lags),
            _Values([self._topics[topic] for topic in topic_lags], list(topic_lags.values())),
            _left(offsets, [row.stable for row in rows]),
            _left(offsets, [row.high_watermark for row in rows]),
        )

    def _state(self, kind: str, state: str) -> Labels:
        made = self._states.get((kind, state))
        if made is None:
            made = self._states[kind, state] = labels(type=kind, state=state)
        return made

    def _coordinator(self, row: GroupOverview, cluster: ClusterView) -> int | None:
        """Of its offsets partition, as brokers say, also of one that may be dead. None: nobody can say."""
        if row.offsets_partition not in self._coordinators:
            self._coordinators[row.offsets_partition] = _coordinator(row.group, cluster)
        return self._coordinators[row.offsets_partition]


def _values(
    groups: Sequence[GroupNumbers], partitions: Sequence[_Partitions], numbers: ClusterNumbers
) -> Iterator[tuple[Family, Sequence[float | None]]]:
    """What a group has one of."""
    at, commits = numbers.at, numbers.totals.commits
    rows = [group.row for group in groups]
    last_commits = [row.last_commit for row in rows]
    ages = [None if commit is None else max(0, at - commit) / 1000 for commit in last_commits]
    yield Families.STALE, [max(0, at - group.seen) / 1000 for group in groups]
    yield Families.MEMBERS, [row.members for row in rows]
    yield Families.LAG, [row.lag for row in rows]
    yield Families.COMMITTED_LAG, [each.committed_lag for each in partitions]
    yield Families.UNCOMMITTED_LAG, [each.uncommitted_lag for each in partitions]
    yield Families.LAG_S, [_seconds(row.lag_ms) for row in rows]
    yield Families.CHANGE, [row.lag_change for row in rows]
    yield Families.COMMIT, [_seconds(commit) for commit in last_commits]
    yield Families.COMMIT_AGE, ages
    yield Families.COMMITS, [commits.get(row.group, 0) for row in rows]


def _last_commits(places: Sequence[Labels], rows: Sequence[PartitionOverview]) -> _Values:
    if isinstance(rows, StandingRows):
        at = _seconds(rows.last_commit)
        return _NONE_KNOWN if at is None else _Values(places, [at] * len(places))
    return _known(places, [_seconds(row.last_commit) for row in rows])


def _known(places: Sequence[Labels], values: Sequence[float | None]) -> _Values:
    if None not in values:
        return _Values(places, values)  # type: ignore[arg-type]
    both = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    return _Values([place for place, _ in both], [value for _, value in both])


def _coordinator(group: str, cluster: ClusterView) -> int | None:
    home = cluster.home_of(group)
    view = cluster.view(home) if home is not None else None
    if home is None or view is None:
        return None
    return NO_BROKER if cluster.has_leader(home) is False else view.leader


def _left(offsets: Sequence[int | None], ends: Sequence[int | None]) -> int | None:
    """Records between them, as far as both are known; None: of no partition."""
    both = zip(offsets, ends, strict=True)
    known = [end - offset for offset, end in both if offset is not None and end is not None]
    return sum([each for each in known if each > 0]) if known else None


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
