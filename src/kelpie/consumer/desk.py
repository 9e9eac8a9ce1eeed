"""Where requests leave from and answers come back to. Shared by all parts of a consumer.

A part asks with `ask`, and names two functions: one for the answer, one for the failure. Both return what
follows, as text: that is how each step comes to be recorded. `Turn` gathers what one event leads to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.nodes import Nodes
from kelpie.consumer.outcome import Ask, Event, Failure, Outcome, Place, Problem
from kelpie.consumer.steps import Follows, Journal, Step, What
from kelpie.model.time import Instant
from kelpie.questions.question import Question

A = TypeVar("A")


class Turn:
    """One event in the making."""

    def __init__(self, now: Instant) -> None:
        self.now = now
        self.asks: list[Ask] = []
        self.events: list[Event] = []
        self.problems: list[Problem] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def fail(self, problem: Problem) -> None:
        """What no part can mend: the next poll raises it."""
        self.problems.append(problem)

    @property
    def size(self) -> int:
        return len(self.asks) + len(self.events) + len(self.problems)

    def outcome(self, wake_at: Instant | None) -> Outcome:
        return Outcome(tuple(self.asks), tuple(self.events), wake_at)


@dataclass(frozen=True, slots=True)
class _Pending:
    ask: Ask
    what: What
    sent_at: Instant
    then: Callable[[Turn, Any], Follows]
    otherwise: Callable[[Turn, Failure], Follows]


class Desk:
    def __init__(self, config: ConsumerConfig, nodes: Nodes) -> None:
        self.config = config
        self.nodes = nodes
        self.journal = Journal()
        self._pending: dict[int, _Pending] = {}
        self._last_token = 0

    def ask(
        self,
        turn: Turn,
        what: What,
        place: Place,
        question: Question[A],
        *,
        then: Callable[[Turn, A], Follows],
        otherwise: Callable[[Turn, Failure], Follows],
        limit_ms: int | None = None,
    ) -> int:
        """The token of the request. It is under way until one of the two functions has been called."""
        self._last_token += 1
        ask = Ask(self._last_token, place, question, limit_ms or self.config.request_timeout_ms)
        self._pending[ask.token] = _Pending(ask, what, turn.now, then, otherwise)
        self.nodes.asked(place, turn.now)
        turn.asks.append(ask)
        return ask.token

    def answered(self, turn: Turn, token: int, answer: Any) -> None:
        pending = self._pending.pop(token, None)
        if pending is None:
            return  # An answer to what nobody waits for any more.
        self.nodes.answered(pending.ask.place)
        told = pending.ask.question.tell(answer)
        self._record(turn, pending, told, pending.then(turn, answer))

    def unanswered(self, turn: Turn, token: int, failure: Failure) -> None:
        pending = self._pending.pop(token, None)
        if pending is None:
            return
        self.nodes.unanswered(pending.ask.place, failure, turn.now)
        self._record(turn, pending, failure.text, pending.otherwise(turn, failure))

    def note(self, turn: Turn, what: What, follows: Follows) -> None:
        """A step for which nobody was asked."""
        self.journal.add(Step(turn.now, what, "", "", "", 0, follows.text, follows.failed, follows.needed))

    def is_under_way(self, token: int | None) -> bool:
        return token is not None and token in self._pending

    @property
    def under_way(self) -> tuple[Ask, ...]:
        return tuple(pending.ask for pending in self._pending.values())

    def _record(self, turn: Turn, pending: _Pending, answer: str, follows: Follows) -> None:
        self.journal.add(
            Step(
                pending.sent_at,
                pending.what,
                str(pending.ask.place),
                str(pending.ask.question),
                answer,
                turn.now - pending.sent_at,
                follows.text,
                follows.failed,
                follows.needed,
            )
        )
