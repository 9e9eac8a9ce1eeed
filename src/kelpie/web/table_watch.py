"""A cluster of which only tables of the pipeline are known: read again when they change, without Spark."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView
from kelpie.doctor.broker_loss import Needs
from kelpie.doctor.case import Case
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding, Severity
from kelpie.doctor.group_history import GroupHistory
from kelpie.doctor.overview import GroupOverview
from kelpie.examination import Examination, Examined
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.group_cases import read_case
from kelpie.pipeline.histories import GroupTables, Traffic
from kelpie.pipeline.results import known_clusters, read_diagnosis
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant
from kelpie.places import Place
from kelpie.web.drawing.scale import DAY, Frame
from kelpie.web.group_past import GroupPast
from kelpie.web.incidents import OUTAGE, Incident
from kelpie.web.snapshot import KnownGroups, Snapshot
from kelpie.web.watch import Watch

_WATCHED = ("group_health", "findings", "lag", "coordinator_outage")
"""Tables that change when there is something new to show."""
_MOST_CASES = 64
_MOST_PAST = 8
_MINUTE_MS = 60_000
_NO_LIVE_CLUSTER = Examination()


def clusters_in(folder: Place) -> list[str]:
    """Names of the clusters that tables know. Raises NoTables."""
    return known_clusters(Lake(folder, read_only=True))


class TablePast:
    """Of one group."""

    usual_ms = 7 * DAY

    def __init__(self, tables: GroupTables, group: str, whole: Frame | None) -> None:
        self._tables, self._group = tables, group
        self.whole = whole

    def within(self, frame: Frame) -> GroupHistory:
        return self._tables.history(self._group, (frame.begin, frame.end))


class Tables:
    """The tables of one cluster: what pages ask of them."""

    def __init__(self, folder: Place, cluster: str) -> None:
        self.folder, self.cluster = folder, cluster
        self.lake = Lake(folder, read_only=True)
        self.groups = GroupTables(self.lake, cluster)
        self.bounds = lru_cache(1)(self._bounds)

    def state(self) -> tuple[int, ...]:
        """It is another one after each change of the tables."""
        return tuple(self.lake.state_of(TABLES[name]) for name in _WATCHED)

    def past_of(self, group: str) -> GroupPast:
        return TablePast(self.groups, group, self.bounds())

    def traffic_of(self, group: str, frame: Frame) -> list[Traffic]:
        return self.groups.traffic(group, (frame.begin, frame.end))

    def health(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.lake.rows(TABLES["group_health"], self.cluster).to_pylist()
        return rows

    def outages(self) -> Iterator[Incident]:
        """Offsets partitions that had no leader."""
        for row in self.lake.rows(TABLES["coordinator_outage"], self.cluster).to_pylist():
            name = f"{OFFSETS_TOPIC}-{row['offsets_partition']}"
            groups = tuple(row["groups"])
            severity = Severity.CRITICAL if groups else Severity.WARNING
            times = instant(row["began"]), instant(row["ended"])
            yield Incident(
                "", OUTAGE, name, severity, row["evidence"] or "", groups[:100], len(groups), *times
            )

    def _bounds(self) -> Frame | None:
        known = self.groups.bounds()
        return None if known is None else Frame(*known)


class TableWatch(Watch):
    """Pages show the end of the tables; `?at=` goes back as far as they do."""

    is_of_tables = True

    def __init__(
        self, name: str, tables: Tables, every_s: float, clock: Callable[[], Instant] = wall_clock
    ) -> None:
        super().__init__(name, replace(_NO_LIVE_CLUSTER, clock=clock), every_s, tables=tables)
        self._of = tables
        self._read: tuple[int, ...] | None = None
        self._earlier: OrderedDict[Instant, Snapshot] = OrderedDict()

    @property
    def changes(self) -> bool:
        return True

    def look(self, at: Instant | None = None) -> Snapshot | None:
        latest = self.latest
        if latest is None or at is None or at >= latest.now:
            return latest
        at = at // _MINUTE_MS * _MINUTE_MS
        if at not in self._earlier:
            self._earlier[at] = _as_of(self._of, latest, at)
            while len(self._earlier) > _MOST_PAST:
                self._earlier.popitem(last=False)
        return self._earlier[at]

    async def _look(self, began: Instant) -> None:
        state = self._of.state()
        if state == self._read:
            return
        diagnosis = read_diagnosis(self._of.folder, self._of.cluster)
        known = KnownCluster(self._of.lake, self._of.cluster)

        @lru_cache(_MOST_CASES)
        def case_of(group: str) -> Case | None:
            return read_case(self._of.lake, known, diagnosis.cluster, group)

        groups = _known_groups(diagnosis, self._of)
        took_ms = max(0, self.clock() - began)
        look = Snapshot(Examined(diagnosis, True), began, took_ms, groups, case_of)
        self._of.bounds.cache_clear()
        self._earlier.clear()
        self.incidents.add(look, *self._of.outages())
        self._read, self.latest = state, look


def _known_groups(diagnosis: Diagnosis, tables: Tables) -> KnownGroups:
    rows = [_row(row, diagnosis.cluster) for row in tables.health()]
    readers = tables.groups.readers()
    topics: dict[str, list[TopicPartition]] = {row.group: [] for row in rows}
    for topic, groups in readers.items():
        for group in groups:
            topics.setdefault(group, []).extend(diagnosis.cluster.topics.get(topic, ()))
    needed = [
        Needs([group], tuple(names), diagnosis.cluster.home_of(group)) for group, names in topics.items()
    ]
    return KnownGroups(_with_worst(rows, diagnosis.findings), readers, needed)


def _row(row: dict[str, Any], cluster: ClusterView) -> GroupOverview:
    return GroupOverview(
        group=row["group"],
        kind="",
        state=row["state"] or "",
        protocol="",
        members=row["members"],
        coordinator=cluster.coordinator_of(row["group"]),
        offsets_partition=row["offsets_partition"],
        lag=row["lag"],
        lag_is_whole=True,
        lag_ms=row["lag_ms"],
        may_be_older=False,
        lag_change=None,
        last_commit=instant(row["last_commit"]),
        worst=None,
    )


def _with_worst(rows: Sequence[GroupOverview], findings: Sequence[Finding]) -> tuple[GroupOverview, ...]:
    """Findings come worst first."""
    worst: dict[str | None, Finding] = {}
    for finding in findings:
        if finding.until is None:
            worst.setdefault(finding.group, finding)
    return tuple(row._replace(worst=worst.get(row.group)) for row in rows)


def _as_of(tables: Tables, latest: Snapshot, at: Instant) -> Snapshot:
    """Findings that were there at that time, and lag and members of groups then. Leaders are not known."""
    findings = tuple(
        replace(finding, until=None)
        for finding in latest.diagnosis.findings
        if finding.since is not None and finding.since <= at and (finding.until is None or finding.until > at)
    )
    away = {
        node
        for node, outages in latest.diagnosis.cluster.outages.items()
        if any((each.at_latest or 0) <= at and (each.until is None or each.until > at) for each in outages)
    }
    cluster = latest.diagnosis.cluster
    brokers = {
        node: replace(broker, alive=False if node in away else None, reason="")
        for node, broker in cluster.brokers.items()
    }
    then = replace(
        cluster, now=at, brokers=brokers, views={}, earlier_views={}, ends={}, outages={}, events=()
    )
    lags, members = tables.groups.lags_at(at), tables.groups.members_at(at)
    rows = [
        row._replace(
            state="",
            coordinator=None,
            lag=lags.get(row.group, (None, None))[0],
            lag_ms=lags.get(row.group, (None, None))[1],
            members=members.get(row.group),
            last_commit=None,
            worst=None,
        )
        for row in latest.groups
    ]
    diagnosis = replace(latest.diagnosis, cluster=then, findings=findings, open=(), unasked=())
    groups = KnownGroups(_with_worst(rows, findings), latest.readers, ())
    return Snapshot(Examined(diagnosis, True), at, latest.took_ms, groups)
