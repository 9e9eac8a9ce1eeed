"""The brokers that the consumer knows, and which of them to ask when any will do.

That is the least loaded node, as Kafka's NetworkClient chooses it, beginning at a node drawn at random: a
connected node without requests in flight; else the connected node with the fewest; else one that is being
connected; else the one whose last attempt is longest ago. A node that has just failed is not tried for a
while. Bootstrap addresses are used while no broker is known, and again when no known broker can be asked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.config import ConsumerConfig
from kelpie.consumer.effects import BrokerNode, Failure, FailureKind
from kelpie.model.time import Instant


@dataclass(slots=True)
class _ConnectionState:
    """The state of a connection, concluded from the results of requests."""

    backoff: Backoff
    in_flight: int = 0
    is_connected: bool = False
    tried_at: Instant = -1


@dataclass(slots=True)
class BrokerConnections:
    config: ConsumerConfig
    bootstrap: tuple[BrokerNode, ...]
    draw: Callable[[int], int]
    """A random number below the one given."""
    _brokers: dict[int, BrokerNode] = field(default_factory=dict)
    _connections: dict[BrokerNode, _ConnectionState] = field(default_factory=dict)

    @classmethod
    def at(
        cls, config: ConsumerConfig, addresses: Iterable[tuple[str, int]], draw: Callable[[int], int]
    ) -> "BrokerConnections":
        nodes = tuple(BrokerNode(-1 - at, host, port) for at, (host, port) in enumerate(addresses))
        assert nodes, "a consumer needs an address to begin with"
        return cls(config, nodes, draw)

    def update(self, brokers: dict[int, tuple[str, int]]) -> None:
        if brokers:
            self._brokers = {
                node_id: BrokerNode(node_id, host, port) for node_id, (host, port) in brokers.items()
            }
        known = {*self._brokers.values(), *self.bootstrap}
        for node, connection in tuple(self._connections.items()):
            if node not in known and not node.for_group and not connection.in_flight:
                del self._connections[node]

    def broker(self, node_id: int | None) -> BrokerNode | None:
        return None if node_id is None else self._brokers.get(node_id)

    def least_loaded(self, now: Instant) -> BrokerNode | None:
        """None when all have just failed; `next_free` is when to try again."""
        return self._choose(tuple(self._brokers.values()), now) or self._choose(self.bootstrap, now)

    def next_free(self, now: Instant) -> Instant:
        """When a node can be asked again, if none can now."""
        waits = [self._connection(node).backoff.until for node in (*self._brokers.values(), *self.bootstrap)]
        return max(now + 1, min(waits))

    def is_unavailable(self, node: BrokerNode, now: Instant) -> bool:
        """Whether its connection has just failed, and no new attempt is due."""
        connection = self._connection(node)
        return not connection.is_connected and not connection.backoff.over(now)

    # Results of requests.

    def asked(self, node: BrokerNode, now: Instant) -> None:
        connection = self._connection(node)
        connection.in_flight += 1
        if not connection.is_connected:
            connection.tried_at = now

    def answered(self, node: BrokerNode) -> None:
        connection = self._connection(node)
        connection.in_flight -= 1
        connection.is_connected = True
        connection.backoff.succeeded()

    def unanswered(self, node: BrokerNode, failure: Failure, now: Instant) -> None:
        connection = self._connection(node)
        connection.in_flight -= 1
        if failure.breaks_connection:
            if connection.is_connected or connection.backoff.over(
                now
            ):  # One failure, however many requests were in flight.
                connection.backoff.failed(now)
            connection.is_connected = False
        elif failure.kind is FailureKind.UNSUPPORTED:
            connection.is_connected = True

    def _choose(self, nodes: tuple[BrokerNode, ...], now: Instant) -> BrokerNode | None:
        if not nodes:
            return None
        start = self.draw(len(nodes))
        rotated = nodes[start:] + nodes[:start]
        free = [node for node in rotated if not self.is_unavailable(node, now)]
        return min(free, key=self._rank, default=None)

    def _rank(self, node: BrokerNode) -> tuple[int, int]:
        connection = self._connection(node)
        if connection.is_connected:
            return 0, connection.in_flight
        if connection.in_flight:
            return 1, 0
        return 2, connection.tried_at

    def _connection(self, node: BrokerNode) -> _ConnectionState:
        known = self._connections.get(node)
        if known is None:
            config = self.config
            backoff = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
            known = self._connections[node] = _ConnectionState(backoff)
        return known
