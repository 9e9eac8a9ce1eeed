"""The last look as Prometheus reads it: `/metrics`. docs/metrics.md lists the families; a test compares.

A number that is not known has no sample. A look that failed changes no number but its age and
`kelpie_failed_looks`; so alert on `kelpie_look_age_seconds`, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from kelpie.doctor.finding import Severity
from kelpie.doctor.overview import partitions_of
from kelpie.doctor.rules import rules
from kelpie.model.prometheus_text import escaped, family, sample
from kelpie.web.exporters import burrow, kafka_exporter, kminion, lag_exporter
from kelpie.web.families import Family, Row, Samples, families_in, samples_of
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch


class Families:
    """Every name that Kelpie exports; all are gauges."""

    AGE = Family("kelpie_look_age_seconds", "Seconds since the last look at the cluster began.")
    TOOK = Family("kelpie_look_duration_seconds", "Seconds that the last look took.")
    FAILED = Family("kelpie_failed_looks", "Looks in a row that ended with a defect of Kelpie itself.")
    UP = Family("kelpie_cluster_answers", "1 if a broker or ZooKeeper answered in the last look, else 0.")
    REQUESTS = Family("kelpie_look_requests", "Requests that the last look sent to the cluster.")
    BROKER = Family("kelpie_broker_alive", "1 if the broker is alive, 0 if it is dead.")
    LOSS = Family("kelpie_broker_loss_groups", "Groups that would stop if this broker died now.")
    HOME = Family("kelpie_offsets_partition_leader", "The broker that leads it; -1: it has no leader.")
    STATE = Family("kelpie_group_state", "1 for the state that the group is in.")
    MEMBERS = Family("kelpie_group_members", "Members of the group.")
    COORDINATOR = Family("kelpie_group_coordinator", "The broker that coordinates the group.")
    LAG = Family("kelpie_group_lag", "Records left to read, as far as known.")
    LAG_S = Family("kelpie_group_lag_seconds", "Age of the oldest record that is left to read.")
    CHANGE = Family("kelpie_group_lag_change_per_minute", "Records a minute by which the lag grows.")
    COMMIT = Family("kelpie_group_last_commit_timestamp_seconds", "When the group committed last.")
    OFFSET = Family("kelpie_group_partition_offset", "The committed offset.")
    PARTITION_LAG = Family("kelpie_group_partition_lag", "Records of the partition left to read.")
    FINDINGS = Family("kelpie_findings", "Findings that nobody has acknowledged.")
    OF_GROUP = Family("kelpie_group_finding", "1 for each finding of a group.")


def every_family() -> list[Family]:
    return families_in(Families)


OWN, BURROW = "kelpie", "burrow"
_OTHERS: dict[str, tuple[type, Callable[[Snapshot, str], Iterable[Row]]]] = {
    "kafka-exporter": (kafka_exporter.Families, lambda look, _: kafka_exporter.rows(look)),
    "kminion": (kminion.Families, lambda look, _: kminion.rows(look)),
    "lag-exporter": (lag_exporter.Families, lag_exporter.rows),
    BURROW: (burrow.Families, burrow.rows),
}
EXPORTERS = (OWN, *_OTHERS)
"""Whose names the numbers can have."""


def exposition(watches: Sequence[Watch], exporters: Sequence[str] = (OWN,)) -> bytes:
    """Of all clusters. What depends on a look alone is made once for each look."""
    of_clusters = [_samples_of(watch, exporters) for watch in watches]
    order = [family for name in exporters for family in _families(name)]
    texts = []
    for each in order:
        lines = [line for samples in of_clusters for line in samples.get(each, ())]
        if lines:
            texts.append(family(each.name, "gauge", each.help, lines))
    return "".join(texts).encode()


def _families(exporter: str) -> list[Family]:
    return every_family() if exporter == OWN else families_in(_OTHERS[exporter][0])


def _samples_of(watch: Watch, exporters: Sequence[str]) -> Samples:
    look = watch.latest
    cluster: dict[str, object] = {"cluster": watch.name}
    samples: Samples = {Families.FAILED: [sample(cluster, watch.failures)]}
    if look is None:
        return samples
    samples[Families.AGE] = [sample(cluster, max(0, watch.clock() - look.at) / 1000)]
    for name in exporters:
        samples |= look.kept(f"metrics {name}", partial(_samples_of_look, name, watch.name))
    return samples


def _samples_of_look(exporter: str, cluster: str, look: Snapshot) -> Samples:
    if exporter == OWN:
        return _own_samples({"cluster": cluster}, look)
    _, rows = _OTHERS[exporter]
    return samples_of(rows(look, cluster))


def _own_samples(cluster: dict[str, object], look: Snapshot) -> Samples:
    rows = (*_of_cluster(look), *_of_groups(look), *_of_findings(look))
    samples = samples_of((each, {**cluster, **labels}, value) for each, labels, value in rows)
    offsets, lags = samples.setdefault(Families.OFFSET, []), samples.setdefault(Families.PARTITION_LAG, [])
    for case in look.cases():
        inside = f"{{{_label('cluster', cluster['cluster'])},{_label('group', case.group)}"
        for row in partitions_of(case):
            place = f'{inside},{_label("topic", row.name.topic)},partition="{row.name.partition}"}}'
            if row.offset is not None:
                offsets.append(f"{place} {row.offset}")
            if row.lag is not None:
                lags.append(f"{place} {row.lag}")
    return samples


def _label(name: str, value: object) -> str:
    return f'{name}="{escaped(str(value))}"'


def _of_cluster(look: Snapshot) -> Iterator[Row]:
    cluster, cost = look.diagnosis.cluster, look.diagnosis.cost
    yield Families.TOOK, {}, look.took_ms / 1000
    yield Families.UP, {}, int(look.saw_anything)
    if cost is not None:
        yield Families.REQUESTS, {}, cost.requests
    for node, broker in sorted(cluster.brokers.items()):
        if broker.alive is not None:
            yield Families.BROKER, {"broker": node}, int(broker.alive)
    for loss in look.losses:
        yield Families.LOSS, {"broker": loss.node_id}, len(loss.stopped)
    for name in cluster.offsets_topic:
        view, has_leader = cluster.view(name), cluster.has_leader(name)
        if view is not None and has_leader is not None:
            yield Families.HOME, {"partition": name.partition}, view.leader if has_leader else -1


def _of_groups(look: Snapshot) -> Iterator[Row]:
    for row in look.groups:
        group: dict[str, object] = {"group": row.group}
        if row.state:
            yield Families.STATE, group | {"type": row.kind, "state": row.state}, 1
        home = {} if row.offsets_partition is None else {"offsets_partition": row.offsets_partition}
        numbers: tuple[tuple[Family, dict[str, object], float | None], ...] = (
            (Families.MEMBERS, group, row.members),
            (Families.COORDINATOR, group | home, row.coordinator),
            (Families.LAG, group, row.lag),
            (Families.LAG_S, group, None if row.lag_ms is None else row.lag_ms / 1000),
            (Families.CHANGE, group, row.lag_change),
            (Families.COMMIT, group, None if row.last_commit is None else row.last_commit / 1000),
        )
        yield from ((each, labels, value) for each, labels, value in numbers if value is not None)


def _of_findings(look: Snapshot) -> Iterator[Row]:
    """Each rule has its counts, also when they are 0: a series that is not there alerts nobody."""
    found = [finding for finding in look.diagnosis.unacknowledged if finding.until is None]
    counts = Counter((finding.code, finding.severity) for finding in found)
    for code, rule in rules().items():
        for severity in Severity:
            labels: dict[str, object] = {"code": code, "name": rule.name, "severity": severity.word}
            yield Families.FINDINGS, labels, counts[code, severity]
    for group, code, severity in sorted(
        {(each.group, each.code, each.severity) for each in found if each.group}
    ):
        yield Families.OF_GROUP, {"group": group, "code": code, "severity": severity.word}, 1
