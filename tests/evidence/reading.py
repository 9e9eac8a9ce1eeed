"""What tests of readers share: one line in, its event out."""

from collections.abc import Iterable
from typing import Any

from kelpie.evidence.logs import read_log
from kelpie.observations import Event
from kelpie.observations.events import FACTS


def events_of(*lines: str, name: str = "app.log") -> list[Event]:
    """The events of a file that consists of these lines."""
    return read_log(lines, name).observations.events


def told(event: Event) -> dict[str, Any]:
    """Fields and details of an event, without those that are empty."""
    fields = {name: getattr(event, name) for name in FACTS}
    return {name: value for name, value in fields.items() if value not in (None, "")} | dict(event.details)


def in_log4j(messages: Iterable[str], logger: str = "org.apache.kafka.x.Y") -> list[str]:
    """As Kafka's own log4j pattern prints messages."""
    return [f"[2026-11-15 20:56:40,123] INFO {message} ({logger})" for message in messages]
