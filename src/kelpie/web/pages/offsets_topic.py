"""Partitions of the offsets topic, their leaders, and the groups on them."""

from starlette.requests import Request

from kelpie.cluster.health import health_of
from kelpie.doctor.overview import GroupOverview
from kelpie.doctor.rendering.json import time_of
from kelpie.web.groups import SHOWN
from kelpie.web.language import gettext
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.watch import Watch


def offsets_topic(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    cluster = look.diagnosis.cluster
    living: dict[int, list[GroupOverview]] = {}
    for row in look.groups:
        if row.offsets_partition is not None:
            living.setdefault(row.offsets_partition, []).append(row)
    rows = [
        (name, cluster.view(name), health_of(cluster, name), living.get(name.partition, []))
        for name in cluster.offsets_topic
    ]
    data = {
        "looked_at": time_of(look.at),
        "partitions": [
            {
                "partition": name.partition,
                "leader": view.leader if view is not None else None,
                "in_sync": list(view.in_sync) if view is not None else None,
                "replicas": list(view.replicas) if view is not None else None,
                "health": health.name.lower(),
                "groups": [each.group for each in of],
            }
            for name, view, health, of in rows
        ],
    }
    values = {
        "title": gettext("The offsets topic of %(cluster)s") % {"cluster": watch.name},
        "rows": rows,
        "shown": SHOWN,
    }
    return Page("offsets_topic.html", data, values | age_of(watch, look))
