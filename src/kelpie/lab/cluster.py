"""A Kafka cluster in this process, on sockets of loopback.

    async with Cluster(brokers=3) as cluster:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers)

One event loop owns all of it: the loop that opened it. `SyncCluster` is the same for code without one.
"""

import asyncio
import base64
import logging
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kelpie.attribution.addresses import KOP_ROOT
from kelpie.attribution.plan import Plan
from kelpie.broker.fabric import ClusterSpec, Fabric
from kelpie.broker.image import Endpoint
from kelpie.broker.personas import persona as persona_named
from kelpie.lab.attribution import Attribution, plan_named
from kelpie.lab.broker_life import BrokerLife
from kelpie.lab.broker_log import BrokerLogs
from kelpie.lab.brokers import Brokers, Listener
from kelpie.lab.cluster_options import default_settings, settings_as_text
from kelpie.lab.connection import ServedBroker
from kelpie.lab.control import Control
from kelpie.lab.driver import ClusterClock, FabricDriver
from kelpie.lab.faults import Faults
from kelpie.lab.injection import Injection
from kelpie.lab.lab_errors import LabDefect, LabError
from kelpie.lab.mapping_stores import MemoryMappings, ZooKeeperMappings
from kelpie.lab.network import BrokerNetwork, Loopback
from kelpie.model.time import Instant
from kelpie.wire.framing import LARGEST_FRAME

if TYPE_CHECKING:
    from typing import Self

log = logging.getLogger("kelpie.lab")

MOST_BROKERS = 1000
State = Mapping[str, Any]


T = TypeVar("T")
P = ParamSpec("P")


