"""What all plans on KoP's tree share: one node per address, read once per connection.

KoP reads the node at a connection's first fetch that brings messages, and keeps the answer as long as the
connection lasts: also the answer that there is no node, and also a failure. So a mapping that comes late, or
that somebody mends, does not help the connections that asked before.
"""

from collections import defaultdict, deque

from kelpie.attribution.addresses import ClientAddress, mapping_path, node_value, read_node_value
from kelpie.attribution.counters import UNKNOWN, Amount, Counters
from kelpie.attribution.plan import Connection, Plan
from kelpie.attribution.requests import Put, Read, Request, Result
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class MappingPlan(Plan):
    misses_are_read_again_after_ms: int | None = None
    """None: never, as in KoP."""

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self._labels: dict[Connection, str] = {}
        self._missed_at: dict[Connection, Instant] = {}
        self._uncounted: dict[Connection, list[tuple[TopicPartition, Amount]]] = {}
        self._readers: defaultdict[str, deque[Connection]] = defaultdict(deque)
        """Connections that wait for a node's value, in the order of the requests."""
        self._closed: set[Connection] = set()
        """Closed connections that still wait for an answer."""

    def connection_closed(self, connection: Connection, now: Instant) -> list[Request]:
        self._labels.pop(connection, None)
        self._missed_at.pop(connection, None)
        if connection in self._uncounted:
            self._closed.add(connection)
        return []

    def fetched(
        self,
        connection: Connection,
        client: ClientAddress,
        partition: TopicPartition,
        amount: Amount,
        now: Instant,
    ) -> list[Request]:
        waiting = self._uncounted.get(connection)
        if waiting is not None:
            waiting.append((partition, amount))
            return []
        label = self._labels.get(connection)
        if label is not None and not self._is_read_again(connection, now):
            self.counters.count(partition, label, amount)
            return []
        path = mapping_path(client)
        if path is None:
            self._labels[connection] = UNKNOWN
            self.counters.count(partition, UNKNOWN, amount)
            return []
        self._uncounted[connection] = [(partition, amount)]
        self._readers[path].append(connection)
        return [Read(self.broker, path)]

    def answered(self, request: Request, result: Result, now: Instant) -> list[Request]:
        if isinstance(request, Read) and self._readers.get(request.path):
            value = result if isinstance(result, bytes) else b""
            self._label_known(request.path, read_node_value(value), now)
        return []

    def failed(self, request: Request, now: Instant) -> list[Request]:
        if isinstance(request, Read) and self._readers.get(request.path):
            self._label_known(request.path, UNKNOWN, now)
        return []

    def _put(self, client: ClientAddress, group: str) -> list[Request]:
        path = mapping_path(client)
        return [] if path is None else [Put(self.broker, path, node_value(group))]

    def _is_read_again(self, connection: Connection, now: Instant) -> bool:
        limit, missed_at = self.misses_are_read_again_after_ms, self._missed_at.get(connection)
        return limit is not None and missed_at is not None and now - missed_at >= limit

    def _label_known(self, path: str, label: str, now: Instant) -> None:
        readers = self._readers[path]
        connection = readers.popleft()
        if not readers:
            del self._readers[path]
        for partition, amount in self._uncounted.pop(connection):
            self.counters.count(partition, label, amount)
        if connection in self._closed:
            self._closed.discard(connection)
            return
        self._labels[connection] = label
        self._missed_at.pop(connection, None)
        if label == UNKNOWN:
            self._missed_at[connection] = now
