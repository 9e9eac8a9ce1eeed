"""A consumer on a test stand: time stands still until it is moved, and answers come when they are given.

After every event it is seen to that the consumer keeps what it must always keep.
"""

from typing import Any, TypeVar

from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.consumer_machine import ConsumerMachine
from kelpie.consumer.effects import (
    ConsumedRecord,
    ConsumerClosed,
    Effects,
    Event,
    Failure,
    OutgoingRequest,
    Problem,
    ProblemRaised,
    RecordsDelivered,
)
from kelpie.consumer.positions.reset_policy import EARLIEST
from kelpie.consumer.steps import ConsumerStep
from kelpie.questions.fetch import AskRecords
from kelpie.questions.find_coordinator import AskCoordinator
from kelpie.questions.question import Question
from tests.consumer.world import World

_MOST_TURNS = 500
Q = TypeVar("Q", bound=Question[Any])


class Stand:
    def __init__(self, world: World | None = None, **config: Any) -> None:
        self.world = world or World()
        settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": EARLIEST, **config}
        if "partitions" not in settings:
            settings.setdefault("topics", ("t",))
        numbers = iter(range(1, 1000))
        self.consumer = ConsumerMachine(
            ConsumerConfig(**settings),
            [("boot", 9092)],
            draw=lambda below: 0,
            new_id=lambda: f"new-{next(numbers)}",
        )
        self.now = 1_000_000
        self.open: list[OutgoingRequest] = []
        self.events: list[Event] = []
        self.wake_at: int | None = None

    # What can be done.

    def poll(self) -> None:
        self._do(self.consumer.poll(self.now))

    def end_poll(self) -> None:
        self._do(self.consumer.poll_ended(self.now))

    def commit(self, **options: Any) -> int:
        commit_id, effects = self.consumer.commit(self.now, **options)
        self._do(effects)
        return commit_id

    def close(self) -> None:
        self._do(self.consumer.close(self.now))

    def give(self, kind: type[Any], answer: Any) -> None:
        """Answer the question of this kind, of which there must be one."""
        self.settle_one(self.asked(kind), answer)

    def settle_one(self, request: OutgoingRequest, answer: Any) -> None:
        self.open.remove(request)
        if isinstance(answer, Failure):
            self._do(self.consumer.unanswered(request.token, answer, self.now))
        else:
            self._do(self.consumer.answered(request.token, answer, self.now))

    def run(self, *leave: type[Any]) -> None:
        """Let the world answer everything, in order, but questions of these kinds."""
        for _ in range(_MOST_TURNS):
            request = next(
                (request for request in self.open if not isinstance(request.question, leave)), None
            )
            if request is None:
                return
            self.settle_one(request, self.world.answer(request))
        raise AssertionError(f"it goes on for ever: {self.open}")

    def wait(self, wait_ms: int) -> None:
        """Time passes; the consumer wakes whenever it wanted to."""
        until = self.now + wait_ms
        while self.wake_at is not None and self.wake_at <= until:
            self.now = self.wake_at
            self._do(self.consumer.woken(self.now))
        self.now = until
        self._do(self.consumer.woken(self.now))

    def run_for(self, wait_ms: int, *leave: type[Any]) -> None:
        """The same, with the world answering."""
        until = self.now + wait_ms
        self.run(*leave)
        for _ in range(_MOST_TURNS):
            if self.wake_at is None or self.wake_at > until:
                break
            self.now = self.wake_at
            self._do(self.consumer.woken(self.now))
            self.run(*leave)
        else:
            raise AssertionError("it wakes for ever")
        self.now = until
        self._do(self.consumer.woken(self.now))
        self.run(*leave)

    def reach(self, kind: type[Any]) -> OutgoingRequest:
        """Poll, and answer in good health, until it asks this."""
        self.poll()
        for _ in range(20):
            self.run(kind, AskRecords)
            if self.has_asked(kind):
                return self.asked(kind)
            self.wait(200)
        raise AssertionError(f"it never asks {kind.__name__}")

    # What can be seen.

    def asked(self, kind: type[Any]) -> OutgoingRequest:
        found = self.all_asked(kind)
        assert len(found) == 1, f"{len(found)} questions of kind {kind.__name__} are open: {self.open}"
        return found[0]

    def question(self, kind: type[Q]) -> Q:
        """The open question of this kind, of which there must be one."""
        question = self.asked(kind).question
        assert isinstance(question, kind)
        return question

    def questions(self, kind: type[Q]) -> list[Q]:
        return [request.question for request in self.open if isinstance(request.question, kind)]

    def all_asked(self, kind: type[Any]) -> list[OutgoingRequest]:
        return [request for request in self.open if isinstance(request.question, kind)]

    def has_asked(self, kind: type[Any]) -> bool:
        return bool(self.all_asked(kind))

    def told(self, kind: type[Any]) -> list[Any]:
        """Events of this kind; they are gone afterwards."""
        found = [event for event in self.events if isinstance(event, kind)]
        self.events = [event for event in self.events if not isinstance(event, kind)]
        return found

    def problem(self) -> Problem:
        """The one that poll has raised."""
        (raised,) = self.told(ProblemRaised)
        problem: Problem = raised.problem
        return problem

    def records(self) -> list[ConsumedRecord]:
        return [record for event in self.told(RecordsDelivered) for record in event.records]

    def problems_are_final(self) -> bool:
        """Whether poll has raised what stays so for ever: the member was fenced, or cannot be one."""
        own = self.consumer.membership
        return any(getattr(own, name, None) is not None for name in ("_fenced", "_fatal"))

    @property
    def last_step(self) -> ConsumerStep:
        return self.consumer.steps[-1]

    def _do(self, effects: Effects) -> None:
        self.wake_at = effects.wake_at
        assert self.wake_at is None or self.wake_at > self.now, "it wants to be woken in the past"
        closed = any(isinstance(event, ConsumerClosed) for event in self.events)
        assert not (closed and (effects.requests or effects.events)), "it goes on after its end"
        owned = set(self.consumer.assignment.partitions)
        for request in effects.requests:
            if isinstance(request.question, AskRecords):
                assert set(request.question.wanted) <= owned, "it fetches what it does not own"
        self.open += effects.requests
        assert len(self.all_asked(AskCoordinator)) <= 1, "two lookups are under way"
        self.events += effects.events
