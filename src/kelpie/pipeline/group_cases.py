"""The case of one group from tables, without Spark: what a page shows of it.

The rules have judged it on Spark already (`diagnosis/judging`). Here, commits come from `commit_timeline` and
generations from `group_generation`, which have each of them once; only the newest are read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build_cases
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Commit, Event, Generation, Member, Observations
from kelpie.observations.events import FACTS
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.sources.logs.intake import event_of
from kelpie.pipeline.sources.snapshots.chosen import rows_of_groups
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment

_COMMITS_MS = 6 * 3_600_000
"""So much of the end of the commits is read; `histories` has the time before."""
_MOST_COMMITS = 20_000
_MOST_GENERATIONS = 500
_MOST_EVENTS = 2_000
_COMMIT = [
    "offsets_partition",
    "log_offset",
    "group",
    "topic",
    "partition",
    "offset",
    "committed",
    "leader_epoch",
]
_GENERATION = ["generation", "began", "protocol", "leader", "roster"]
_EVENT = ["at", "source", "line", "part", "kind", *FACTS, "details", "text"]


def read_case(lake: Lake, known: KnownCluster, view: ClusterView, group: str) -> Case | None:
    """None: the tables know no such group. If ZooKeeper has one of the same name, too: that of Kafka."""
    rows = _GroupRows(lake, known.name, group)
    seen = Observations()
    seen.commits, seen.generations, seen.events = rows.commits(view.now), rows.generations(), rows.events()
    seen.add(observed(rows_of_groups(known.read, known.choice, group=group)))
    if seen.commits or seen.generations:
        seen.known_groups.setdefault(group, "tables")
    listings = [
        replace(listing, groups=(group,) if group in listing.groups else ())
        for listing in known.observations.listings
    ]
    times = [*(row.at for row in seen.commits), *(row.at for row in seen.generations)]
    first = min((at for at in times if at is not None), default=None)
    return next(iter(build_cases(group, seen, view, listings=listings, history_from=first)), None)


class _GroupRows:
    """Rows of one group, the newest of each table."""

    def __init__(self, lake: Lake, cluster: str, group: str) -> None:
        self._lake, self._cluster, self._group = lake, cluster, group

    def commits(self, now: Instant) -> list[Commit]:
        recent = pc.field("committed") >= moment(now - _COMMITS_MS)
        rows = self._of("commit_timeline", _COMMIT, recent).sort_by("log_offset")[-_MOST_COMMITS:]
        return [
            Commit(
                self._group,
                row["topic"],
                row["partition"],
                NO_OFFSET if row["offset"] is None else row["offset"],
                instant(row["committed"]),
                -1 if row["leader_epoch"] is None else row["leader_epoch"],
                source=f"commit_timeline@{row['log_offset']}",
            )
            for row in rows.to_pylist()
        ]

    def generations(self) -> list[Generation]:
        rows = self._of("group_generation", _GENERATION).sort_by("began")[-_MOST_GENERATIONS:]
        return [
            Generation(
                self._group,
                row["generation"],
                tuple(_member(each) for each in row["roster"] or ()),
                protocol=row["protocol"] or "",
                leader=row["leader"] or "",
                at=instant(row["began"]),
                source="group_generation",
            )
            for row in rows.to_pylist()
        ]

    def events(self) -> list[Event]:
        rows = self._of("log_event", _EVENT).sort_by("at")[-_MOST_EVENTS:].to_pylist()
        return [event_of(row) for row in rows]

    def _of(self, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        of_group = pc.field("group") == self._group
        wanted = of_group if where is None else of_group & where
        return self._lake.rows(TABLES[name], self._cluster, wanted, columns)


def _member(row: dict[str, Any]) -> Member:
    assigned = row["assigned"]
    return Member(
        row["member_id"],
        row["client_id"] or "",
        row["client_host"] or "",
        row["instance_id"],
        tuple(row["subscribed"]) if row["subscribed"] is not None else None,
        None
        if assigned is None
        else tuple(TopicPartition(each["topic"], each["partition"]) for each in assigned),
        epoch=-1 if row["epoch"] is None else row["epoch"],
    )
