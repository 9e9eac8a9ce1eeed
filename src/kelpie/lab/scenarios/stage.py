"""What a scenario runs on: it prints what happens, and keeps what should have happened and did not.

A scenario shows its fault to an observer:

    await stage.calm(cluster)                                              # all is well
    await stage.incident(cluster, finds={"KLP203": ["slow-group"]})        # the fault is there

Both call the observer of the stage, if there is one, and the scenario waits for it. What must go on meanwhile
(a producer, restarts of a member) runs in the background: `stage.actor(…)`.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kelpie.client.address import Address
from kelpie.client.connection import Connection
from kelpie.client.memory import Memory
from kelpie.client.nodes import Nodes
from kelpie.client.opening import open_connection
from kelpie.client.settings import Settings
from kelpie.lab.cluster import Cluster
from kelpie.lab.lab_errors import LabError
from kelpie.lab.memory_network import MemoryNetwork
from kelpie.lab.virtual_time import VirtualLoop
from kelpie.model.cells import fill
from kelpie.model.time import Instant

if TYPE_CHECKING:
    from typing import Any, Self

T = TypeVar("T")

WIDTH = 80
_PATIENCE_S = 15.0
_SEED = 1


@dataclass(frozen=True, slots=True)
class Environment:
    """Sockets and real time, or a network inside the process and a virtual clock."""

    network: MemoryNetwork | None = None
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    rng: random.Random = field(default_factory=random.Random)

    @classmethod
    def virtual(cls) -> "Environment":
        """For scenarios on `virtual_time.run`: nothing sleeps, and every run takes the same course."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a virtual environment needs a loop with a virtual clock"
        return cls(MemoryNetwork(), loop.wall, random.Random(_SEED))

    def now_ms(self) -> int:
        return int(self.wall() * 1000)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a scenario at which an observer can examine the cluster."""

    cluster: Cluster
    logs: Path
    """A folder with the brokers' logs (broker-1.log …) and those of clients."""
    settings: Settings
    """What a client needs to reach the cluster."""
    clock: Callable[[], Instant]
    """The scenario's time in milliseconds since 1970."""
    finds: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the doctor should find: for each code exactly these groups. Empty when all is well."""
    seconds_of_history: float = 0.0
    """The doctor must survey the cluster, wait so long, and survey it again."""
    needs_logs: bool = False
    """What is to be seen is in the logs, or in other files beside them."""
    zookeeper: str | None = None
    """Where the ZooKeeper of the scenario answers, if it has one."""

    @property
    def is_calm(self) -> bool:
        return not self.finds


Observer = Callable[[Moment], Awaitable[None]]


class Stage:
    """What a scenario gets. Everything that it opens is closed at the end.

    - `observer`: called at every moment that the scenario shows.
    - `logs`: the folder for logs; if left out, a temporary one.
    - `zookeeper`: starts a real ZooKeeper and returns its address, for the scenarios that need one.
    - `width`: columns of what it tells.
    """

    def __init__(
        self,
        persona: str,
        tell: Callable[[str], None],
        *,
        patience_s: float = _PATIENCE_S,
        environment: Environment | None = None,
        observer: Observer | None = None,
        logs: Path | None = None,
        zookeeper: Callable[[], Awaitable[str]] | None = None,
        width: int = WIDTH,
    ) -> None:
        self.persona = persona
        self.failures: list[str] = []
        self._tell = tell
        self._width = width
        self.environment = environment or Environment()
        self.memory = Memory(tells_versions=persona != "0.9")
        """What clients know of the cluster: Kafka 0.9 does not answer ApiVersions."""
        self._patience_s = patience_s
        self._observer = observer
        self._logs = logs
        self._start_zookeeper = zookeeper
        self._zookeeper: str | None = None
        self._open = AsyncExitStack()
        self._actors: list[asyncio.Task[None]] = []
        self._steps = 0

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for actor in self._actors:
            actor.cancel()
        ends = await asyncio.gather(*self._actors, return_exceptions=True)
        await self._open.__aexit__(kind, error, trace)
        for end in ends:
            if isinstance(end, Exception) and error is None:
                raise end

    async def cluster(self, brokers: int, **options: "Any") -> Cluster:
        """A cluster of the chosen release, with logs. Options are those of `Cluster`."""
        environment = self.environment
        given = {"network": environment.network, "wall": environment.wall, "rng": environment.rng}
        options = {"log_folder": self.logs, **given, **options}
        return await self._open.enter_async_context(Cluster(brokers, persona=self.persona, **options))

    async def zookeeper(self) -> str:
        """Where a real ZooKeeper answers. Raises LabError without one."""
        if self._zookeeper is None:
            if self._start_zookeeper is None:
                raise LabError("This scenario needs a ZooKeeper, and none was given.")
            self._zookeeper = await self._start_zookeeper()
        return self._zookeeper

    def settings(self, cluster: Cluster, client_id: str) -> Settings:
        """What a client needs to reach the cluster."""
        settings = Settings.of(cluster.bootstrap_servers, client_id=client_id)
        return replace(settings, network=self.environment.network)

    async def connect(self, address: str, client_id: str = "scenario") -> Connection:
        """A connection to one broker. Raises ClientError."""
        settings = Settings((Address.parse(address),), client_id, network=self.environment.network)
        return await open_connection(settings.bootstrap[0], settings, memory=self.memory)

    async def connect_to(self, cluster: Cluster, node_id: int) -> Connection:
        endpoint = cluster.endpoints[node_id]
        return await self.connect(f"{endpoint.host}:{endpoint.port}")

    async def nodes(self, cluster: Cluster, client_id: str) -> Nodes:
        """Connections to all brokers. Raises ClientError."""
        return await Nodes.open(self.settings(cluster, client_id), memory=self.memory)

    def at_end(self, tidy: Callable[[], Awaitable[None]]) -> None:
        """Call this when the scenario is over, before what was opened earlier is closed."""
        self._open.push_async_callback(tidy)

    def actor(self, main: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run a coroutine in the background, until it ends, is cancelled, or the scenario ends.

        If it raises, the scenario fails at its end.
        """
        task = asyncio.get_running_loop().create_task(main)
        self._actors.append(task)
        return task

    @property
    def logs(self) -> Path:
        """The folder of the logs: the brokers' own, and what actors write there."""
        if self._logs is None:
            folder = tempfile.TemporaryDirectory(prefix="kelpie-lab-")
            self._logs = Path(self._open.enter_context(folder))
        self._logs.mkdir(parents=True, exist_ok=True)
        return self._logs

    # Moments for the observer.

    async def calm(self, cluster: Cluster, after_s: float = 0.0, *, needs_logs: bool = False) -> None:
        """All is well: a doctor should find nothing that is worth a warning."""
        await self._show(replace(self._moment(cluster), needs_logs=needs_logs), after_s)

    async def incident(
        self,
        cluster: Cluster,
        finds: Mapping[str, Sequence[str]],
        *,
        after_s: float = 0.0,
        seconds_of_history: float = 0.0,
        needs_logs: bool = False,
    ) -> None:
        """The fault is there, and stays until this returns.

        `finds`: for each code exactly these groups. `after_s`: how long the fault must last before an
        observer can tell it.
        """
        assert finds, "an incident without findings"
        moment = self._moment(cluster)
        moment = replace(moment, finds=finds, seconds_of_history=seconds_of_history, needs_logs=needs_logs)
        await self._show(moment, after_s)

    def _moment(self, cluster: Cluster) -> Moment:
        settings, clock = self.settings(cluster, "kelpie"), self.environment.now_ms
        return Moment(cluster, self.logs, settings, clock, zookeeper=self._zookeeper)

    async def _show(self, moment: Moment, after_s: float) -> None:
        if self._observer is not None:
            await asyncio.sleep(after_s)
            await self._observer(moment)

    # What is printed.

    def step(self, text: str) -> None:
        """What is done next."""
        self._steps += 1
        start = f"{self._steps}. "
        blank = "\n" if self._steps > 1 else ""
        self._tell(blank + fill(text, self._width, start, " " * len(start)))

    def say(self, text: str) -> None:
        """What is seen."""
        self._tell(fill(text, self._width, "   ", "     "))

    def expect(self, is_so: object, text: str) -> None:
        """What must be so."""
        self.say(f"{'ok' if is_so else 'NOT SO'}: {text}")
        if not is_so:
            self.failures.append(text)

    async def until(self, read: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
        """Read a value until it is as wanted; after a time limit, the last value."""
        deadline = asyncio.get_running_loop().time() + self._patience_s
        while True:
            value = await read()
            if wanted(value) or asyncio.get_running_loop().time() > deadline:
                return value
            await asyncio.sleep(0.05)
