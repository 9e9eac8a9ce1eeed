"""All groups, filtered and sorted."""

from starlette.requests import Request

from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.rendering.overview_json import group_as_data
from kelpie.web.groups import TITLES, Choice, chosen, ordered
from kelpie.web.language import gettext
from kelpie.web.listing import Part
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.watch import Watch


def groups(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    choice = Choice.of(request.query_params)
    part = Part.of(chosen(ordered(look, choice), choice), request.query_params)
    values = {
        "title": gettext("Groups of %(cluster)s") % {"cluster": watch.name},
        "order": gettext(TITLES[choice.sort]),
        "part": part,
        "total": len(look.groups),
        "choice": choice,
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        "count": part.count,
        "first": part.first,
        "groups": [group_as_data(row) for row in part.rows],
    }
    return Page("groups.html", data, values)
