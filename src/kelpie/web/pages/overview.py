"""The verdict, causes with what follows from them, the worst groups, and what a lost broker would stop."""

from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering.json import as_data, time_of
from kelpie.doctor.report import is_judged, missing_by_want, others, reasons, verdict
from kelpie.web.drawing.blast_radius import blast_radius
from kelpie.web.groups import Choice, ordered
from kelpie.web.language import gettext, tag
from kelpie.web.listing import SHOWN
from kelpie.web.pages.page import Page, age_of, look_of, losses_as_data, severity_of
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch
from kelpie.web.words import number


def overview(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    diagnosis = look.diagnosis
    values = {
        "title": watch.name,
        **look.kept("overview", _of_look),
        "chapters": look.chapters,
        "acknowledged": look.brief.acknowledged,
        "total": len(look.groups),
        "groups": ordered(look, Choice())[:SHOWN],
        "losses": look.losses,
        "picture": look.kept(f"blast radius in {tag()}", _blast_radius),
        **age_of(watch, look),
    }

    def data() -> dict[str, Any]:
        return {**as_data(diagnosis), "looked_at": time_of(look.at), "broker_losses": losses_as_data(look)}

    return Page("overview.html", data, values)


def _of_look(look: Snapshot) -> dict[str, Any]:
    """What all readers of the page share: with many groups it takes a while."""
    diagnosis = look.diagnosis
    counts = dict.fromkeys(Severity, 0)
    for row in look.groups:
        if row.worst is not None:
            counts[row.worst.severity] += 1
    return {
        "verdict": verdict(diagnosis),
        "severity": severity_of(look),
        "is_judged": is_judged(diagnosis),
        "others": others(diagnosis),
        "counts": counts,
        "wants": missing_by_want(diagnosis),
        "reasons": reasons(diagnosis),
    }


def _blast_radius(look: Snapshot) -> Markup | None:
    """The words in it are of one language."""
    return blast_radius(look.losses, _broker, _more)


def _broker(node: int) -> str:
    return gettext("Broker %(id)s") % {"id": node}


def _more(count: int) -> str:
    return gettext("and %(count)s more") % {"count": number(count)}
