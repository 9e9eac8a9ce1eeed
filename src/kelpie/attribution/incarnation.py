"""The plan `incarnation`: one child per member and coordinator epoch; no name is used twice.

Writes, below the node of the client's address (`members_tree`): at JoinGroup, a child of the member, for any
partition; at SyncGroup, its partitions; when a group is loaded, a child of the new epoch for every member; at
FindCoordinator, a hint, which the brokers that serve the consumer renew while it fetches.

Deletes: a member's child, when its coordinator removed it (marked at once, deleted after `linger_ms`, for
fetches that still wait for a decision); children of an older epoch, when a coordinator has loaded the group;
hints, when a member of their group is removed from the address, and when they are `hint_ms` old.

Which order of events breaks it: none. A deletion names one incarnation of one member, so it cannot reach a
newer one, however late it comes; two groups at one address have children of their own; a new coordinator adds
its children before it deletes the old ones. What stays is what no broker can know: a consumer without any
group, with host, client id and partition of a member whose session has not expired, is counted for that
member's group.
"""

from dataclasses import dataclass, field, replace

from kelpie.attribution.addresses import MEMBERS_ROOT, ClientAddress, address_node
from kelpie.attribution.counters import Counters
from kelpie.attribution.members_tree import (
    Claims,
    Hint,
    MemberClaim,
    hint_node,
    hint_value,
    member_node,
    member_value,
)
from kelpie.attribution.members_tree_plan import Label, MembersTreePlan
from kelpie.attribution.plan import Assignment, Connection, Removal
from kelpie.attribution.requests import Create, Delete, Put, ReadChildren, Request, Result
from kelpie.model.time import Instant


@dataclass(slots=True)
class _Member:
    path: str
    """Of the child in the tree."""
    claim: MemberClaim


@dataclass(slots=True)
class _Group:
    epoch: int
    members: dict[str, _Member] = field(default_factory=dict)


