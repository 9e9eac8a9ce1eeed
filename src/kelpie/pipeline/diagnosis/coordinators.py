"""coordinator_timeline and coordinator_outage: the leaders of the offsets topic, and times without a leader.

Both come from the picture of the cluster that the driver holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kelpie.cluster import ClusterView
from kelpie.cluster.leadership import leaderless_periods, leaders
from kelpie.observations.cluster import NO_LEADER
from kelpie.pipeline.diagnosis.cluster import KnownCluster
from kelpie.pipeline.diagnosis.groups import newest_time, timed
from kelpie.pipeline.storage.frames import ClusterTables, Rows
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant, moment


def coordinator_tables(tables: ClusterTables) -> Iterator[tuple[str, Rows]]:
    """Rows of both tables. group_health says when what is known ends, and which groups live where."""
    columns = ["group", "offsets_partition", "at"]
    groups = tables.lake.rows(TABLES["group_health"], tables.cluster).select(columns).to_pylist()
    now = instant(max((row["at"] for row in groups), default=None))
    if now is None:
        now = newest_time(tables.frame("log_event"), timed(tables.frame("cluster_snapshot")))
    view = KnownCluster(tables.lake, tables.cluster).view(now or 0)
    by_partition: dict[int, list[str]] = {}
    for row in groups:
        by_partition.setdefault(row["offsets_partition"], []).append(row["group"])
    yield "coordinator_timeline", timeline(view, tables.cluster)
    yield "coordinator_outage", outages(view, tables.cluster, by_partition)


def timeline(cluster: ClusterView, name: str) -> list[dict[str, Any]]:
    """Rows of coordinator_timeline."""
    rows = []
    for partition in cluster.offsets_topic:
        reports = leaders(cluster, partition)
        for report, following in zip_longest(reports, reports[1:]):
            rows.append(
                {
                    "cluster": name,
                    "offsets_partition": partition.partition,
                    "node": report.node if report.node != NO_LEADER else None,
                    "leader_epoch": report.epoch if report.epoch >= 0 else None,
                    "began": moment(report.at),
                    "ended": moment(following.at) if following is not None else None,
                    "evidence": report.source,
                }
            )
    return rows


def outages(cluster: ClusterView, name: str, groups: Mapping[int, Sequence[str]]) -> list[dict[str, Any]]:
    """Rows of coordinator_outage. `groups`: those that live on each offsets partition."""
    return [
        {
            "cluster": name,
            "offsets_partition": partition.partition,
            "began": moment(period.began),
            "ended": moment(period.ended),
            "brokers": list(view.replicas) if (view := cluster.view(partition)) is not None else [],
            "groups": sorted(groups.get(partition.partition, ())),
            "evidence": period.text,
        }
        for partition in cluster.offsets_topic
        for period in leaderless_periods(cluster, partition)
    ]
