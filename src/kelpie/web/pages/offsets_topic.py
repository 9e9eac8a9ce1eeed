"""Partitions of the offsets topic, their leaders, and the groups on them."""

from starlette.requests import Request

from kelpie.cluster import ClusterView
from kelpie.cluster.health import Health, health_of
from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.rendering.json import time_of
from kelpie.model.names import TopicPartition
from kelpie.observations import PartitionView
from kelpie.web.language import gettext
from kelpie.web.pages.page import Page, age_of, look_of, partition_as_data
from kelpie.web.watch import Watch

_Row = tuple[TopicPartition, PartitionView | None, Health, list[GroupOverview]]
_Cell = tuple[TopicPartition, Health, int]
"""A partition, and how many groups live on it."""


def offsets_topic(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    cluster = look.diagnosis.cluster
    living: dict[int, list[GroupOverview]] = {}
    for row in look.groups:
        if row.offsets_partition is not None:
            living.setdefault(row.offsets_partition, []).append(row)
    rows: list[_Row] = [
        (name, cluster.view(name), health_of(cluster, name), living.get(name.partition, []))
        for name in cluster.offsets_topic
    ]
    data = {
        "looked_at": time_of(look.at),
        "partitions": [
            {**partition_as_data(name, view, health), "groups": [each.group for each in of]}
            for name, view, health, of in rows
        ],
    }
    values = {
        "title": gettext("The offsets topic of %(cluster)s") % {"cluster": watch.name},
        "rows": rows,
        "by_leader": _by_leader(cluster, rows),
    }
    return Page("offsets_topic.html", data, values | age_of(watch, look))


def _by_leader(cluster: ClusterView, rows: list[_Row]) -> list[tuple[int | None, bool | None, list[_Cell]]]:
    """Brokers by their id, those without a leader first: whether each is alive, and what it leads."""
    cells: dict[int | None, list[_Cell]] = {}
    for name, view, health, groups in rows:
        leader = view.leader if view is not None and view.leader >= 0 else None
        cells.setdefault(leader, []).append((name, health, len(groups)))
    order = sorted(cells, key=lambda leader: -1 if leader is None else leader)
    return [(leader, None if leader is None else cluster.is_alive(leader), cells[leader]) for leader in order]
