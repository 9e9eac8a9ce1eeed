"""The clusters that are watched."""

from collections.abc import Sequence
from typing import Any

from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.report import verdict
from kelpie.web.language import N_, gettext
from kelpie.web.pages.page import Page, severity_of
from kelpie.web.watch import Watch


def clusters(watches: Sequence[Watch]) -> Page:
    rows: list[dict[str, Any]] = [
        {
            "cluster": watch.name,
            "severity": severity_of(watch.latest),
            "summary": verdict(watch.latest.diagnosis) if watch.latest is not None else None,
            "at": time_of(watch.latest.at) if watch.latest is not None else None,
            "age_ms": watch.age_ms,
            "tables_end": watch.latest.now if watch.is_of_tables and watch.latest is not None else None,
            "groups": len(watch.latest.groups) if watch.latest is not None else None,
        }
        for watch in watches
    ]
    data = [{**row, "tables_end": time_of(row["tables_end"])} for row in rows]
    every_s = min((watch.every_s for watch in watches if watch.changes), default=None)
    return Page(
        "clusters.html", {"clusters": data}, {"title": gettext("Clusters"), "rows": rows, "every_s": every_s}
    )


def waiting(watch: Watch) -> Page:
    """Before the first look has come to an end."""
    under_way, failed = N_("The first look at the cluster is under way."), N_("The first look failed.")
    text = failed if watch.failures else under_way
    return Page("waiting.html", {"error": text}, {"title": watch.name, "text": gettext(text)}, 503)
