"""The plan `coordinator`: the second plan of the document.

Writes the mapping when FindCoordinator is answered, on whichever broker answered it.
Deletes the mapping when the group's coordinator removes the member, because it left or because its session
expired. A broker that shuts down no longer deletes: sessions expire then that nobody could keep alive.

What breaks it: the deletion overtakes a newer write. After a long pause (a full garbage collection), the
client notices its timeout before the coordinator does. It asks for the coordinator, which writes the
mapping; then the coordinator expires the old member, which deletes it. Nothing tells the deletion which
write it belongs to. A client that is expired first, and joins again without FindCoordinator, loses its
mapping too. A member that does not join again in a rebalance is removed on a third way, which does not
delete: its mapping leaks. A consumer that only assigns itself partitions is never removed: its mapping
leaks. Two groups with one client id, or two members of one group, share a node.
"""

from kelpie.attribution.addresses import ClientAddress, mapping_path
from kelpie.attribution.counters import Counters
from kelpie.attribution.mapping_plan import MappingPlan
from kelpie.attribution.plan import Connection, Removal
from kelpie.attribution.requests import Delete, Request
from kelpie.model.time import Instant

_REMOVED_DIRECTLY = (Removal.NOT_REJOINED, Removal.REPLACED)
"""KoP removes these without `removeMemberAndUpdateGroup`, where the document put the deletion."""


class CoordinatorPlan(MappingPlan):
    name = "coordinator"

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self._is_shutting_down = False

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        return self._put(client, group)

    def member_removed(
        self, group: str, member_id: str, client: ClientAddress, reason: Removal, now: Instant
    ) -> list[Request]:
        path = mapping_path(client)
        if path is None or self._is_shutting_down or reason in _REMOVED_DIRECTLY:
            return []
        return [Delete(self.broker, path)]

    def shutting_down(self, now: Instant) -> list[Request]:
        self._is_shutting_down = True
        return []
