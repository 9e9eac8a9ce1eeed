"""The requests that have no answer yet. All parts of a consumer send their requests here.

A part sends with `send`, and gives two functions: one for the answer, one for the failure. Both return the
consequence as text, `Failed` if the consumer cannot go on with it: that is how each step is recorded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kelpie.consumer.broker_connections import BrokerConnections
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.effects import BrokerNode, Effects, Failure, OutgoingRequest
from kelpie.consumer.steps import NEEDED, ConsumerStep, Failed, StepHistory, StepKind
from kelpie.model.time import Instant
from kelpie.questions.question import Question

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class _Pending:
    request: OutgoingRequest
    kind: StepKind
    sent_at: Instant
    needed: str
    on_answer: Callable[[Effects, Any], str | Failed]
    on_failure: Callable[[Effects, Failure], str | Failed]


class PendingRequests:
    def __init__(self, config: ConsumerConfig, nodes: BrokerConnections) -> None:
        self.config = config
        self.nodes = nodes
        self.history = StepHistory()
        self._pending: dict[int, _Pending] = {}
        self._last_token = 0

    def send(
        self,
        effects: Effects,
        kind: StepKind,
        node: BrokerNode,
        question: Question[A],
        *,
        on_answer: Callable[[Effects, A], str | Failed],
        on_failure: Callable[[Effects, Failure], str | Failed],
        timeout_ms: int | None = None,
        needed: str | None = None,
    ) -> int:
        """The token of the request. It is pending until one of the two functions is called.

        `needed` is the answer that lets the consumer go on, if it is not the one of `NEEDED`.
        """
        self._last_token += 1
        timeout_ms = timeout_ms or self.config.request_timeout_ms
        request = OutgoingRequest(self._last_token, node, question, timeout_ms)
        self._pending[request.token] = _Pending(
            request, kind, effects.now, needed or NEEDED.get(kind, ""), on_answer, on_failure
        )
        self.nodes.asked(node, effects.now)
        effects.requests.append(request)
        return request.token

    def answered(self, effects: Effects, token: int, answer: Any) -> None:
        pending = self._pending.pop(token, None)
        if pending is None:
            return  # The request is no longer pending.
        self.nodes.answered(pending.request.node)
        text = pending.request.question.tell(answer)
        self._record_answer(effects, pending, text, pending.on_answer(effects, answer))

    def unanswered(self, effects: Effects, token: int, failure: Failure) -> None:
        pending = self._pending.pop(token, None)
        if pending is None:
            return
        self.nodes.unanswered(pending.request.node, failure, effects.now)
        self._record_answer(effects, pending, failure.text, pending.on_failure(effects, failure))

    def record(self, effects: Effects, kind: StepKind, text: str, needed: str = "") -> None:
        """A step without a request. `needed`: of a failure, what would let the consumer go on."""
        self.history.add(ConsumerStep(effects.now, kind, "", "", "", 0, text, bool(needed), needed))

    def is_pending(self, token: int | None) -> bool:
        return token is not None and token in self._pending

    def _record_answer(
        self, effects: Effects, pending: _Pending, answer: str, consequence: str | Failed
    ) -> None:
        failed = isinstance(consequence, Failed)
        self.history.add(
            ConsumerStep(
                pending.sent_at,
                pending.kind,
                str(pending.request.node),
                str(pending.request.question),
                answer,
                effects.now - pending.sent_at,
                consequence.text if isinstance(consequence, Failed) else consequence,
                failed,
                pending.needed if failed else "",
            )
        )


class Machine(ABC):
    """The events that every machine with pending requests has: answers, failures, a time that has come."""

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
