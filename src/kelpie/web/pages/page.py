"""What a page is made of, and what pages share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kelpie.doctor.report import is_judged
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


def look_of(watch: Watch) -> Snapshot:
    assert watch.latest is not None, "the application shows another page before the first look"
    return watch.latest


def severity_of(look: Snapshot | None) -> str:
    if look is None:
        return "unknown"
    worst = look.diagnosis.worst
    if worst is not None:
        return worst.word
    return "ok" if is_judged(look.diagnosis) else "unknown"


def age_of(watch: Watch, look: Snapshot) -> dict[str, Any]:
    age_ms = max(0, watch.clock() - look.at)
    late_ms = 3 * 1000 * watch.every_s + look.took_ms
    return {
        "looked_at": look.at,
        "age_ms": age_ms,
        "took_ms": look.took_ms,
        "every_s": watch.every_s if watch.changes else None,
        "is_late": watch.changes and age_ms > late_ms,
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
