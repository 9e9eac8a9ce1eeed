"""The plan `join`: the first plan of the document.

Writes the mapping when JoinGroup arrives, which only the coordinator answers.
Deletes the mapping when the connection closes on which that JoinGroup came.

What breaks it: the connection to the coordinator closes and the member stays. A consumer that reconnects
within its session timeout goes on with its heartbeats, and does not join again. The same holds when the
coordinator moves: the new one has the members from its log. So nothing writes the mapping again. A consumer
that only assigns itself partitions never joins, and never has a mapping. Two groups with one client id share
a node, as in the plan `connection`.
"""

from kelpie.attribution.addresses import ClientAddress
from kelpie.attribution.connection import ConnectionPlan
from kelpie.attribution.plan import Connection
from kelpie.attribution.requests import Request
from kelpie.model.time import Instant


class JoinPlan(ConnectionPlan):
    name = "join"

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        return []

    def member_joined(
        self, connection: Connection, client: ClientAddress, member_id: str, group: str, now: Instant
    ) -> list[Request]:
        return self._put_until_closed(connection, client, group)
