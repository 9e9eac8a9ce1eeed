"""Follows what a consumer does while it does it."""

from typing import Any, Protocol

from kelpie.consumer import Ask, Event
from kelpie.model.time import Instant


class Trace(Protocol):
    def sent(self, ask: Ask, now: Instant) -> None:
        """A request leaves."""

    def answered(self, ask: Ask, answer: Any, now: Instant) -> None:
        """The answer to a request; the consumer has not acted on it yet."""

    def happened(self, event: Event, now: Instant) -> None:
        """Partitions come or go, a poll or a commit ends."""
