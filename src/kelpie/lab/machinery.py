"""The works behind the faults: brokers go down and come up, faults are registered, arguments are checked."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from kelpie.broker.controller import Declined
from kelpie.broker.fabric import Fabric
from kelpie.broker.image import NO_LEADER
from kelpie.broker.personas import Persona
from kelpie.lab.broker_log import BrokerLogs
from kelpie.lab.driver import Driver, log
from kelpie.lab.failures import LabError
from kelpie.lab.faults import Circumstance, Fault, Faults
from kelpie.lab.listener import Listener
from kelpie.lab.matching import Filter
from kelpie.lab.network import LOOPBACK, Network, Port
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

AnyFault = TypeVar("AnyFault", bound=Fault)

_FAREWELL_S = 1.0
"""How long a broker that stops waits for its last answers to leave."""


class Machinery:
    """What a cluster is made of while it runs."""

    node_ids: tuple[int, ...]
    persona: Persona

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or LOOPBACK
        self._listeners: dict[int, Listener] = {}
        self._reserved: dict[int, Port] = {}
        self._faults: Faults | None = None
        self._driver: Driver | None = None
        self._logs: BrokerLogs | None = None

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            raise LabError("The cluster has not been opened yet.")
        return self._driver

    @property
    def faults(self) -> Faults:
        """All that were caused, by id."""
        if self._faults is None:
            raise LabError("The cluster has not been opened yet.")
        return self._faults

    def _do(self, change: Callable[[Fabric, Instant], object]) -> None:
        """Does something to the fabric. Raises LabError when the cluster will not have it."""
        try:
            self.driver.change(change)
        except Declined as declined:
            raise LabError(f"{declined.message} ({declined.code.name})") from None

    # Brokers down and up.

    async def _put_down(self, node_id: int, *, abruptly: bool) -> Fault:
        self._check_known(node_id)
        if not self.driver.fabric.is_alive(node_id):
            raise LabError(f"Broker {node_id} is down already.")
        listener = self._listeners[node_id]
        if abruptly:
            cut = listener.close(abruptly=True)
            self._do(lambda fabric, now: fabric.kill(node_id, now))
        else:
            self._do(lambda fabric, now: fabric.stop(node_id, now))
            if self._logs is not None:
                self._logs.stopped(node_id, self.driver.clock.now())
            cut = listener.close(abruptly=False)
        self._reserve(node_id)
        log.info("broker %d %s; %d connections", node_id, "is killed" if abruptly else "stops", cut)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.closed(), _FAREWELL_S)
        for connection in tuple(listener.connections):
            connection.close(abruptly=True)
        await listener.closed()
        what = f"broker {node_id} {'killed' if abruptly else 'stopped'}"
        fault = self._added(Fault(what, lambda: self._bring_up(node_id)))
        fault.strike(cut)
        return fault

    def _bring_up(self, node_id: int) -> None:
        """Does nothing to a broker that is up."""
        if self.driver.fabric.is_alive(node_id):
            return
        listener = self._listeners[node_id]
        bound = self._reserved.pop(node_id, None) or self._network.bind(listener.endpoint.port)
        try:
            listener.open(bound)
        except OSError as error:
            bound.close()
            raise LabError(
                f"Broker {node_id} cannot have its port {listener.endpoint.port} back ({error.strerror})."
            ) from None
        if self._logs is not None:
            self._logs.started(node_id, self.driver.clock.now())
        # Nobody is let in before the next turn of the loop.
        self._do(lambda fabric, now: fabric.start(node_id, now))
        log.info("broker %d is up", node_id)

    async def _close_port(self, node_id: int) -> int:
        """Nobody comes in any more, whoever is in is cut off: how many. The broker lives on."""
        listener = self._listeners[node_id]
        cut = listener.close(abruptly=True)
        await listener.closed()
        self._reserve(node_id)
        return cut

    def _open_port(self, node_id: int) -> None:
        listener = self._listeners[node_id]
        if self.driver.fabric.is_alive(node_id) and not listener.is_open:
            bound = self._reserved.pop(node_id, None) or self._network.bind(listener.endpoint.port)
            listener.open(bound)

    def _reserve(self, node_id: int) -> None:
        with contextlib.suppress(LabError):
            self._reserved[node_id] = self._network.bind(self._listeners[node_id].endpoint.port)

    async def _end(self) -> None:
        """No socket, task or timer stays behind."""
        if self._faults is not None:
            self._faults.close()
        for listener in self._listeners.values():
            listener.close(abruptly=True)
        for listener in self._listeners.values():
            await listener.closed()
        for reserved in self._reserved.values():
            reserved.close()
        self._reserved.clear()

    # Faults.

    def _added(self, fault: AnyFault) -> AnyFault:
        self.faults.add(fault)
        log.info("%s begins", fault)
        return fault

    def _circumstance(self, what: str, met_by: Filter, undo: Callable[[], None] | None) -> Fault:
        return self._added(Circumstance(what, met_by, self.faults.name_of, undo))

    def _happened(self, what: str) -> Fault:
        """Something that is over in the moment in which it happens."""
        fault = self._added(Fault(what))
        fault.strike()
        fault.lift()
        return fault

    def _review_all(self) -> None:
        for listener in self._listeners.values():
            for connection in tuple(listener.connections):
                connection.review()

    def _elect_if_need_be(self, partition: TopicPartition) -> None:
        state = self.driver.fabric.controller.image.partition(partition)
        if state is not None and state.leader == NO_LEADER:
            self._do(lambda fabric, now: fabric.elect(partition, now, unclean=False))

    # Arguments.

    def _filter(
        self,
        api: int | str | None = None,
        node: int | None = None,
        client: str | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> Filter:
        if node is not None:
            self._check_known(node)
        return Filter(api, node, client, topic, group)

    def _check_known(self, node_id: int) -> None:
        if node_id not in self.node_ids:
            known = f"{self.node_ids[0]} to {self.node_ids[-1]}"
            raise LabError(f"There is no broker {node_id}; there are {known}.")

    def _replicas(self, partition: TopicPartition) -> list[int]:
        state = self.driver.fabric.controller.image.partition(partition)
        assert state is not None
        return list(state.replicas)

    def _partition(self, topic: str, partition: int) -> TopicPartition:
        known = self.driver.fabric.controller.image.topic(topic)
        if known is None:
            raise LabError(f"There is no topic {topic!r}.")
        count = len(known.partitions)
        if not 0 <= partition < count:
            raise LabError(f"Topic {topic!r} has no partition {partition}; it has {count} from 0 on.")
        return TopicPartition(topic, partition)
