"""The store as a broker reaches it: late, sometimes not at all.

Requests of one broker arrive in order, and their answers come in order, as in a session of ZooKeeper.
Requests of two brokers overtake each other. Some take seconds. Some fail: the session is interrupted, the
broker does not learn whether the store has carried the request out, and what it asked behind it waits.
"""

from collections.abc import Callable, Sequence

from kelpie.attribution.requests import Request, Result
from kelpie.attribution.store import MemoryStore
from kelpie.simulation.agenda import Agenda, Chance

USUAL_MS = (1.0, 15.0)
SLOW_SHARE, SLOW_MS = 0.02, (200.0, 4_000.0)
FAILED_AFTER_MS = 3_000

Answer = Callable[[Request, Result], None]
Failure = Callable[[Request], None]


class StoreSession:
    """Of one life of one broker."""

    def __init__(self, store: MemoryStore, agenda: Agenda, chance: Chance, failed_share: float) -> None:
        self._store = store
        self._agenda = agenda
        self._chance = chance
        self._failed_share = failed_share
        self._last_arrival = 0
        self._last_answer = 0
        self.is_lost = False
        """The broker was killed: what has not arrived yet never does."""

    def send(self, requests: Sequence[Request], answer: Answer, failure: Failure) -> None:
        now = self._agenda.now
        for request in requests:
            dice = self._chance.random()
            if dice >= self._failed_share:
                self._arrive(request, answer)
                continue
            if dice < self._failed_share / 2:
                self._arrive(request, None)
            self._last_arrival = max(self._last_arrival, now + FAILED_AFTER_MS)
            self._last_answer = max(self._last_answer, self._last_arrival)
            self._agenda.at(self._last_answer, failure, request)

    def _delay(self) -> int:
        slow = self._chance.random() < SLOW_SHARE
        return int(self._chance.uniform(*(SLOW_MS if slow else USUAL_MS)))

    def _arrive(self, request: Request, answer: Answer | None) -> None:
        self._last_arrival = max(self._last_arrival, self._agenda.now + self._delay())
        self._agenda.at(self._last_arrival, self._carry_out, request, answer)

    def _carry_out(self, request: Request, answer: Answer | None) -> None:
        if self.is_lost:
            return
        result = self._store.carry_out(request)
        if answer is not None:
            self._last_answer = max(self._last_answer, self._agenda.now + self._delay())
            self._agenda.at(self._last_answer, answer, request, result)
