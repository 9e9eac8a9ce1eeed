"""The verdict, causes with what follows from them, the worst groups, and what a lost broker would stop."""

from starlette.requests import Request

from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering.json import as_data, time_of
from kelpie.doctor.report import is_judged, missing_by_want, others, reasons, verdict
from kelpie.web.groups import SHOWN, Choice
from kelpie.web.pages.page import Page, age_of, look_of, losses_as_data, severity_of
from kelpie.web.watch import Watch


def overview(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    diagnosis = look.diagnosis
    counts = dict.fromkeys(Severity, 0)
    for row in look.groups:
        if row.worst is not None:
            counts[row.worst.severity] += 1
    values = {
        "title": watch.name,
        "verdict": verdict(diagnosis),
        "severity": severity_of(look),
        "is_judged": is_judged(diagnosis),
        "others": others(diagnosis),
        "chapters": look.chapters,
        "acknowledged": look.brief.acknowledged,
        "counts": counts,
        "total": len(look.groups),
        "choice": Choice.of(request.query_params),
        "groups": sorted(look.groups, key=Choice().order)[:SHOWN],
        "losses": look.losses,
        "most_lost": max((len(loss.stopped) for loss in look.losses), default=0),
        "wants": missing_by_want(diagnosis),
        "reasons": reasons(diagnosis),
        **age_of(watch, look),
    }
    data = {**as_data(diagnosis), "looked_at": time_of(look.at), "broker_losses": losses_as_data(look)}
    return Page("overview.html", data, values)
