"""What each page shows, and its twin in JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from kelpie.cluster.health import health_of
from kelpie.doctor.finding import Severity
from kelpie.doctor.journey import journey
from kelpie.doctor.overview import GroupOverview, idle_members, partitions_of
from kelpie.doctor.rendering.json import as_data, finding_as_data, time_of
from kelpie.doctor.rendering.overview_json import group_as_data, partition_as_data
from kelpie.doctor.report import is_judged, missing_by_want, others, reasons, verdict
from kelpie.doctor.rules import rules
from kelpie.web.groups import SHOWN, Choice, chosen
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch


@dataclass(frozen=True, slots=True)
class Page:
    template: str
    data: Any
    """Of the twin."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Of the template."""
    status: int = 200


def clusters(watches: Sequence[Watch]) -> Page:
    rows = [
        {
            "cluster": watch.name,
            "severity": _severity(watch.latest),
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


def overview(watch: Watch, request: Request) -> Page:
    look = _look(watch)
    diagnosis = look.diagnosis
    counts = dict.fromkeys(Severity, 0)
    for row in look.groups:
        if row.worst is not None:
            counts[row.worst.severity] += 1
    values = {
        "title": watch.name,
        "verdict": verdict(diagnosis),
        "severity": _severity(look),
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
        **_age(watch, look),
    }
    data = {**as_data(diagnosis), "looked_at": time_of(look.at), "broker_losses": _losses(look)}
    return Page("overview.html", data, values)


def groups(watch: Watch, request: Request) -> Page:
    look = _look(watch)
    choice = Choice.of(request.query_params)
    rows = chosen(look.groups, choice)
    part = rows[choice.first : choice.first + SHOWN]
    values = {
        "title": f"Groups of {watch.name}",
        "rows": part,
        "count": len(rows),
        "total": len(look.groups),
        "choice": choice,
        "first": choice.first,
        "shown": SHOWN,
        **_age(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        "count": len(rows),
        "first": choice.first,
        "groups": [group_as_data(row) for row in part],
    }
    return Page("groups.html", data, values)


def group(watch: Watch, request: Request) -> Page:
    look = _look(watch)
    name = request.query_params.get("name", "")
    case, row = look.case(name), _row(look, name)
    if case is None or row is None:
        raise HTTPException(404, "No group of this name was seen in the last look.")
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
        **_age(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        **group_as_data(row),
        "journey": [{"step": step.name, "passage": step.passage, "text": step.text} for step in steps],
        "partitions": [partition_as_data(each) for each in partitions],
        "findings": [finding_as_data(each, look.diagnosis.waiting) for each in findings],
    }
    return Page("group.html", data, values)


def brokers(watch: Watch, _: Request) -> Page:
    look = _look(watch)
    cluster = look.diagnosis.cluster
    losses = {loss.node_id: loss for loss in look.losses}
    led: dict[int, int] = {}
    for partition in cluster.offsets_topic:
        view = cluster.view(partition)
        if view is not None:
            led[view.leader] = led.get(view.leader, 0) + 1
    rows = [(broker, losses.get(node), led.get(node, 0)) for node, broker in sorted(cluster.brokers.items())]
    data = {
        "looked_at": time_of(look.at),
        "brokers": as_data(look.diagnosis)["cluster"]["brokers"],
        "broker_losses": _losses(look),
    }
    return Page(
        "brokers.html", data, {"title": f"Brokers of {watch.name}", "rows": rows, **_age(watch, look)}
    )


def offsets_topic(watch: Watch, _: Request) -> Page:
    look = _look(watch)
    cluster = look.diagnosis.cluster
    living: dict[int, list[GroupOverview]] = {}
    for row in look.groups:
        if row.offsets_partition is not None:
            living.setdefault(row.offsets_partition, []).append(row)
    rows = [
        (name, cluster.view(name), health_of(cluster, name), living.get(name.partition, []))
        for name in cluster.offsets_topic
    ]
    data = {
        "looked_at": time_of(look.at),
        "partitions": [
            {
                "partition": name.partition,
                "leader": view.leader if view is not None else None,
                "in_sync": list(view.in_sync) if view is not None else None,
                "replicas": list(view.replicas) if view is not None else None,
                "health": health.name.lower(),
                "groups": [each.group for each in of],
            }
            for name, view, health, of in rows
        ],
    }
    values = {"title": f"The offsets topic of {watch.name}", "rows": rows, "shown": SHOWN}
    return Page("offsets_topic.html", data, values | _age(watch, look))


def all_rules() -> Page:
    known = list(rules().values())
    data = {"rules": [{"code": rule.code, "name": rule.name} for rule in known]}
    return Page("rules.html", data, {"title": "Rules", "rules": known})


def one_rule(code: str) -> Page:
    rule = rules().get(code.upper())
    if rule is None:
        raise HTTPException(404, "There is no rule of this code.")
    data = {"code": rule.code, "name": rule.name, "text": rule.page}
    paragraphs = rule.page.split("\n\n")[1:]
    return Page("rule.html", data, {"title": f"{rule.code} {rule.name}", "paragraphs": paragraphs})


OF_CLUSTER: dict[str, Callable[[Watch, Request], Page]] = {
    "/clusters/{cluster}/overview": overview,
    "/clusters/{cluster}/groups": groups,
    "/clusters/{cluster}/group": group,
    "/clusters/{cluster}/brokers": brokers,
    "/clusters/{cluster}/offsets-topic": offsets_topic,
}


def _look(watch: Watch) -> Snapshot:
    assert watch.latest is not None, "the application shows another page before the first look"
    return watch.latest


def _row(look: Snapshot, name: str) -> GroupOverview | None:
    by_name = look.kept("by name", lambda made: {row.group: row for row in made.groups})
    return by_name.get(name)


def _severity(look: Snapshot | None) -> str:
    if look is None:
        return "unknown"
    worst = look.diagnosis.worst
    if worst is not None:
        return worst.word
    return "ok" if is_judged(look.diagnosis) else "unknown"


def _age(watch: Watch, look: Snapshot) -> dict[str, Any]:
    age_ms = max(0, watch.clock() - look.at)
    late_ms = 3 * 1000 * watch.every_s + look.took_ms
    return {
        "looked_at": look.at,
        "age_ms": age_ms,
        "took_ms": look.took_ms,
        "every_s": watch.every_s if watch.changes else None,
        "is_late": watch.changes and age_ms > late_ms,
    }


def _losses(look: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "broker": loss.node_id,
            "groups_that_stop": list(loss.stopped),
            "groups_that_move": list(loss.moved),
            "partitions_without_leader": [str(name) for name in loss.leaderless],
        }
        for loss in look.losses
    ]
