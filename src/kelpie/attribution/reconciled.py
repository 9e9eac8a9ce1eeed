"""The plan `reconciled`: the third plan of the document.

Writes and deletes as the plan `coordinator` does. Besides, every coordinator compares the tree with the
members of its groups once a minute: it creates mappings that are missing, corrects those that name another
of its own groups, and deletes those that have been without a member for a grace time. A connection without a
label reads its mapping again as often. (KoP itself never does. The document reports that old connections got
their label back, which would be impossible without it.)

What breaks it: the same orders of events as in the plan `coordinator`, for as long as a minute each time;
the fetches of that time stay without a label. What it cannot see is never mended: consumers that only assign
themselves partitions, two groups with one client id, a wrong group that another broker coordinates. A
listing is old when it is acted upon, so a mapping can be created again for a member that has just left, and
stay until the grace time is over.
"""

from dataclasses import dataclass, field

from kelpie.attribution.addresses import KOP_ROOT, ClientAddress, mapping_path, read_node_value
from kelpie.attribution.coordinator import CoordinatorPlan
from kelpie.attribution.counters import Counters
from kelpie.attribution.plan import AssignedMember, Assignment, Connection, Removal
from kelpie.attribution.reconciliation import MappedMember, ReconciliationCounts, reconcile
from kelpie.attribution.requests import ReadChildren, Request, Result
from kelpie.model.time import Instant


@dataclass(slots=True)
class _Listing:
    """The tree as far as it has been read in this round."""

    outstanding: int = 0
    """Answers that are still to come."""
    groups: dict[str, str] = field(default_factory=dict)


class ReconciledPlan(CoordinatorPlan):
    name = "reconciled"
    interval_ms = 60_000
    grace_ms = 120_000
    misses_are_read_again_after_ms = 60_000

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self.counts = ReconciliationCounts()
        self._members: dict[str, dict[str, AssignedMember]] = {}
        self._listing: _Listing | None = None
        self._leaked_since: dict[str, Instant] = {}
        self._next_round: Instant | None = None

    def member_joined(
        self, connection: Connection, client: ClientAddress, member_id: str, group: str, now: Instant
    ) -> list[Request]:
        self._members.setdefault(group, {})[member_id] = AssignedMember(client, frozenset())
        return []

    def assignment_made(self, group: str, assignment: Assignment, now: Instant) -> list[Request]:
        self._members[group] = dict(assignment)
        return []

    def member_removed(
        self, group: str, member_id: str, client: ClientAddress, reason: Removal, now: Instant
    ) -> list[Request]:
        self._members.get(group, {}).pop(member_id, None)
        return super().member_removed(group, member_id, client, reason, now)

    def group_loaded(self, group: str, members: Assignment, epoch: int, now: Instant) -> list[Request]:
        self._members[group] = dict(members)
        return []

    def group_unloaded(self, group: str, now: Instant) -> list[Request]:
        self._members.pop(group, None)
        return []

    def tick(self, now: Instant) -> list[Request]:
        if self._next_round is None:
            self._next_round = now + self.interval_ms
        if now < self._next_round or self._is_shutting_down or not self._members:
            return []
        self._next_round = now + self.interval_ms
        # A client id with "/" has its node below another one, which is listed by itself.
        parents = {KOP_ROOT} | {path.rpartition("/")[0] for path in self._paths()}
        self._listing = _Listing(outstanding=len(parents))
        return [ReadChildren(self.broker, parent) for parent in sorted(parents)]

    def answered(self, request: Request, result: Result, now: Instant) -> list[Request]:
        if not isinstance(request, ReadChildren):
            return super().answered(request, result, now)
        listing = self._listing
        if listing is None or not isinstance(result, dict):
            return []
        for name, value in result.items():
            listing.groups[f"{request.path}/{name}"] = read_node_value(value)
        listing.outstanding -= 1
        return [] if listing.outstanding else self._reconcile(listing.groups, now)

    def failed(self, request: Request, now: Instant) -> list[Request]:
        if isinstance(request, ReadChildren):
            # Half a listing looks as if mappings were missing. The next round lists anew.
            self._listing = None
            return []
        return super().failed(request, now)

    def _paths(self) -> list[str]:
        members = [member for of_group in self._members.values() for member in of_group.values()]
        return [path for member in members if (path := mapping_path(member.client)) is not None]

    def _reconcile(self, listing: dict[str, str], now: Instant) -> list[Request]:
        self._listing = None
        if self._is_shutting_down:
            return []
        members = [
            MappedMember(group, member_id, member.client, tuple(sorted(member.partitions)))
            for group, of_group in self._members.items()
            for member_id, member in of_group.items()
        ]
        reconciliation = reconcile(
            members, listing, self._leaked_since, now, self.grace_ms, groups=self._members.keys()
        )
        self._leaked_since = dict(reconciliation.leaked_since)
        self.counts.add(reconciliation)
        return list(reconciliation.requests(self.broker))