class IncarnationPlan(MembersTreePlan):
    name = "incarnation"
    hint_ms = 600_000
    linger_ms = 60_000
    sweep_ms = 60_000

    def __init__(self, broker: int, life: int, counters: Counters) -> None:
        super().__init__(broker, life, counters)
        self._groups: dict[str, _Group] = {}
        self._current: set[str] = set()
        """Paths of the children of all members of these groups."""
        self._removed: dict[str, Instant] = {}
        """When a removed member's child is deleted, by path."""
        self._hints: dict[tuple[ClientAddress, str], tuple[str, Instant]] = {}
        """Path and time of the hint that this broker wrote for a client and a group."""
        self._next_hint = 0
        self._void_hints: dict[tuple[str, str], Instant] = {}
        """By address node and group: hints up to this time are void, because their member was removed."""
        self._wanted: dict[str, bytes | None] = {}
        """What this broker last asked of a node, until the store has done it. None: that it is deleted."""
        self._again: dict[str, None] = {}
        """Nodes of which the store did not do what is wanted."""
        self._next_sweep: Instant | None = None
        self._is_shutting_down = False

    def coordinator_found(
        self, connection: Connection, client: ClientAddress, group: str, now: Instant
    ) -> list[Request]:
        return self._hint(client, group, now)

    def member_joined(
        self, connection: Connection, client: ClientAddress, member_id: str, group: str, now: Instant
    ) -> list[Request]:
        members = self._group(group).members
        member = members.get(member_id)
        if member is None:
            return self._claim(client, member_id, MemberClaim(group, self._group(group).epoch, joined=now))
        claim = replace(member.claim, partitions=None, before=member.claim.partitions or frozenset())
        return self._claim(client, member_id, claim)

    def assignment_made(self, group: str, assignment: Assignment, now: Instant) -> list[Request]:
        requests: list[Request] = []
        coordinated = self._group(group)
        for member_id, (client, partitions) in assignment.items():
            member = coordinated.members.get(member_id)
            former = MemberClaim(group, coordinated.epoch, joined=now) if member is None else member.claim
            before = former.before if former.partitions is None else former.partitions
            claim = replace(former, partitions=partitions, since=now, before=before - partitions)
            requests += self._claim(client, member_id, claim)
        return requests

    def member_removed(
        self, group: str, member_id: str, client: ClientAddress, reason: Removal, now: Instant
    ) -> list[Request]:
        member = self._group(group).members.pop(member_id, None)
        if member is None or self._is_shutting_down:
            return []
        self._current.discard(member.path)
        self._removed[member.path] = now + self.linger_ms
        address = address_node(client)
        self._void_hints[address, group] = now
        claim = replace(member.claim, until=now, has_left=reason is Removal.LEFT)
        return [*self._write(member.path, member_value(claim)), *self._read(address)]

    def group_loaded(self, group: str, members: Assignment, epoch: int, now: Instant) -> list[Request]:
        self.group_unloaded(group, now)
        self._groups[group] = _Group(epoch)
        self._next_sweep = now  # What other coordinators of this group left behind.
        requests: list[Request] = []
        for member_id, (client, partitions) in members.items():
            requests += self._claim(client, member_id, MemberClaim(group, epoch, 0, partitions, now))
        return requests

    def group_unloaded(self, group: str, now: Instant) -> list[Request]:
        """The children stay: until the next coordinator has loaded the group, they are what is known."""
        coordinated = self._groups.pop(group, None)
        for member in coordinated.members.values() if coordinated else ():
            self._current.discard(member.path)
            self._wanted.pop(member.path, None)
        return []

    def shutting_down(self, now: Instant) -> list[Request]:
        """From now on, sessions expire because this broker stops, and not because members are gone."""
        self._is_shutting_down = True
        return []

    def tick(self, now: Instant) -> list[Request]:
        requests = super().tick(now)
        if self._void_hints:
            for address in sorted({address for address, _ in self._void_hints} - self._reads.keys()):
                requests += self._read(address)  # The read before failed.
        if self._again:
            requests += [request for path in self._again for request in self._want(path)]
            self._again.clear()
        for path in [path for path, at in self._removed.items() if at <= now]:
            del self._removed[path]
            requests += self._write(path, None)
        for key in [key for key, (_, at) in self._hints.items() if at + self.hint_ms <= now]:
            requests += self._write(self._hints.pop(key)[0], None)
        if self._groups and (self._next_sweep is None or self._next_sweep <= now):
            if self._next_sweep is not None:
                requests.append(ReadChildren(self.broker, MEMBERS_ROOT))
            self._next_sweep = now + self.sweep_ms
        return requests

    def answered(self, request: Request, result: Result, now: Instant) -> list[Request]:
        if isinstance(request, Put | Create | Delete):
            self._done(request)
            return []
        if not isinstance(result, dict):
            return []
        if request.path == MEMBERS_ROOT:
            return [read for name in result for read in self._read(f"{MEMBERS_ROOT}/{name}")]
        claims = self._claims_read(request.path, result, now - self.hint_ms, now)
        return self._sweep(request.path, claims, is_empty=not result, now=now)

    def failed(self, request: Request, now: Instant) -> list[Request]:
        if isinstance(request, Put | Create | Delete):
            if request.path in self._wanted and self._wanted[request.path] == _value(request):
                self._again[request.path] = None
            return []
        return super().failed(request, now)

    def _group(self, group: str) -> _Group:
        return self._groups.setdefault(group, _Group(0))

    def _claim(self, client: ClientAddress, member_id: str, claim: MemberClaim) -> list[Request]:
        path = f"{address_node(client)}/{member_node(claim.group, member_id, claim.epoch)}"
        self._groups[claim.group].members[member_id] = _Member(path, claim)
        self._current.add(path)
        return self._write(path, member_value(claim))

    def _hint(self, client: ClientAddress, group: str, now: Instant) -> list[Request]:
        """A new name each time: a deletion of the old hint, by whichever broker, does not reach this one."""
        self._next_hint += 1
        path = f"{address_node(client)}/{hint_node(self.broker, self.life, self._next_hint)}"
        former = self._hints.pop((client, group), None)
        self._hints[client, group] = (path, now)
        requests = self._write(path, hint_value(Hint(group, now)))
        return requests if former is None else [*requests, *self._write(former[0], None)]

    def _renew_hint(self, client: ClientAddress, label: Label, now: Instant) -> list[Request]:
        if now - label.hinted < self.hint_ms // 3:
            return []
        label.hinted = now
        return self._hint(client, label.group, now)

    def _sweep(self, address: str, claims: Claims, *, is_empty: bool, now: Instant) -> list[Request]:
        """Delete children that are certainly of the past."""
        names: list[str] = []
        for name, claim in claims.members.items():
            if self._is_past(f"{address}/{name}", claim, now):
                names.append(name)
        for name, hint in claims.hints.items():
            void_until = self._void_hints.get((address, hint.group), -1)
            if hint.at <= max(void_until, now - self.hint_ms):
                names.append(name)
        if self._void_hints:
            self._void_hints = {key: at for key, at in self._void_hints.items() if key[0] != address}
        if is_empty and not any(path.startswith(f"{address}/") for path in self._wanted):
            return [Delete(self.broker, address)]
        return [request for name in names for request in self._write(f"{address}/{name}", None)]

    def _is_past(self, path: str, claim: MemberClaim, now: Instant) -> bool:
        if claim.until is not None:
            return claim.until + self.linger_ms <= now
        group = self._groups.get(claim.group)
        if group is None or claim.epoch > group.epoch:
            return False  # Another broker coordinates the group, and knows its members.
        return path not in self._current and path not in self._removed

    def _write(self, path: str, value: bytes | None) -> list[Request]:
        self._wanted[path] = value
        return self._want(path)

    def _want(self, path: str) -> list[Request]:
        if path not in self._wanted:
            return []
        value = self._wanted[path]
        return [Delete(self.broker, path) if value is None else Put(self.broker, path, value)]

    def _done(self, request: Put | Create | Delete) -> None:
        if request.path in self._wanted and self._wanted[request.path] == _value(request):
            del self._wanted[request.path]


def _value(request: Put | Create | Delete) -> bytes | None:
    return None if isinstance(request, Delete) else request.value
