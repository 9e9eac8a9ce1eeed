"""coordinator_timeline and coordinator_outage: the leaders of the offsets topic, and times without a leader.

Both come from the picture of the cluster that the driver holds.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kelpie.cluster import ClusterView
from kelpie.cluster.leadership import leaderless_periods, leaders
from kelpie.observations.cluster import NO_LEADER
from kelpie.pipeline.tables.moments import moment


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
