"""One group: its way to the next record, findings, partitions, members."""

from starlette.exceptions import HTTPException
from starlette.requests import Request

from kelpie.doctor.journey import journey
from kelpie.doctor.overview import GroupOverview, idle_members, partitions_of
from kelpie.doctor.rendering.json import finding_as_data, time_of
from kelpie.doctor.rendering.overview_json import group_as_data, partition_as_data
from kelpie.web.language import N_
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch


def group(watch: Watch, request: Request) -> Page:
    look = look_of(watch)
    name = request.query_params.get("name", "")
    case, row = look.case(name), _row(look, name)
    if case is None or row is None:
        raise HTTPException(404, N_("No group of this name was seen in the last look."))
    findings = look.findings_of(name)
    partitions = partitions_of(case)
    steps = journey(case, findings)
    values = {
        "title": name,
        "row": row,
        "case": case,
        "steps": steps,
        "findings": findings,
        "partitions": partitions,
        "members": case.members,
        "idle": idle_members(case),
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        **group_as_data(row),
        "journey": [{"step": step.name, "passage": step.passage, "text": step.text} for step in steps],
        "partitions": [partition_as_data(each) for each in partitions],
        "findings": [finding_as_data(each, look.diagnosis.waiting) for each in findings],
    }
    return Page("group.html", data, values)


def _row(look: Snapshot, name: str) -> GroupOverview | None:
    by_name = look.kept("by name", lambda made: {row.group: row for row in made.groups})
    return by_name.get(name)
