"""The clusters that are watched."""

from collections.abc import Sequence

from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.report import verdict
from kelpie.web.pages.page import Page, severity_of
from kelpie.web.watch import Watch


def clusters(watches: Sequence[Watch]) -> Page:
    rows = [
        {
            "cluster": watch.name,
            "severity": severity_of(watch.latest),
            "summary": verdict(watch.latest.diagnosis) if watch.latest is not None else None,
            "at": time_of(watch.latest.at) if watch.latest is not None else None,
            "groups": len(watch.latest.groups) if watch.latest is not None else None,
        }
        for watch in watches
    ]
    return Page("clusters.html", {"clusters": rows}, {"title": "Clusters", "rows": rows})


def waiting(watch: Watch) -> Page:
    """Before the first look has come to an end."""
    text = "The first look at the cluster is under way." if not watch.failures else "The first look failed."
    return Page("waiting.html", {"error": text}, {"title": watch.name, "text": text}, 503)
