"""Follows what a consumer does while it does it."""

from typing import Any, Protocol

from kelpie.consumer import Event, OutgoingRequest
from kelpie.model.time import Instant


class ConsumerTrace(Protocol):
    def sent(self, request: OutgoingRequest, now: Instant) -> None:
        """A request leaves."""

    def answered(self, request: OutgoingRequest, answer: Any, now: Instant) -> None:
        """The answer to a request; the consumer has not acted on it yet."""

    def happened(self, event: Event, now: Instant) -> None:
        """Partitions come or go, a poll or a commit ends."""
