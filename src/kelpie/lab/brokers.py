"""The brokers of a running cluster on their ports: they go down and come up again."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from kelpie.broker.declined import Declined
from kelpie.broker.fabric import Fabric
from kelpie.broker.image import NO_LEADER, Endpoint
from kelpie.lab.attribution import Attribution
from kelpie.lab.broker_log import BrokerLogs
from kelpie.lab.connection import BrokerConnection, ServedBroker
from kelpie.lab.driver import FabricDriver, log
from kelpie.lab.kop_metrics import kop_exposition
from kelpie.lab.lab_errors import LabError
from kelpie.lab.metrics import exposition
from kelpie.lab.network import BrokerNetwork, Port, Server
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_LAST_ANSWERS_S = 1.0
"""How long a broker that stops waits until its last answers are sent."""


class Listener:
    """The port of one broker and the connections on it."""

    def __init__(self, endpoint: Endpoint, broker: ServedBroker) -> None:
        self.endpoint = endpoint
        self.broker = broker
        self.connections: set[BrokerConnection] = set()
        self._server: Server | None = None
        self._emptied: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._server is not None and self._server.is_open

    def open(self, port: Port) -> None:
        """Serve on the port. Raises OSError when another process listens there."""
        self._server = port.listen(self._new_connection, self.broker.driver.loop)

    def close(self, *, abruptly: bool) -> int:
        """Close the port and all connections; return how many. Abruptly: answers not yet sent are lost."""
        if self._server is not None:
            self._server.close()
        cut = [connection for connection in self.connections if not connection.closed]
        for connection in cut:
            connection.close(abruptly=abruptly)
        return len(cut)

    async def closed(self) -> None:
        """Return when no socket of this listener is left."""
        if self._server is not None:
            await self._server.settled()
        while self.connections:
            self._emptied = self.broker.driver.loop.create_future()
            await self._emptied

    def _new_connection(self) -> BrokerConnection:
        return BrokerConnection(self.broker, made=self._made, lost=self._lost)

    def _made(self, connection: BrokerConnection) -> bool:
        self.connections.add(connection)
        return self.is_open

    def _lost(self, connection: BrokerConnection) -> None:
        self.broker.meter.connections -= 1
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)


class Brokers:
    def __init__(
        self,
        driver: FabricDriver,
        listeners: Mapping[int, Listener],
        network: BrokerNetwork,
        logs: BrokerLogs | None,
        attribution: Attribution | None,
    ) -> None:
        self.driver = driver
        self._attribution = attribution
        self.node_ids = tuple(listeners)
        self._listeners = listeners
        self._network = network
        self._logs = logs
        self._reserved: dict[int, Port] = {}
        """Ports of brokers that are down: they stay bound."""

    @property
    def fabric(self) -> Fabric:
        return self.driver.fabric

    def change(self, change: Callable[[Fabric, Instant], object]) -> None:
        """Changes the fabric. Raises LabError if the cluster refuses."""
        try:
            self.driver.change(change)
        except Declined as declined:
            raise LabError(f"{declined.message} ({declined.code.name})") from None

    # State.

    def check_known(self, node_id: int) -> None:
        if node_id not in self.node_ids:
            known = f"{self.node_ids[0]} to {self.node_ids[-1]}"
            raise LabError(f"There is no broker {node_id}; there are {known}.")

    def is_alive(self, node_id: int) -> bool:
        self.check_known(node_id)
        return self.fabric.is_alive(node_id)

    def describe(self) -> dict[str, Any]:
        """Brokers, topics with their partitions, and groups, as plain data."""
        return self.fabric.describe()

    def metrics(self) -> str:
        """The text that Prometheus reads."""
        meters = {node: listener.broker.meter for node, listener in self._listeners.items()}
        return exposition(meters, self.describe())

    @property
    def attribution(self) -> Attribution:
        """Raises LabError if the brokers do not count by group."""
        if self._attribution is None:
            raise LabError(
                "The brokers do not count traffic by group: give the cluster a plan of attribution."
            )
        return self._attribution

    def scrape(self, node_id: int, *, dated: bool = False, verbatim: bool = False) -> str:
        """What a broker exports as KoP would. Raises LabError if the broker is down, or does not count."""
        life = self.attribution.life(node_id) if self.is_alive(node_id) else None
        if life is None:
            raise LabError(f"Broker {node_id} is down.")
        connections = self._listeners[node_id].broker.meter.connections
        at = self.driver.clock.now() if dated else None
        return kop_exposition(life, connections, self.driver.loop.time(), at=at, verbatim=verbatim)

    def partition(self, topic: str, partition: int) -> TopicPartition:
        """Raises LabError if there is no such partition."""
        known = self.fabric.controller.image.topic(topic)
        if known is None:
            raise LabError(f"There is no topic {topic!r}.")
        count = len(known.partitions)
        if not 0 <= partition < count:
            raise LabError(f"Topic {topic!r} has no partition {partition}; it has {count} from 0 on.")
        return TopicPartition(topic, partition)

    def replicas(self, partition: TopicPartition) -> list[int]:
        state = self.fabric.controller.image.partition(partition)
        assert state is not None
        return list(state.replicas)

    # Down and up.

    async def put_down(self, node_id: int, *, abruptly: bool) -> int:
        """Kills or stops the broker. Returns how many connections it had."""
        if not self.is_alive(node_id):
            raise LabError(f"Broker {node_id} is down already.")
        listener = self._listeners[node_id]
        if abruptly and self._attribution is not None:
            self._attribution.kill(node_id)
        if abruptly:
            cut = listener.close(abruptly=True)
            self.change(lambda fabric, now: fabric.kill(node_id, now))
        else:
            self.change(lambda fabric, now: fabric.stop(node_id, now))
            if self._logs is not None:
                self._logs.stopped(node_id, self.driver.clock.now())
            cut = listener.close(abruptly=False)
        self._reserve(node_id)
        log.info("broker %d %s; %d connections", node_id, "is killed" if abruptly else "stops", cut)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.closed(), _LAST_ANSWERS_S)
        for connection in tuple(listener.connections):
            connection.close(abruptly=True)
        await listener.closed()
        if self._attribution is not None:
            await self._attribution.end(node_id, abruptly=abruptly)
        return cut

    def bring_up(self, node_id: int) -> None:
        """Does nothing to a broker that is up."""
        if self.fabric.is_alive(node_id):
            return
        listener = self._listeners[node_id]
        port = self._reserved.pop(node_id, None) or self._network.bind(listener.endpoint.port)
        try:
            listener.open(port)
        except OSError as error:
            port.close()
            raise LabError(
                f"Broker {node_id} cannot have its port {listener.endpoint.port} back ({error.strerror})."
            ) from None
        if self._logs is not None:
            self._logs.started(node_id, self.driver.clock.now())
        if self._attribution is not None:
            self._attribution.begin(node_id)
        # The loop accepts no connection before its next iteration: by then the broker has started.
        self.change(lambda fabric, now: fabric.start(node_id, now))
        log.info("broker %d is up", node_id)

    async def close_port(self, node_id: int) -> int:
        """Closes all connections and accepts no more. The broker lives on. Returns how many were closed."""
        listener = self._listeners[node_id]
        cut = listener.close(abruptly=True)
        await listener.closed()
        self._reserve(node_id)
        return cut

    def open_port(self, node_id: int) -> None:
        listener = self._listeners[node_id]
        if self.fabric.is_alive(node_id) and not listener.is_open:
            port = self._reserved.pop(node_id, None) or self._network.bind(listener.endpoint.port)
            listener.open(port)

    def _reserve(self, node_id: int) -> None:
        with contextlib.suppress(LabError):
            self._reserved[node_id] = self._network.bind(self._listeners[node_id].endpoint.port)

    def review_connections(self) -> None:
        """Stalls have changed: each connection checks whether it may go on."""
        for listener in self._listeners.values():
            for connection in tuple(listener.connections):
                connection.review()

    def elect_if_leaderless(self, partition: TopicPartition) -> None:
        state = self.fabric.controller.image.partition(partition)
        if state is not None and state.leader == NO_LEADER:
            self.change(lambda fabric, now: fabric.elect(partition, now, unclean=False))

    async def close(self) -> None:
        """No socket, task or timer stays behind."""
        for listener in self._listeners.values():
            listener.close(abruptly=True)
        for listener in self._listeners.values():
            await listener.closed()
        for reserved in self._reserved.values():
            reserved.close()
        self._reserved.clear()
