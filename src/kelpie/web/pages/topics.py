"""All topics with the groups that read them, and one topic."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from kelpie.cluster.health import Health, health_of
from kelpie.doctor.finding import Finding
from kelpie.doctor.overview import GroupOverview, partitions_of
from kelpie.doctor.rendering.json import time_of
from kelpie.doctor.rendering.overview_json import group_as_data
from kelpie.doctor.standings import PartitionOverview
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, PartitionView
from kelpie.web.language import N_, gettext
from kelpie.web.listing import Part, matching, pattern_in
from kelpie.web.pages.page import Page, age_of, look_of, partition_as_data
from kelpie.web.snapshot import Snapshot
from kelpie.web.watch import Watch

_MOST_GROUPS = 200


class Topic(NamedTuple):
    name: str
    partitions: int
    leaderless: int
    groups: tuple[str, ...]
    """By name."""
    worst: Finding | None
    """Of the findings of its groups."""


class Reader(NamedTuple):
    """A group, and how far it is in one topic."""

    row: GroupOverview
    lag: int | None
    lag_ms: int | None


class TopicPartitionRow(NamedTuple):
    name: TopicPartition
    view: PartitionView | None
    health: Health
    end: int | None


def topics(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    known = look.kept("topics", _topics)
    names = matching(known, pattern_in(request.query_params))
    only_read = request.query_params.get("groups") == "some"
    rows = [topic for topic in known.values() if topic.name in names and (topic.groups or not only_read)]
    part = Part.of(sorted(rows, key=_order), request.query_params)
    values = {
        "title": gettext("Topics of %(cluster)s") % {"cluster": watch.name},
        "part": part,
        "total": len(known),
        "pattern": pattern_in(request.query_params),
        "only_read": only_read,
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        "count": part.count,
        "first": part.first,
        "topics": [_as_data(topic) for topic in part.rows],
    }
    return Page("topics.html", data, values)


def topic(watch: Watch, request: Request) -> Page:
    look = look_of(watch, request)
    found = look.kept("topics", _topics).get(request.query_params.get("name", ""))
    if found is None:
        raise HTTPException(404, N_("No topic of this name was seen in the last look."))
    readers = [reader for name in found.groups[:_MOST_GROUPS] if (reader := _reader(look, name, found.name))]
    partitions = _partitions(look, found.name)
    values = {
        "title": found.name,
        "topic": found,
        "readers": sorted(readers, key=lambda reader: (-(reader.lag or 0), reader.row.group)),
        "partitions": partitions,
        **age_of(watch, look),
    }
    data = {
        "looked_at": time_of(look.at),
        **_as_data(found),
        "readers": [
            {**group_as_data(reader.row), "lag_in_topic": reader.lag, "lag_ms_in_topic": reader.lag_ms}
            for reader in readers
        ],
        "partition_views": [
            {**partition_as_data(row.name, row.view, row.health), "log_end": row.end} for row in partitions
        ],
    }
    return Page("topic.html", data, values)


def _topics(look: Snapshot) -> dict[str, Topic]:
    """The offsets topic has a page of its own."""
    cluster = look.diagnosis.cluster
    worst = {row.group: row.worst for row in look.groups}
    made = {}
    for name in sorted({*cluster.topics, *look.readers} - {OFFSETS_TOPIC}):
        partitions = cluster.topics.get(name, ())
        groups = tuple(sorted(look.readers.get(name, ())))
        findings = [finding for group in groups if (finding := worst.get(group)) is not None]
        leaderless = sum(cluster.has_leader(each) is False for each in partitions)
        bad = max(findings, key=lambda finding: finding.severity, default=None)
        made[name] = Topic(name, len(partitions), leaderless, groups, bad)
    return made


def _order(topic: Topic) -> tuple[bool, int, int, str]:
    """Those without leaders, then those with bad findings, then those that most groups read."""
    severity = topic.worst.severity if topic.worst is not None else 0
    return not topic.leaderless, -severity, -len(topic.groups), topic.name


def _reader(look: Snapshot, group: str, topic: str) -> Reader | None:
    row, case = look.row(group), look.case(group)
    if row is None:
        return None
    here = [each for each in partitions_of(case) if each.name.topic == topic] if case is not None else []
    return Reader(
        row, _sum(here), max((each.lag_ms for each in here if each.lag_ms is not None), default=None)
    )


def _sum(rows: Sequence[PartitionOverview]) -> int | None:
    known = [row.lag for row in rows if row.lag is not None]
    return sum(known) if known else None


def _partitions(look: Snapshot, topic: str) -> list[TopicPartitionRow]:
    cluster = look.diagnosis.cluster
    rows = []
    for name in cluster.topics.get(topic, ()):
        end = cluster.newest_end(name)
        rows.append(TopicPartitionRow(name, cluster.view(name), health_of(cluster, name), end and end.latest))
    return rows


def _as_data(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "partitions_without_leader": topic.leaderless,
        "groups": list(topic.groups),
        "worst": topic.worst.code if topic.worst is not None else None,
    }
