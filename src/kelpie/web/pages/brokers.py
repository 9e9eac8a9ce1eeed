"""Brokers, and what would follow if one died."""

from starlette.requests import Request

from kelpie.doctor.rendering.json import as_data, time_of
from kelpie.web.language import gettext
from kelpie.web.pages.page import Page, age_of, look_of, losses_as_data
from kelpie.web.watch import Watch


def brokers(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    cluster = look.diagnosis.cluster
    losses = {loss.node_id: loss for loss in look.losses}
    led: dict[int, int] = {}
    for partition in cluster.offsets_topic:
        view = cluster.view(partition)
        if view is not None:
            led[view.leader] = led.get(view.leader, 0) + 1
    rows = [(broker, losses.get(node), led.get(node, 0)) for node, broker in sorted(cluster.brokers.items())]
    data = {
        "looked_at": time_of(look.at),
        "brokers": as_data(look.diagnosis)["cluster"]["brokers"],
        "broker_losses": losses_as_data(look),
    }
    return Page(
        "brokers.html",
        data,
        {
            "title": gettext("Brokers of %(cluster)s") % {"cluster": watch.name},
            "rows": rows,
            **age_of(watch, look),
        },
    )
