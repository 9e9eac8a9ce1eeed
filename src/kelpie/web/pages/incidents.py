"""Incidents with their time line: what was found, from when to when, and brokers that were away."""

from typing import Any

from starlette.requests import Request

from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.timeline import timeline_of
from kelpie.model.time import Instant
from kelpie.web.drawing.scale import Frame
from kelpie.web.drawing.time_line import Bar, time_line
from kelpie.web.incidents import OUTAGE, Incident, by_time
from kelpie.web.language import gettext
from kelpie.web.listing import Part
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.times import Period
from kelpie.web.watch import Watch

_MOST_BARS = 30
_MOST_ENTRIES = 200


def incidents(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    least = _severity(request.query_params.get("severity", ""))
    known = [each for each in watch.incidents.all() if each.severity >= least and _had_begun(each, look.now)]
    period = Period.of(request.query_params, _whole(known, look.now))
    within = by_time(each for each in known if _overlaps(each, period.frame))
    part = Part.of(within, request.query_params)
    bars = [Bar(_name(each), each.severity.word, each.began, each.ended) for each in part.rows[:_MOST_BARS]]
    entries = [entry for entry in timeline_of(look.diagnosis).entries if period.frame.has(entry.at)]
    values = {
        "title": gettext("Incidents of %(cluster)s") % {"cluster": watch.name},
        "period": period,
        "now": look.now,
        "severity": least.word,
        "part": part,
        "rows": [(each, _name(each)) for each in part.rows],
        "under_way": sum(each.ended is None for each in within),
        "picture": time_line(bars, period.frame) if bars else None,
        "shown_bars": len(bars),
        "entries": entries[-_MOST_ENTRIES:],
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        "from": time_of(period.frame.begin),
        "to": time_of(period.frame.end),
        "count": part.count,
        "first": part.first,
        "incidents": [_as_data(each) for each in part.rows],
        "time_line": [
            {
                "at": time_of(entry.at),
                "text": entry.text,
                "source": entry.source,
                "groups": list(entry.groups),
            }
            for entry in entries
        ],
    }
    return Page("incidents.html", data, values)


def _severity(word: str) -> Severity:
    return Severity.of(word) if word.upper() in Severity.__members__ else Severity.NOTICE


def _had_begun(incident: Incident, at: Instant) -> bool:
    return incident.began is None or incident.began <= at


def _whole(known: list[Incident], now: Instant) -> Frame:
    times = [at for each in known for at in (each.began, each.ended) if at is not None]
    return Frame(min([*times, now - 60_000]), max([*times, now]))


def _overlaps(incident: Incident, frame: Frame) -> bool:
    began = frame.begin if incident.began is None else incident.began
    ended = frame.end if incident.ended is None else incident.ended
    return began <= frame.end and ended >= frame.begin


def _name(incident: Incident) -> str:
    if incident.name == OUTAGE:
        return gettext("%(partition)s without a leader") % {"partition": incident.cause}
    if not incident.code:
        return gettext("Broker %(id)s away") % {"id": incident.cause}
    return f"{incident.code} {incident.name}" + (f": {incident.cause}" if incident.cause else "")


def _as_data(incident: Incident) -> dict[str, Any]:
    return {
        "code": incident.code or None,
        "name": incident.name,
        "cause": incident.cause,
        "severity": incident.severity.word,
        "summary": incident.summary,
        "groups": list(incident.groups),
        "group_count": incident.group_count,
        "began": time_of(incident.began),
        "ended": time_of(incident.ended),
    }
