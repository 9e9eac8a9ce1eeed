"""The events that every machine with pending requests has: answers, failures, and a time that has come."""

from abc import ABC, abstractmethod
from typing import Any

from kelpie.consumer.effects import Effects, Failure
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.model.time import Instant


class Machine(ABC):
    def __init__(self, requests: PendingRequests) -> None:
        self._requests = requests

    def answered(self, token: int, answer: Any, now: Instant) -> Effects:
        effects = Effects(now)
        self._requests.answered(effects, token, answer)
        return self._advance(effects)

    def unanswered(self, token: int, failure: Failure, now: Instant) -> Effects:
        effects = Effects(now)
        self._requests.unanswered(effects, token, failure)
        return self._advance(effects)

    def woken(self, now: Instant) -> Effects:
        """The time has come that an earlier event named. Any other time does no harm."""
        return self._advance(Effects(now))

    @abstractmethod
    def _advance(self, effects: Effects) -> Effects:
        """Do everything that can be done now, and set `wake_at`."""
