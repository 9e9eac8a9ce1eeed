"""How long a client had paused when it polled too late.

Another thread logs the line, at the moment when the limit has passed; the application is still busy then.
When the application polls again, it logs that its partitions are gone. The time in between is part of the
pause.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, Setting

BACK = (EventKind.REVOKED, EventKind.JOINING, EventKind.COMMIT_FAILED)
_SETTING = "max.poll.interval.ms"
_SENSIBLE = re.compile(r"[0-9]{1,12}$")

Client = tuple[str | None, str | None, str | None]
"""Its group, its id, and its name among the instances of librdkafka."""
Returns = Mapping[Client, Instant | None]
"""When a client was back; None: it was back at an unknown time."""


def with_pauses(
    events: Sequence[Event], limits: Mapping[str, str], later: Returns | None = None
) -> list[Event]:
    """Events of one file, with limit_ms and pause_ms among the details where they can be known.

    `limits` by group. `later`: when clients come back after these events.
    """
    completed: list[Event] = []
    back = dict(later or {})
    for event in reversed(events):
        client = (event.group, event.client_id, event.details.get("instance"))
        if event.kind in BACK:
            back[client] = event.at
        elif event.kind is EventKind.POLL_INTERVAL_EXCEEDED:
            event = _with_pause(event, back.get(client), limits.get(event.group or ""))  # noqa: PLW2901
        completed.append(event)
    return completed[::-1]


def limits_of(settings: Iterable[Setting]) -> dict[str, str]:
    """By group: after which pause a client counts as dead, as far as it is known."""
    return {
        setting.of.removeprefix("group "): setting.value
        for setting in settings
        if setting.of.startswith("group ") and setting.name == _SETTING and _SENSIBLE.match(setting.value)
    }


def _with_pause(event: Event, back: Instant | None, configured: str | None) -> Event:
    limit = event.details.get("limit_ms") or configured
    if limit is None:
        return event
    pause = int(event.details.get("pause_ms", limit))
    if back is not None and event.at is not None and back >= event.at:
        pause += back - event.at
    return replace(event, details={**event.details, "limit_ms": limit, "pause_ms": str(pause)})
