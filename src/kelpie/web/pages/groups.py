"""All groups, filtered and sorted."""

from starlette.requests import Request

from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.rendering.overview_json import group_as_data
from kelpie.web.groups import SHOWN, TITLES, Choice, chosen
from kelpie.web.language import gettext
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.watch import Watch


def groups(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    choice = Choice.of(request.query_params)
    rows = chosen(look.groups, choice)
    part = rows[choice.first : choice.first + SHOWN]
    values = {
        "title": gettext("Groups of %(cluster)s") % {"cluster": watch.name},
        "order": gettext(TITLES[choice.sort]),
        "rows": part,
        "count": len(rows),
        "total": len(look.groups),
        "choice": choice,
        "first": choice.first,
        "shown": SHOWN,
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        "count": len(rows),
        "first": choice.first,
        "groups": [group_as_data(row) for row in part],
    }
    return Page("groups.html", data, values)
