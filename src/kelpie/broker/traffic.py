"""What a broker counts of its traffic, by topic, partition and group, and the plan that knows the group.

There is one object for each life of a broker. Handlers, the group coordinator and the driver tell it what
happens; it calls the plan (`kelpie.attribution.plan` says which event is what), and asks the mapping store
what the plan wants to be asked. The driver sends these requests, in order, and brings the answers in the same
order. FindCoordinator, JoinGroup and SyncGroup are answered when the store has, or when `ANSWER_LIMIT_MS`
have passed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from kelpie.attribution.addresses import ClientAddress, client_address
from kelpie.attribution.counters import Amount, Counters
from kelpie.attribution.plan import AssignedMember, Plan, Removal
from kelpie.attribution.requests import Request, Result
from kelpie.broker.amounts import amount_of
from kelpie.broker.call import Call, ClientConnection, HeldAnswer
from kelpie.broker.image import INTERNAL_TOPICS
from kelpie.broker.timers import Timers
from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.notes import Note, NoteKind
from kelpie.coordinator.outcome import Outcome
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.sync_group import SyncGroupResponse
from kelpie.wire.consumer_protocol import partitions_in
from kelpie.wire.malformed import Malformed

ANSWER_LIMIT_MS = 5_000
_TICK_MS = 1_000
_NOTHING = Amount(0, 0, 0)
_COMING = (NoteKind.ADDED, NoteKind.PENDING_ADDED, NoteKind.STATIC_ADDED, NoteKind.STATIC_REPLACED)
_REMOVALS = {
    NoteKind.LEFT: Removal.LEFT,
    NoteKind.FAILED: Removal.EXPIRED,
    NoteKind.LATE_REMOVED: Removal.NOT_REJOINED,
    NoteKind.UNSYNCED_REMOVED: Removal.NOT_REJOINED,
    NoteKind.STATIC_REPLACED: Removal.REPLACED,
}

Ask = Callable[[Request], None]
"""Sends a request to the mapping store. The answer comes later, never from within this call."""


class _Expected:
    """Answers of the store that something waits for."""

    def __init__(self, count: int, then: Callable[[], None] | None) -> None:
        self._missing = count
        self._then = then

    def came(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.end()

    def end(self) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()


class Traffic:
    def __init__(self, plan: Plan, timers: Timers, ask: Ask, now: Instant) -> None:
        self.received: dict[TopicPartition, Amount] = {}
        """What producers have written."""
        self._plan = plan
        self._timers = timers
        self._ask = ask
        self._expected: deque[_Expected] = deque()
        """For each request that the store has not answered yet."""
        self._holding: dict[_Expected, None] = {}
        """Those that answers to clients wait for."""
        self._members: dict[str, dict[str, ClientAddress]] = {}
        """By group and member id: the groups that this broker coordinates."""
        self._unassigned: set[tuple[str, str]] = set()
        """Members that have joined, and whose partitions the plan does not know since."""
        self._assigning: dict[str, list[HeldAnswer]] = {}
        """Groups whose assignment is being written to the store: their SyncGroups wait."""
        self._is_over = False
        self._timers.set(("traffic",), now + _TICK_MS, self._tick)

    @property
    def sent(self) -> Counters:
        """What consumers have read, by topic, partition and group."""
        return self._plan.counters

    # Requests of clients.

    def coordinator_asked(self, call: Call, groups: Iterable[str], now: Instant) -> None:
        """FindCoordinator for groups came in, and is answered after this."""
        client = _client(call)
        requests: list[Request] = []
        for group in groups:
            requests += self._plan.coordinator_found(call.connection, client, group, now)
        if requests:
            self._send(requests, now, HeldAnswer(call).release)

    def joining(
        self, call: Call, group: ClassicGroup | None, epoch: int, outcome: Outcome, now: Instant
    ) -> None:
        """JoinGroup came in; its outcome is carried out after this. `epoch` is the coordinator's."""
        if group is None:
            return
        came = [note.values["member"] for note in outcome.notes if note.kind in _COMING]
        member_id = came[0] if came else call.message.member_id
        if member_id not in group.members:
            return  # It was refused, or told to come back with an id.
        client = _client(call)
        self._coordinated(group.group_id, epoch, now)[member_id] = client
        self._unassigned.add((group.group_id, member_id))
        requests = self._plan.member_joined(call.connection, client, member_id, group.group_id, now)
        if requests:
            self._send(requests, now, HeldAnswer(call).release)

    def syncing(
        self, call: Call, group: ClassicGroup | None, epoch: int, outcome: Outcome, now: Instant
    ) -> None:
        """SyncGroup came in; its outcome is carried out after this."""
        if group is None:
            return
        assignments: Mapping[str, bytes] | None = None
        if any(note.kind is NoteKind.ASSIGNED for note in outcome.notes):
            assignments = {each.member_id: each.assignment for each in call.message.assignments}
        elif (group.group_id, call.message.member_id) in self._unassigned and _is_stable(group):
            # A member joined without a rebalance: a static one, or one that missed the answer.
            assignments = {member.member_id: member.assignment for member in group.members.values()}
        if assignments is not None:
            self._assignment_made(group, epoch, assignments, now)
        self._hold_until_assigned(call, group.group_id)

    def fetched(
        self, call: Call, partition: TopicPartition, offset: int, records: bytes, now: Instant
    ) -> None:
        """A fetch from this offset is answered with these records."""
        if partition.topic in INTERNAL_TOPICS or (call.connection is not None and call.connection.is_closed):
            return
        amount = amount_of(records, offset)
        if amount.messages:
            self._send(self._plan.fetched(call.connection, _client(call), partition, amount, now), now)

    def produced(self, partition: TopicPartition, records: bytes) -> None:
        """These records were appended."""
        if partition.topic not in INTERNAL_TOPICS:
            before, more = self.received.get(partition, _NOTHING), amount_of(records)
            self.received[partition] = Amount(*map(sum, zip(before, more, strict=True)))

    def connection_closed(self, connection: ClientConnection, now: Instant) -> None:
        connection.is_closed = True
        if not self._is_over:
            self._send(self._plan.connection_closed(connection, now), now)

    # The group coordinator.

    def told(
        self, notes: Iterable[Note], group_of: Callable[[str], ClassicGroup | None], epoch: int, now: Instant
    ) -> None:
        """What the coordinator of some groups did, as it notes it for the log."""
        for note in notes:
            group_id = note.values.get("group", "")
            if note.kind is NoteKind.GROUP_LOADED:
                group = group_of(group_id)
                if group is not None:
                    self._loaded(group, epoch, now)
            elif note.kind is NoteKind.SIMPLE_GROUP_CREATED:
                self._coordinated(group_id, epoch, now)
            elif note.kind is NoteKind.GROUP_UNLOADED:
                if self._members.pop(group_id, None) is not None:
                    self._send(self._plan.group_unloaded(group_id, now), now)
            elif note.kind in _REMOVALS:
                for member_id in _members_in(note):
                    self._removed(group_id, member_id, _REMOVALS[note.kind], now)
            elif note.kind is NoteKind.EMPTIED:
                self._remove_all_but((), group_id, now)

    # The end.

    def shutting_down(self, now: Instant) -> None:
        """From now on no client waits for the store. The plan still hears of connections that close."""
        self._send(self._plan.shutting_down(now), now)
        for waiting in list(self._holding):
            waiting.end()

    def end(self) -> None:
        """The broker is gone: it hears and asks nothing any more."""
        self._is_over = True

    # The store.

    def answered(self, request: Request, result: Result, now: Instant) -> None:
        """In the order of the requests."""
        if not self._is_over:
            self._send(self._plan.answered(request, result, now), now)
            self._expected.popleft().came()

    def failed(self, request: Request, now: Instant) -> None:
        """The store did not answer in time, or refused."""
        if not self._is_over:
            self._send(self._plan.failed(request, now), now)
            self._expected.popleft().came()

    # Inside.

    def _send(
        self, requests: Iterable[Request], now: Instant, then: Callable[[], None] | None = None
    ) -> None:
        """Asks the store. Calls `then` when all is answered, or when the time is over."""
        requests = list(requests)
        if not requests:
            if then is not None:
                then()
            return
        expected = _Expected(len(requests), None)
        if then is not None:
            expected = self._limited(len(requests), now, then)
        for request in requests:
            self._expected.append(expected)
            self._ask(request)

    def _limited(self, count: int, now: Instant, then: Callable[[], None]) -> _Expected:
        def ended() -> None:
            self._holding.pop(expected, None)
            self._timers.cancel(("store", expected))
            then()

        expected = _Expected(count, ended)
        self._holding[expected] = None
        self._timers.set(("store", expected), now + ANSWER_LIMIT_MS, lambda _: expected.end())
        return expected

    def _tick(self, now: Instant) -> None:
        self._timers.set(("traffic",), now + _TICK_MS, self._tick)
        self._send(self._plan.tick(now), now)

    def _coordinated(self, group_id: str, epoch: int, now: Instant) -> dict[str, ClientAddress]:
        """Members of a group; the plan hears of a group that is new here."""
        members = self._members.get(group_id)
        if members is None:
            members = self._members[group_id] = {}
            self._send(self._plan.group_loaded(group_id, {}, epoch, now), now)
        return members

    def _loaded(self, group: ClassicGroup, epoch: int, now: Instant) -> None:
        members = {
            member.member_id: AssignedMember(
                client_address(member.client_host, member.client_id), _partitions(member.assignment)
            )
            for member in group.members.values()
        }
        self._members[group.group_id] = {member_id: member.client for member_id, member in members.items()}
        self._send(self._plan.group_loaded(group.group_id, members, epoch, now), now)

    def _assignment_made(
        self, group: ClassicGroup, epoch: int, assignments: Mapping[str, bytes], now: Instant
    ) -> None:
        group_id = group.group_id
        self._remove_all_but(group.members, group_id, now)
        known = self._coordinated(group_id, epoch, now)
        assignment = {
            member_id: AssignedMember(
                known.get(member_id) or client_address(member.client_host, member.client_id),
                _partitions(assignments.get(member_id, b"")),
            )
            for member_id, member in group.members.items()
        }
        self._unassigned -= {(group_id, member_id) for member_id in assignment}
        requests = self._plan.assignment_made(group_id, assignment, now)
        if requests:
            held: list[HeldAnswer] = []
            self._assigning[group_id] = held
            self._send(requests, now, lambda: self._assigned(group_id, held))

    def _hold_until_assigned(self, call: Call, group_id: str) -> None:
        """Its answer leaves when the store knows the assignment. An error does not wait for that."""
        send = call.answer

        def answer(response: SyncGroupResponse) -> None:
            held = self._assigning.get(group_id)
            if held is None or response.error_code != ErrorCode.NONE:
                send(response)
                return
            call.answer = send
            held.append(HeldAnswer(call))
            call.answer(response)

        call.answer = answer

    def _assigned(self, group_id: str, held: list[HeldAnswer]) -> None:
        if self._assigning.get(group_id) is held:
            del self._assigning[group_id]
        for answer in held:
            answer.release()

    def _remove_all_but(self, members: Iterable[str], group_id: str, now: Instant) -> None:
        """Members that went without a note."""
        for member_id in self._members.get(group_id, {}).keys() - set(members):
            self._removed(group_id, member_id, Removal.NOT_REJOINED, now)

    def _removed(self, group_id: str, member_id: str, reason: Removal, now: Instant) -> None:
        client = self._members.get(group_id, {}).pop(member_id, None)
        self._unassigned.discard((group_id, member_id))
        if client is not None:
            self._send(self._plan.member_removed(group_id, member_id, client, reason, now), now)


def _client(call: Call) -> ClientAddress:
    return client_address(call.client_host, call.client_id)


def _is_stable(group: ClassicGroup) -> bool:
    return group.state is ClassicGroupState.STABLE


def _members_in(note: Note) -> list[str]:
    if note.kind is NoteKind.STATIC_REPLACED:
        return [note.values["old"]]
    return list(note.values["members"]) if "members" in note.values else [note.values["member"]]


def _partitions(assignment: bytes) -> frozenset[TopicPartition]:
    """Groups that are not of consumers have assignments in a form of their own."""
    try:
        return frozenset(partitions_in(assignment))
    except Malformed:
        return frozenset()
