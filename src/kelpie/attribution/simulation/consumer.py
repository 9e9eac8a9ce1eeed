"""A consumer, with the connections that the Java client has.

One connection is for FindCoordinator, one goes to the coordinator, and one to each broker that it reads from.
An object is one process; a restart is a new object.
"""

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.simulation.group import HEARTBEAT_MS, SESSION_MS
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

if TYPE_CHECKING:
    from kelpie.attribution.simulation.cluster import SimulatedCluster

_FIND_AGAIN_MS = 6_000


class ConsumerKind(Enum):
    SUBSCRIBES = "subscribes"
    ASSIGNS = "assigns"
    """It has a group, and asks for its coordinator to have its offsets; it never joins."""
    HAS_NO_GROUP = "has no group"


class SimulatedConsumer:
    def __init__(
        self,
        cluster: "SimulatedCluster",
        group: str,
        client: ClientAddress,
        kind: ConsumerKind,
        *,
        partitions: tuple[TopicPartition, ...],
        finder: int | None,
        every_ms: tuple[float, float],
    ) -> None:
        self.group = group
        self.client = client
        self.kind = kind
        self.member_id: str | None = None
        self.assigned: tuple[TopicPartition, ...] = ()
        self.is_alive = True
        self.is_silent = False
        self.is_stuck = False
        """It sends heartbeats, but does not poll: it neither fetches nor joins again."""
        self.silence = 0
        """Grows when heartbeats end or begin again. Timers of an earlier silence are void."""
        self._cluster = cluster
        self._own_partitions = partitions
        self._finder = finder
        self._every_ms = every_ms
        self._fetch_connections: dict[int, int] = {}
        self._find_connection: tuple[int, int] | None = None
        self._coordinator_connection: tuple[int, int] | None = None
        self._find = 0
        """The number of the last FindCoordinator. Answers to earlier ones are void."""
        self._turn = 0
        self._paused_at: Instant = 0
        self._is_eager = cluster.chance.random() < 0.5

    def start(self) -> None:
        agenda, chance = self._cluster.agenda, self._cluster.chance
        agenda.after(chance.uniform(*self._every_ms), self._fetch)
        if self.kind is ConsumerKind.HAS_NO_GROUP:
            self.assigned = self._own_partitions
        else:
            self.find_coordinator()

    def find_coordinator(self) -> None:
        """Ask any broker; then go on as a member, or join."""
        cluster = self._cluster
        if not self.is_alive or self.is_silent:
            return
        number = self._finder
        if number is None or not cluster.serves(number):
            number = cluster.any_broker()
        self._find += 1
        cluster.agenda.after(_FIND_AGAIN_MS, self._find_again, self._find)
        if number is None:
            return
        broker = cluster.brokers[number]
        if (
            self._find_connection is None
            or self._find_connection[0] != number
            or not self._is_open(self._find_connection)
        ):
            self._find_connection = (number, cluster.connect(number))
            if cluster.idle_close_ms is not None:
                cluster.agenda.after(cluster.idle_close_ms, self._close, self._find_connection)
        requests = broker.plan.coordinator_found(
            self._find_connection[1], self.client, self.group, cluster.agenda.now
        )
        broker.send(requests, partial(self._coordinator_found, self._find))

    def join_again(self, member_id: str) -> None:
        """A heartbeat was answered with REBALANCE_IN_PROGRESS."""
        if self.is_alive and not (self.is_silent or self.is_stuck) and member_id == self.member_id:
            self._join()

    def assign(self, member_id: str, partitions: tuple[TopicPartition, ...]) -> None:
        if self.is_alive and member_id == self.member_id:
            self.assigned = partitions

    def coordinator_lost(self) -> None:
        if self.is_alive and not self.is_silent:
            self._cluster.agenda.after(self._cluster.chance.uniform(100, 3_000), self.find_coordinator)

    def reconnect(self) -> None:
        """The connection to the coordinator breaks; the next heartbeat makes another. It stays a member."""
        if self._coordinator_connection is not None and self.is_alive:
            self._close(self._coordinator_connection)
            self._coordinator_connection = None
            self._cluster.agenda.after(self._cluster.chance.uniform(50, 1_000), self.heartbeat)

    def pause(self, pause_ms: float) -> None:
        if not self.is_alive or self.is_silent:
            return
        self._paused_at = self._cluster.agenda.now
        self._fall_silent()
        self._cluster.agenda.after(pause_ms, self._wake)

    def get_stuck(self) -> None:
        self.is_stuck = True

    def close(self) -> None:
        if not self.is_alive:
            return
        self.is_alive = False
        if self.kind is ConsumerKind.SUBSCRIBES:
            if self.is_silent:
                self._fall_silent()
            else:
                self.silence += 1
                self.is_silent = True
                self._cluster.groups[self.group].leave(self)
        self._close_all()

    def kill(self) -> None:
        """The operating system closes its connections; the group learns nothing."""
        if self.is_alive:
            self.is_alive = False
            self._fall_silent()
            self._close_all()

    def _fall_silent(self) -> None:
        self.is_silent = True
        self.silence += 1
        if self.kind is ConsumerKind.SUBSCRIBES:
            self._cluster.groups[self.group].silent(self)

    def _wake(self) -> None:
        """A client that notices its own timeout looks for the coordinator first. Others send a heartbeat."""
        if not self.is_alive:
            return
        self.is_silent = False
        chance = self._cluster.chance
        if self.kind is not ConsumerKind.SUBSCRIBES:
            return
        if self._cluster.agenda.now - self._paused_at >= SESSION_MS - HEARTBEAT_MS and chance.random() < 0.7:
            self.assigned = () if self._is_eager else self.assigned
            self.find_coordinator()
        else:
            self._cluster.agenda.after(chance.uniform(0, 300), self.heartbeat)

    def heartbeat(self) -> None:
        """Go on as a member, or join, or look for the coordinator again."""
        group = self._cluster.groups[self.group]
        if not self.is_alive or self.is_silent:
            return
        if group.coordinator is None:
            chance = self._cluster.chance
            self._cluster.agenda.after(chance.uniform(500, 1_500), self.find_coordinator)
        elif self.member_id in group.members:
            self.silence += 1
            self._connection_to_coordinator(group.coordinator)
            if group.awaits(self.member_id) or not self.assigned:
                self.join_again(self.member_id)
        else:
            self.assigned = ()
            self._join()

    def _coordinator_found(self, find: int) -> None:
        if find != self._find or not self.is_alive or self.is_silent:
            return
        self._find += 1
        if self.kind is ConsumerKind.ASSIGNS:
            self.assigned = self._own_partitions
            return
        self._cluster.agenda.after(self._cluster.chance.uniform(5, 300), self.heartbeat)

    def _find_again(self, find: int) -> None:
        if find == self._find:
            self.find_coordinator()

    def _join(self) -> None:
        group = self._cluster.groups[self.group]
        if group.coordinator is None:
            self.heartbeat()
            return
        self.silence += 1
        if self._is_eager:
            self.assigned = ()
        group.join(self, self._connection_to_coordinator(group.coordinator))

    def _connection_to_coordinator(self, coordinator: int) -> int:
        connection = self._coordinator_connection
        if connection is None or connection[0] != coordinator or not self._is_open(connection):
            connection = self._coordinator_connection = (coordinator, self._cluster.connect(coordinator))
        return connection[1]

    def _fetch(self) -> None:
        cluster = self._cluster
        if not self.is_alive or cluster.is_at_rest:
            return
        cluster.agenda.after(cluster.chance.uniform(*self._every_ms), self._fetch)
        if self.is_silent or self.is_stuck or not self.assigned:
            return
        self._turn += 1
        partition = self.assigned[self._turn % len(self.assigned)]
        leader = cluster.leaders[partition]
        if not cluster.serves(leader):
            return
        broker = cluster.brokers[leader]
        connection = self._fetch_connections.get(leader)
        if connection is None or connection not in broker.connections:
            connection = self._fetch_connections[leader] = cluster.connect(leader)
        amount = cluster.samples.fetch(self.group)
        broker.send(broker.plan.fetched(connection, self.client, partition, amount, cluster.agenda.now))

    def _is_open(self, connection: tuple[int, int]) -> bool:
        return (
            self._cluster.serves(connection[0])
            and connection[1] in self._cluster.brokers[connection[0]].connections
        )

    def _close(self, connection: tuple[int, int]) -> None:
        self._cluster.brokers[connection[0]].close(connection[1])

    def _close_all(self) -> None:
        for connection in (self._find_connection, self._coordinator_connection):
            if connection is not None:
                self._close(connection)
        for broker, number in self._fetch_connections.items():
            self._close((broker, number))
