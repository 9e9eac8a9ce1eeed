"""The plan `connection`: KoP as it is, since version 2.9 (pull request 1256).

Writes the mapping when FindCoordinator is answered, on whichever broker answered it. Deletes the mapping
when the connection closes on which that FindCoordinator came, for each client id that came on it.

What breaks it: that connection closes while the consumer lives on, and then the consumer fetches on a new
connection, because its partition has moved. The connection closes when its broker restarts, and also by
itself: it is idle once the coordinator is found, and the Java client closes idle connections after nine
minutes. Two groups with one client id share a node: the last writer has the traffic of both, and whoever
closes first deletes the mapping of both. A broker that is killed deletes nothing: the mapping stays for
ever, and a consumer without a group, but with the same client id, is counted for the dead one.
"""

from collections import defaultdict

from kelpie.attribution.addresses import ClientAddress, mapping_path
from kelpie.attribution.counters import Counters
from kelpie.attribution.mapping_plan import MappingPlan
from kelpie.attribution.plan import Connection
from kelpie.attribution.requests import Delete, Request
from kelpie.model.time import Instant


class ConnectionPlan(MappingPlan):
    name = "connection"

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self._clients: defaultdict[Connection, dict[ClientAddress, None]] = defaultdict(dict)
        """The clients that asked on a connection, in order. Their mappings are deleted with it."""

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        return self._put_until_closed(connection, client, group)

    def connection_closed(self, connection: Connection, now: Instant) -> list[Request]:
        super().connection_closed(connection, now)
        paths = [mapping_path(client) for client in self._clients.pop(connection, ())]
        return [Delete(self.broker, path) for path in paths if path is not None]

    def _put_until_closed(self, connection: Connection, client: ClientAddress, group: str) -> list[Request]:
        self._clients[connection][client] = None
        return self._put(client, group)
