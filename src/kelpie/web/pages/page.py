"""What a page is made of, and what pages share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from kelpie.cluster.health import Health
from kelpie.doctor.report import is_judged
from kelpie.model.names import TopicPartition
from kelpie.model.time import iso_time
from kelpie.observations import PartitionView
from kelpie.web.snapshot import Snapshot
from kelpie.web.times import AT, asked
from kelpie.web.watch import Watch

_WORTH_SAYING_MS = 60_000


@dataclass(frozen=True, slots=True)
class Page:
    template: str
    data: Any
    """Of the twin; or a function that makes it, where that is much work."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Of the template."""
    status: int = 200


def look_of(watch: Watch, request: Request) -> Snapshot:
    """The last one, or the one nearest to the time that the address names."""
    look = watch.look(asked(request.query_params, AT))
    assert look is not None, "the application shows another page before the first look"
    return look


def severity_of(look: Snapshot | None) -> str:
    if look is None:
        return "unknown"
    worst = look.diagnosis.worst
    if worst is not None:
        return worst.word
    return "ok" if is_judged(look.diagnosis) else "unknown"


def age_of(watch: Watch, look: Snapshot) -> dict[str, Any]:
    age_ms = max(0, watch.clock() - look.at)
    is_past = look is not watch.latest
    late_ms = 3 * 1000 * watch.every_s + look.took_ms
    return {
        "looked_at": look.at,
        "age_ms": age_ms,
        "took_ms": look.took_ms,
        "every_s": watch.every_s if watch.changes and not is_past else None,
        "is_late": watch.changes and not watch.is_of_tables and not is_past and age_ms > late_ms,
        "is_of_tables": watch.is_of_tables,
        "known_until": look.now if abs(look.now - look.at) > _WORTH_SAYING_MS else None,
        "at": iso_time(look.at) if is_past else None,
    }


def partition_as_data(name: TopicPartition, view: PartitionView | None, health: Health) -> dict[str, Any]:
    return {
        "partition": name.partition,
        "leader": view.leader if view is not None else None,
        "in_sync": list(view.in_sync) if view is not None else None,
        "replicas": list(view.replicas) if view is not None else None,
        "health": health.name.lower(),
    }


def losses_as_data(look: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "broker": loss.node_id,
            "groups_that_stop": list(loss.stopped),
            "groups_that_move": list(loss.moved),
            "partitions_without_leader": [str(name) for name in loss.leaderless],
        }
        for loss in look.losses
    ]
