"""Kelpie's own names for the numbers of the last look. docs/metrics.md lists the families; a test compares.

A number that is not known has no sample. What the last look could not see keeps its last known value:
`kelpie_group_stale_seconds` says how old that is.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import Severity
from kelpie.doctor.generation_changes import CAUSES
from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.rules import rules
from kelpie.observations.groups import UNTOLD
from kelpie.web.families import COUNTER, NO_LABELS, Each, Family, Labels, Places, Row, known, labels
from kelpie.web.numbers import ClusterNumbers, GroupNumbers

NO_BROKER = -1


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


class KelpieExporter:
    def __init__(self, cluster: str) -> None:
        self._cluster = labels(cluster=cluster)
        self._places = Places()
        self._topics, self._homes, self._causes = Each("topic"), Each("offsets_partition"), Each("cause")
        self._states: dict[tuple[str, str], Labels] = {}
        self._coordinators: dict[int | None, int | None] = {}

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

    def of_group(self, group: GroupNumbers, numbers: ClusterNumbers, *, by_partition: bool) -> Iterator[Row]:
        row, totals = group.row, numbers.totals
        here = self._cluster.also(labels(group=row.group))
        if row.state or not group.has_state:
            yield Families.STATE, here, self._state(row.kind, row.state or UNTOLD), 1
        if row.offsets_partition is not None:
            home = self._homes[row.offsets_partition]
            yield from known(Families.COORDINATOR, here, home, self._coordinator(row, numbers.cluster))
        partitions = group.partitions
        age_ms = None if row.last_commit is None else max(0, numbers.at - row.last_commit)
        values: tuple[tuple[Family, float | None], ...] = (
            (Families.STALE, max(0, numbers.at - group.seen) / 1000),
            (Families.MEMBERS, row.members),
            (Families.LAG, row.lag),
            (Families.COMMITTED_LAG, _sum([each.read_committed_lag for each in partitions])),
            (Families.UNCOMMITTED_LAG, _sum([each.read_uncommitted_lag for each in partitions])),
            (Families.LAG_S, _seconds(row.lag_ms)),
            (Families.CHANGE, row.lag_change),
            (Families.COMMIT, _seconds(row.last_commit)),
            (Families.COMMIT_AGE, _seconds(age_ms)),
            (Families.COMMITS, totals.commits.get(row.group, 0)),
        )
        for family, value in values:
            if value is not None:
                yield family, here, NO_LABELS, value
        if group.can_rebalance:
            causes = totals.rebalances.get(row.group, {})
            for cause in CAUSES:
                yield Families.REBALANCES, here, self._causes[cause], causes.get(cause, 0)
        yield from self._of_topics(group, here)
        if by_partition:
            yield from self._of_partitions(group, here)

    def _of_topics(self, group: GroupNumbers, here: Labels) -> Iterator[Row]:
        lags: defaultdict[str, int] = defaultdict(int)
        for row in group.partitions:
            if row.lag is not None:
                lags[row.name.topic] += row.lag
        for topic, total in lags.items():
            yield Families.TOPIC_LAG, here, self._topics[topic], total

    def _of_partitions(self, group: GroupNumbers, here: Labels) -> Iterator[Row]:
        """Family by family: that is how they are written fastest."""
        rows = [(self._places[row.name], row) for row in group.partitions]
        for place, row in rows:
            if row.offset is not None:
                yield Families.OFFSET, here, place, row.offset
        for place, row in rows:
            if row.lag is not None:
                yield Families.PARTITION_LAG, here, place, row.lag
        for place, row in rows:
            if row.last_commit is not None:
                yield Families.PARTITION_COMMIT, here, place, row.last_commit / 1000

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


def _coordinator(group: str, cluster: ClusterView) -> int | None:
    home = cluster.home_of(group)
    view = cluster.view(home) if home is not None else None
    if home is None or view is None:
        return None
    return NO_BROKER if cluster.has_leader(home) is False else view.leader


def _sum(values: Sequence[int | None]) -> int | None:
    if None not in values:
        return sum(values) if values else None  # type: ignore[arg-type]
    known_values = [value for value in values if value is not None]
    return sum(known_values) if known_values else None


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
