"""One group: its way to the next record, history, findings, partitions, members, traffic."""

from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from kelpie.doctor.case import Case
from kelpie.doctor.journey import journey
from kelpie.doctor.overview import GroupOverview, group_overview, idle_members
from kelpie.doctor.rendering.json import finding_as_data, time_of
from kelpie.doctor.rendering.overview_json import group_as_data, partition_as_data
from kelpie.web import charts, traffic
from kelpie.web.language import N_, gettext
from kelpie.web.pages.page import Page, age_of, look_of
from kelpie.web.snapshot import Snapshot
from kelpie.web.times import Period
from kelpie.web.watch import Watch

_MOST_DEPARTURES = 50
_MOST_REBALANCES = 50


def group(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    name = request.query_params.get("name", "")
    row = look.row(name)
    if row is None:
        raise HTTPException(404, N_("No group of this name was seen in the last look."))
    case = look.case(name)
    findings = look.findings_of(name)
    partitions = look.partitions_of(case) if case is not None else []
    if watch.is_of_tables and case is not None:
        row = _completed(row, group_overview(case, partitions, row.worst))
    steps = journey(case, findings) if case is not None else []
    history, past = _history(watch, look, row, case, request)
    frame = past["period"].frame if past["period"] is not None else None
    rows = traffic.fetched(watch, look, row, frame)
    amounts = traffic.by_topic(rows)
    values = {
        "title": name,
        "row": row,
        "has_case": case is not None,
        "steps": steps,
        "findings": findings,
        "partitions": partitions,
        "members": case.members if case is not None else None,
        "idle": {member.member_id for member in idle_members(case)} if case is not None else set(),
        **past,
        "traffic": amounts,
        "traffic_chart": traffic.chart(rows, frame) if frame is not None else None,
        "meanings": {how: gettext(text) for how, text in traffic.MEANINGS.items()},
        **age_of(watch, look),
    }

    def data() -> dict[str, Any]:
        return {
            "looked_at": time_of(look.at),
            **group_as_data(row),
            "journey": [{"step": step.name, "passage": step.passage, "text": step.text} for step in steps],
            "partitions": [partition_as_data(each) for each in partitions],
            "findings": [finding_as_data(each, look.diagnosis.waiting) for each in findings],
            "history": history(),
            "traffic": [each._asdict() for each in amounts],
        }

    return Page("group.html", data, values)


def _completed(row: GroupOverview, of_case: GroupOverview) -> GroupOverview:
    """What tables tell of a group, and its case: then all of the page says the same lag.

    A row of `group_health` has the lag that was last seen; since then the group may have committed.
    """
    known = {name: value for name, value in of_case._asdict().items() if value not in (None, "")}
    if of_case.lag is None:
        known |= {"lag_is_whole": row.lag_is_whole, "may_be_older": row.may_be_older}
    return row._replace(**known)


def _history(
    watch: Watch, look: Snapshot, row: GroupOverview, case: Case | None, request: Request
) -> tuple[Callable[[], dict[str, Any] | None], dict[str, Any]]:
    """For the twin, made when that is asked for, and for the template."""
    past = watch.past_of(look, row, case)
    if past.whole is None:
        return lambda: None, {"period": None}
    period = Period.of(request.query_params, past.whole, past.usual_ms)
    known = past.within(period.frame)
    within = [each for each in known.rebalances if period.frame.has(each.at)]
    gone = [each for each in known.departures if period.frame.has(each.at)]
    return lambda: charts.as_data(known, period.frame), {
        "period": period,
        "charts": charts.charts(known, period.frame),
        "numbers": charts.in_numbers(known, period.frame),
        "rebalances": within[: -_MOST_REBALANCES - 1 : -1],
        "rebalance_count": len(within),
        "departures": gone[: -_MOST_DEPARTURES - 1 : -1],
        "departure_count": len(gone),
    }
