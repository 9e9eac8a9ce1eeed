"""What every machine with a desk hears: answers, failures, and that a time has come."""

from abc import ABC, abstractmethod
from typing import Any

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.outcome import Failure, Outcome
from kelpie.model.time import Instant


class Machine(ABC):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def answered(self, token: int, answer: Any, now: Instant) -> Outcome:
        turn = Turn(now)
        self._desk.answered(turn, token, answer)
        return self._end(turn)

    def unanswered(self, token: int, failure: Failure, now: Instant) -> Outcome:
        turn = Turn(now)
        self._desk.unanswered(turn, token, failure)
        return self._end(turn)

    def woken(self, now: Instant) -> Outcome:
        """The time has come that an earlier outcome named; or any other: nothing happens before its time."""
        return self._end(Turn(now))

    @abstractmethod
    def _end(self, turn: Turn) -> Outcome:
        """Let everything happen that can happen now."""