def _of_injection(method: "Callable[Concatenate[Injection, P], T]") -> "Callable[Concatenate[Cluster, P], T]":
    """A method of the cluster that calls this method of its injection."""

    @wraps(method)
    def delegate(cluster: "Cluster", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(cluster.injection, *args, **kwargs)

    return delegate


def _opened(part: T | None) -> T:
    if part is None:
        raise LabError("The cluster has not been opened yet.")
    return part


class Cluster:
    """The cluster. `Injection` documents the faults that it can be given.

    - `racks`: one for each broker.
    - `offsets_partitions`: of `__consumer_offsets`; 50 as in Kafka if left out.
    - `replication`: of all topics, internal ones too. If left out, internal topics get three replicas, or as
      many as there are brokers, and others one.
    - `config`: settings of all brokers by Kafka's names; they win over the arguments above.
    - `persona`: the release that the brokers pass for: 0.9, 2.8, 3.9 or 4.3.
    - `port`: of the first broker, the others take the next ones. If left out, ports that are free.
    - `log_folder`: where each broker writes what its group coordinator does, in the words of its release;
      broker-1.log and so on. If left out, nothing is written.
    - `control_port`: where the HTTP control API listens; 0 for any free port, None for no control API.
    - `attribution`: the plan by which brokers know the group of a fetch, by name or as a class; then they
      count what each group reads. If left out, they do not count.
    - `zookeeper`: where the plan keeps its mapping, HOST:PORT[,…][/PATH]; in memory if left out.
    - `network`: how clients reach the brokers; sockets of loopback if left out. With a `MemoryNetwork` only
      clients of this process do.
    - `wall`: the time in seconds since 1970; a virtual clock has its own.
    - `rng`: where ids of the cluster and of members come from. With a seed they are the same in every run.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str | None] | None = None,
        offsets_partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
        persona: str = "4.3",
        port: int | None = None,
        control_port: int | None = None,
        first_node_id: int = 1,
        log_folder: Path | None = None,
        attribution: str | type[Plan] | None = None,
        zookeeper: str | None = None,
        network: BrokerNetwork | None = None,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        if not 1 <= brokers <= MOST_BROKERS:
            raise LabError(f"A cluster of {brokers} brokers cannot be had; choose 1 to {MOST_BROKERS}.")
        if racks is not None and len(racks) != brokers:
            raise LabError(f"{len(racks)} racks were given for {brokers} brokers; give one for each.")
        for what, value in (("offsets_partitions", offsets_partitions), ("replication", replication)):
            if value is not None and value < 1:
                raise LabError(f"{what} is {value}; it must be at least 1.")
        if replication is not None and replication > brokers:
            raise LabError(f"{replication} replicas need as many brokers; there are {brokers}.")
        try:
            self.persona = persona_named(persona)
        except ValueError as error:
            raise LabError(f"There is {error}.") from None
        if zookeeper is not None and attribution is None:
            raise LabError("ZooKeeper is for the mapping of a plan of attribution: name the plan, too.")
        self._plan = plan_named(attribution) if isinstance(attribution, str) else attribution
        self._mappings = MemoryMappings() if zookeeper is None else ZooKeeperMappings(zookeeper)
        self.mapping_place = "memory" if zookeeper is None else f"ZooKeeper at {zookeeper}"
        self.size = brokers
        self.node_ids: tuple[int, ...] = tuple(range(first_node_id, first_node_id + brokers))
        self.config = default_settings(brokers, offsets_partitions, replication) | settings_as_text(
            config or {}
        )
        self.endpoints: dict[int, Endpoint] = {}
        self._racks = racks
        self._port = port
        self._control_port = control_port
        self._control: Control | None = None
        self.log_folder = log_folder
        self._wall = wall
        self._rng = rng or random.Random()
        self._network = network or Loopback()
        self._driver: FabricDriver | None = None
        self._brokers: Brokers | None = None
        self._injection: Injection | None = None
        self._logs: BrokerLogs | None = None
        self._attribution: Attribution | None = None

    # Beginning and end.

    async def __aenter__(self) -> "Self":
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if error is None and self._driver is not None and self._driver.defects:
            first = self._driver.defects[0]
            raise LabDefect(
                f"The lab went wrong {len(self._driver.defects)} times while it ran, first with {first!r}."
            ) from first

    async def open(self) -> "Self":
        """Start all brokers. Raises LabError, and leaves nothing behind then."""
        if self._driver is not None:
            raise LabError("A cluster can be opened once; make another one.")
        loop = asyncio.get_running_loop()
        if self._plan is not None:
            await self._mappings.check()
        bound_ports = self._network.bind_all(self.size, self._port)
        try:
            for at, (node_id, port) in enumerate(zip(self.node_ids, bound_ports, strict=True)):
                rack = self._racks[at] if self._racks else None
                self.endpoints[node_id] = Endpoint(node_id, port.host, port.number, rack)
            clock = ClusterClock(self._wall, loop.time)
            fabric = self._new_fabric(clock.now())
            if self.log_folder is not None:
                self._logs = BrokerLogs(self.log_folder, self.persona.name, self.node_ids)
                for node_id in self.node_ids:
                    fabric.broker(node_id).log_keeper = self._logs.write
                    self._logs.started(node_id, clock.now())
            driver = self._driver = FabricDriver(fabric, clock, loop)
            faults = Faults(clock.now, self._topic_name)
            attribution = self._attribution = self._new_attribution(driver, faults)
            largest = int(self.config.get("socket.request.max.bytes", LARGEST_FRAME))
            listeners = {
                node_id: Listener(
                    endpoint,
                    ServedBroker(
                        node_id,
                        driver,
                        faults,
                        self.persona,
                        self._neighbours,
                        largest,
                        life=partial(self._life, node_id),
                    ),
                )
                for node_id, endpoint in self.endpoints.items()
            }
            self._brokers = Brokers(driver, listeners, self._network, self._logs, attribution)
            self._injection = Injection(self._brokers, faults, self.persona)
            if attribution is not None:
                for node_id in self.node_ids:
                    attribution.begin(node_id)
            for listener in listeners.values():
                listener.open(bound_ports[0])
                del bound_ports[0]
            if self._control_port is not None:
                self._control = Control(self._brokers, self._injection)
                self._control.open(self._control_port)
            driver.touched()
        except BaseException:
            for port in bound_ports:
                port.close()
            await self.close()
            raise
        log.info("Kafka %s, %d brokers: %s", self.persona.name, self.size, self.bootstrap_servers)
        return self

    async def close(self) -> None:
        """Ends everything. Closing twice is harmless."""
        if self._control is not None:
            await self._control.close()
            self._control = None
        if self._driver is not None:
            self._driver.close()
        if self._injection is not None:
            self._injection.faults.close()
        if self._brokers is not None:
            await self._brokers.close()
        if self._attribution is not None:
            await self._attribution.close()
        if self._logs is not None:
            self._logs.close()

    # State.

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{broker.host}:{broker.port}" for broker in self.endpoints.values())

    @property
    def control_address(self) -> str | None:
        """Where the control API is, as the beginning of a URL."""
        return None if self._control is None else self._control.address

    @property
    def attribution(self) -> str | None:
        """The name of the plan by which brokers know the group of a fetch; None if they do not count."""
        return None if self._plan is None else self._plan.name

    @property
    def brokers(self) -> Brokers:
        return _opened(self._brokers)

    @property
    def injection(self) -> Injection:
        return _opened(self._injection)

    @property
    def driver(self) -> FabricDriver:
        return _opened(self._driver)

    @property
    def faults(self) -> Faults:
        """All faults that were caused, by id."""
        return self.injection.faults

    @property
    def fabric(self) -> Fabric:
        return self.driver.fabric

    def is_alive(self, node_id: int) -> bool:
        return self.brokers.is_alive(node_id)

    def describe(self) -> dict[str, Any]:
        """Brokers, topics with their partitions, and groups, as plain data."""
        return self.brokers.describe()

    def metrics(self) -> str:
        """The text that Prometheus reads."""
        return self.brokers.metrics()

    def scrape(self, node_id: int, *, dated: bool = False, verbatim: bool = False) -> str:
        """What this broker exports for Prometheus, under KoP's names. Only with a plan of attribution.

        `dated`: each sample has its time. `verbatim`: names are not escaped, as KoP writes them.
        """
        return self.brokers.scrape(node_id, dated=dated, verbatim=verbatim)

    async def mappings(self, root: str = KOP_ROOT) -> dict[str, str]:
        """The mapping tree: path and value of each node below the root. Only with a plan of attribution."""
        tree = await self.brokers.attribution.tree(root) or {}
        return {path: node.data.decode(errors="replace") for path, node in sorted(tree.items())}

    # Faults.

    kill = _of_injection(Injection.kill)
    stop = _of_injection(Injection.stop)
    start = _of_injection(Injection.start)
    restart = _of_injection(Injection.restart)
    isolate = _of_injection(Injection.isolate)
    rejoin = _of_injection(Injection.rejoin)
    wall_off = _of_injection(Injection.wall_off)
    freeze_metadata = _of_injection(Injection.freeze_metadata)
    thaw_metadata = _of_injection(Injection.thaw_metadata)
    lag = _of_injection(Injection.lag)
    shrink_isr = _of_injection(Injection.shrink_isr)
    make_leaderless = _of_injection(Injection.make_leaderless)
    elect = _of_injection(Injection.elect)
    slow_load = _of_injection(Injection.slow_load)
    lose_offsets = _of_injection(Injection.lose_offsets)
    expire_offsets = _of_injection(Injection.expire_offsets)
    stall = _of_injection(Injection.stall)
    fail = _of_injection(Injection.fail)
    delay = _of_injection(Injection.delay)
    silence = _of_injection(Injection.silence)
    disconnect = _of_injection(Injection.disconnect)
    observe = _of_injection(Injection.observe)
    hold_mappings = _of_injection(Injection.hold_mappings)
    refuse_mappings = _of_injection(Injection.refuse_mappings)
    strike = _of_injection(Injection.strike)

    # Waiting, and topics.

    async def wait_until(self, condition: Callable[[State], object], limit_s: float = 30.0) -> dict[str, Any]:
        """Return the description of the cluster when it fulfils the condition. Raises TimeoutError."""
        came_true: asyncio.Future[dict[str, Any]] = self.driver.loop.create_future()

        def check() -> None:
            if came_true.done():
                return
            try:
                state = self.describe()
                if condition(state):
                    came_true.set_result(state)
            except Exception as error:
                came_true.set_exception(error)

        self.driver.watchers.append(check)
        try:
            check()
            return await asyncio.wait_for(came_true, limit_s)
        except TimeoutError:
            raise TimeoutError(f"It did not come true within {limit_s} s.") from None
        finally:
            self.driver.watchers.remove(check)

    async def wait_for_group(
        self, group: str, state: str = "Stable", *, members: int | None = None, limit_s: float = 30.0
    ) -> dict[str, Any]:
        """Return the description of the group when it is in this state (with so many members)."""

        def wanted_group(cluster: State) -> dict[str, Any] | None:
            for described in cluster["groups"]:
                if described["group"] == group and described["state"] == state:
                    count = self._members(described)
                    return {**described, "members": count} if members in (None, count) else None
            return None

        try:
            described = wanted_group(await self.wait_until(wanted_group, limit_s))
        except TimeoutError:
            raise TimeoutError(f"Group {group!r} did not become {state} within {limit_s} s.") from None
        assert described is not None
        return described

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Raises LabError where the cluster refuses it.

        `assignment`: the replicas of each partition, the one to lead first; it wins over the numbers.
        """
        replicas = replication or int(self.config.get("default.replication.factor", 1))
        settings = settings_as_text(config or {})
        self.brokers.change(
            lambda fabric, now: fabric.create_topic(
                name, partitions, replicas, now, config=settings, assignment=assignment
            )
        )

    # Parts.

    def _new_fabric(self, now: Instant) -> Fabric:
        cluster_id = base64.urlsafe_b64encode(self._new_uuid().bytes).decode().rstrip("=")
        spec = ClusterSpec(tuple(self.endpoints.values()), self.persona.name, self.config, cluster_id)
        return Fabric(spec, now=now, new_id=lambda: str(self._new_uuid()))

    def _new_attribution(self, driver: FabricDriver, faults: Faults) -> Attribution | None:
        return None if self._plan is None else Attribution(self._plan, self._mappings, driver, faults)

    def _life(self, node_id: int) -> BrokerLife | None:
        return None if self._attribution is None else self._attribution.life(node_id)

    def _new_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._rng.getrandbits(128), version=4)

    def _members(self, group: State) -> int:
        host = self.fabric.broker(group["coordinator"]).groups.hosts[group["partition"]]
        return len(host.shard.describe(group["group"], 0).members)

    def _neighbours(self) -> list[Endpoint]:
        return [broker for broker in self.endpoints.values() if self.fabric.is_alive(broker.node_id)]

    def _topic_name(self, topic_id: bytes) -> str | None:
        return self.fabric.controller.image.names.get(topic_id)
