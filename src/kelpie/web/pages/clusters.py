"""The clusters that are watched."""

from collections.abc import Sequence

from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.report import verdict
from kelpie.web.language import N_, gettext
from kelpie.web.pages.page import Page, severity_of
from kelpie.web.watch import Watch


def clusters(watches: Sequence[Watch]) -> Page:
    rows = [
        {
            "cluster": watch.name,
            "severity": severity_of(watch.latest),
            "summary": verdict(watch.latest.diagnosis) if watch.latest is not None else None,
            "at": time_of(watch.latest.at) if watch.latest is not None else None,
            "age_ms": watch.age_ms,
            "groups": len(watch.latest.groups) if watch.latest is not None else None,
        }
        for watch in watches
    ]
    every_s = min((watch.every_s for watch in watches if watch.changes), default=None)
    return Page(
        "clusters.html", {"clusters": rows}, {"title": gettext("Clusters"), "rows": rows, "every_s": every_s}
    )


def waiting(watch: Watch) -> Page:
    """Before the first look has come to an end."""
    under_way, failed = N_("The first look at the cluster is under way."), N_("The first look failed.")
    text = failed if watch.failures else under_way
    return Page("waiting.html", {"error": text}, {"title": watch.name, "text": gettext(text)}, 503)
