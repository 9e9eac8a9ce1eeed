"""`kelpie where --json`: where groups live."""

from collections.abc import Iterable
from typing import Literal, cast

from kelpie.cluster.whereabouts import Whereabouts
from kelpie.documents.declaring import TypedDict, document

HealthWord = Literal["no_leader", "leader_dead", "unknown", "at_risk", "likely_safe", "safe"]


@document
class WhereRow(TypedDict):
    group: str
    hash: int
    """String.hashCode() of the name, as Java computes it."""
    partition: int
    """Of __consumer_offsets."""
    leader: int | None
    """The broker that coordinates the group. null: there is none, or nobody could say."""
    replicas: list[int] | None
    in_sync: list[int] | None
    health: HealthWord | None
    """at_risk: the leader alone is in sync. null: only the partition was asked for."""
    verdict: str | None
    """The same in words."""


@document
class WhereDocument(TypedDict):
    """Where groups live: their partition of __consumer_offsets, and the brokers that have it."""

    version: Literal[1]
    partitions: int
    """How many __consumer_offsets has."""
    groups: list[WhereRow]


def where_document(places: Iterable[Whereabouts], partitions: int) -> WhereDocument:
    return {"version": 1, "partitions": partitions, "groups": list(map(where_row, places))}


def where_row(place: Whereabouts) -> WhereRow:
    view = place.view
    return {
        "group": place.group,
        "hash": place.hash,
        "partition": place.partition,
        "leader": view.leader if view is not None and view.leader >= 0 else None,
        "replicas": list(view.replicas) if view is not None else None,
        "in_sync": list(view.in_sync) if view is not None else None,
        "health": cast("HealthWord", place.health.name.lower()) if place.health is not None else None,
        "verdict": place.verdict or None,
    }
