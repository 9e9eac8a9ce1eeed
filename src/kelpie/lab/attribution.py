"""Brokers that count what each group reads: the mapping store of a cluster, and the life of each broker."""

from collections.abc import Callable

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.attribution.counters import Counters
from kelpie.attribution.plan import Plan
from kelpie.attribution.plans import PLANS
from kelpie.attribution.requests import Request, Result
from kelpie.broker.traffic import Traffic
from kelpie.evidence.mapping_dumps import write_listing
from kelpie.lab.broker_life import BrokerLife
from kelpie.lab.driver import FabricDriver
from kelpie.lab.faults import Faults
from kelpie.lab.lab_errors import LabError
from kelpie.lab.mapping_faults import MappingFault
from kelpie.lab.mapping_session import MappingSession
from kelpie.lab.mapping_stores import MappingStore, Tree
from kelpie.model.time import Instant

_LAST_REQUESTS_S = 5.0
"""How long a broker that stops may take for its last requests to the store."""


def plan_named(name: str) -> type[Plan]:
    """Raises LabError."""
    plan = PLANS.get(name)
    if plan is None:
        raise LabError(f"There is no plan {name!r} of attribution; there are {', '.join(PLANS)}.")
    return plan


class Attribution:
    def __init__(self, plan: type[Plan], store: MappingStore, driver: FabricDriver, faults: Faults) -> None:
        self._plan = plan
        self._store = store
        self._driver = driver
        self._faults = faults
        self._lives: dict[int, BrokerLife] = {}
        self._latest_start = 0

    def begin(self, node_id: int) -> None:
        """A broker starts: it counts from zero, and has a new session."""
        now = self._driver.clock.now()
        # The plan tells lives of a broker by their start.
        self._latest_start = max(now, self._latest_start + 1)
        session = MappingSession(self._store.connect(), self._active_faults)
        broker = self._driver.fabric.broker(node_id)
        plan = self._plan(node_id, self._latest_start, Counters())
        traffic = broker.traffic = Traffic(plan, broker.timers, session.ask, now)

        def heard(request: Request, result: Result) -> None:
            self._tell(lambda at: traffic.answered(request, result, at))

        def failed(request: Request) -> None:
            self._tell(lambda at: traffic.failed(request, at))

        session.begin(heard, failed, self._driver.loop)
        self._lives[node_id] = BrokerLife(traffic, session)

    def life(self, node_id: int) -> BrokerLife | None:
        return self._lives.get(node_id)

    def kill(self, node_id: int) -> None:
        """From now on the broker asks nothing; `end` follows."""
        self._lives[node_id].traffic.end()

    async def end(self, node_id: int, *, abruptly: bool) -> None:
        """Its connections are closed."""
        life = self._lives.pop(node_id)
        life.traffic.end()
        if abruptly:
            await life.session.abandon()
        else:
            await life.session.finish(_LAST_REQUESTS_S)

    async def tree(self, root: str = KOP_ROOT) -> Tree | None:
        """Raises LabError."""
        return await self._store.tree(root)

    async def listing(self, root: str = KOP_ROOT, *, dated: bool = False) -> str:
        """The tree as a text that `kelpie doctor --evidence` reads. Raises LabError."""
        return write_listing(await self.tree(root), root, self._driver.clock.now() if dated else None)

    async def close(self) -> None:
        """The cluster ends: what brokers have asked and not got is dropped."""
        for life in self._lives.values():
            life.traffic.end()
            await life.session.finish(0.0)
        self._lives.clear()

    def _tell(self, event: Callable[[Instant], None]) -> None:
        try:
            self._driver.change(lambda _, now: event(now))
        except Exception as error:
            self._driver.defect("an answer of the mapping store", error)

    def _active_faults(self) -> list[MappingFault]:
        return [fault for fault in self._faults if isinstance(fault, MappingFault) and fault.active]
