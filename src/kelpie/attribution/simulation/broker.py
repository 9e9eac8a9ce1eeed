"""A broker: a plan, connections, a session with the store. A restart gives it new ones."""

from collections.abc import Callable

from kelpie.attribution.plan import Plan
from kelpie.attribution.requests import Request, Result
from kelpie.attribution.simulation.samples import Samples
from kelpie.attribution.simulation.store_session import StoreSession
from kelpie.attribution.store import MemoryStore
from kelpie.simulation.agenda import Agenda, Chance


class SimulatedBroker:
    def __init__(
        self,
        number: int,
        plan: type[Plan],
        *,
        store: MemoryStore,
        samples: Samples,
        agenda: Agenda,
        chance: Chance,
        failed_share: float,
    ) -> None:
        self.number = number
        self._plan_type = plan
        self._store = store
        self._samples = samples
        self._agenda = agenda
        self._chance = chance
        self._failed_share = failed_share
        self.start()

    def start(self) -> None:
        self.is_up = True
        self.is_paused = False
        self.plan = self._plan_type(self.number, self._agenda.now, self._samples)
        self.connections: dict[int, None] = {}
        self._session = StoreSession(self._store, self._agenda, self._chance, self._failed_share)

    def stop(self) -> None:
        """Cleanly. What it asks of the store now still arrives, but it hears no answers."""
        for connection in list(self.connections):
            self.close(connection)
        self.is_up = False

    def kill(self) -> None:
        self.is_up = False
        self._session.is_lost = True

    def close(self, connection: int) -> None:
        if self.is_up and connection in self.connections:
            del self.connections[connection]
            self.send(self.plan.connection_closed(connection, self._agenda.now))

    def tick(self) -> None:
        if self.is_up and not self.is_paused:
            requests = self.plan.tick(self._agenda.now)
            if requests:
                self.send(requests)

    def send(self, requests: list[Request], then: Callable[[], None] | None = None) -> None:
        """Ask the store. `then` is called when the store has answered, or when a request has failed."""
        if not requests:
            if then is not None:
                then()
            return
        plan = self.plan
        outstanding = len(requests)

        def answered(request: Request, result: Result) -> None:
            if self.plan is plan and self.is_up:
                self.send(plan.answered(request, result, self._agenda.now))
                done()

        def failed(request: Request) -> None:
            if self.plan is plan and self.is_up:
                self.send(plan.failed(request, self._agenda.now))
                done()

        def done() -> None:
            nonlocal outstanding
            outstanding -= 1
            if not outstanding and then is not None:
                then()

        self._session.send(requests, answered, failed)
