"""A member of a group of the consumer protocol (KIP-848): one kind of request, and no leader.

The coordinator assigns the partitions. A member sends its subscription and the partitions that it owns in
its heartbeats, and gets its target assignment in the answers. It first gives up the partitions that are not
in the target; the coordinator assigns it new ones once other members have given them up.

UNSUBSCRIBED   no member
JOINING        a heartbeat with epoch 0 is sent, or due
STABLE         owns its target assignment
RECONCILING    has a new target: gives partitions up (after a commit), then takes others on, in a poll
ACKNOWLEDGING  owns its target; the next heartbeat, due at once, says so
STALE          the application did not poll in time: it has left, and joins again with the next poll
LEAVING        the last heartbeat, of epoch −1, is sent
FATAL          poll raises the problem

| error                                          | what follows                                              |
|------------------------------------------------|-----------------------------------------------------------|
| 14 COORDINATOR_LOAD_IN_PROGRESS                | again after the back-off                                  |
| 15, 16, no answer                              | find the coordinator; the next heartbeat reports all      |
| 25 UNKNOWN_MEMBER_ID, 110 FENCED_MEMBER_EPOCH  | its partitions are lost; join again                       |
| 29 TOPIC_AUTHORIZATION_FAILED                  | poll raises it; heartbeats go on                          |
| 30, 35, 42, 81, 82, 111, 112, 128, any other   | poll raises it; the member ends                           |
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import (
    BrokerNode,
    Effects,
    Failure,
    FailureKind,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Problem,
    ProblemKind,
)
from kelpie.consumer.membership.heartbeats import record_late_poll
from kelpie.consumer.membership.membership import GroupMembership, Identity, Reach
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat, Beat, OwnedIds
from kelpie.questions.question import listed

_NEEDED = "an epoch above 0 and the partitions of this member"
_LEAVE = -1
_LEAVE_FOR_A_WHILE = -2
_FIND_COORDINATOR = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_KINDS: dict[int, ProblemKind] = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    ErrorCode.FENCED_INSTANCE_ID: ProblemKind.FENCED,
    ErrorCode.UNRELEASED_INSTANCE_ID: ProblemKind.FENCED,
    ErrorCode.UNSUPPORTED_VERSION: ProblemKind.UNSUPPORTED,
    ErrorCode.UNSUPPORTED_ASSIGNOR: ProblemKind.REFUSED,
    ErrorCode.GROUP_MAX_SIZE_REACHED: ProblemKind.REFUSED,
    ErrorCode.INVALID_REQUEST: ProblemKind.REFUSED,
}


class MemberState(Enum):
    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    STABLE = "STABLE"
    RECONCILING = "RECONCILING"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STALE = "STALE"
    LEAVING = "LEAVING"
    FATAL = "FATAL"


_SENDS_HEARTBEATS = (
    MemberState.JOINING,
    MemberState.STABLE,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
)


class ConsumerGroupMembership(GroupMembership):
    def __init__(
        self,
        requests: PendingRequests,
        metadata: ConsumerMetadata,
        lookup: CoordinatorLookup,
        assignment: SubscriptionState,
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(requests, metadata, lookup, assignment)
        config = requests.config
        self.state = MemberState.JOINING
        self.identity = Identity(new_id(), 0, config.group_instance_id, uses_consumer_protocol=True)
        self._target: OwnedIds | None = None
        """What it should own."""
        self._owned: OwnedIds = ()
        self._reported: OwnedIds | None = None
        """What the last heartbeat reported; None: the next heartbeat reports everything."""
        self._giving_up = False
        self._interval_ms = config.heartbeat_interval_ms
        self._token: int | None = None
        self._fatal: Problem | None = None

    # For the other parts of the consumer.

    @property
    def is_joined(self) -> bool:
        return self.state is MemberState.STABLE and self.identity.generation > 0

    @property
    def is_closed(self) -> bool:
        return self.state in (MemberState.UNSUBSCRIBED, MemberState.FATAL)

    def committer(self) -> Identity | Problem:
        if self.identity.generation > 0 and self.state in _SENDS_HEARTBEATS:
            return self.identity
        text = "The offsets were not committed: this consumer is no member of the group (any more)."
        return Problem(ProblemKind.COMMIT_FAILED, text)

    def refused(self, effects: Effects, error: int, sent: Identity) -> None:
        """A commit or an offset request was refused: the next heartbeat, sent at once, shows why."""
        if error != ErrorCode.REBALANCE_IN_PROGRESS and sent == self.identity:
            self._deadlines.next_heartbeat_in(0, effects.now)

    def polled(self, effects: Effects) -> None:
        self._deadlines.polled(effects.now)
        if self._fatal is not None:
            effects.fail(self._fatal)
        if self.state is MemberState.STALE and not self._requests.is_pending(self._token):
            self._start_over(effects)

    # With and without polls.

    @property
    def _sends_heartbeats(self) -> bool:
        """It does not join before the application has polled once."""
        return self.state in _SENDS_HEARTBEATS and self._deadlines.poll_ends_at is not None

    def background(self, effects: Effects) -> None:
        if self.muted or not self._sends_heartbeats:
            return
        coordinator = self._lookup.ready(effects)
        if coordinator is None:
            return
        if self._deadlines.poll_expired(effects.now):
            self._leave_for_late_poll(effects, coordinator)
            return
        due = effects.now >= self._deadlines.next_heartbeat_at or self.state is MemberState.ACKNOWLEDGING
        if due and self._backoff.over(effects.now) and not self._requests.is_pending(self._token):
            self._send_heartbeat(effects, coordinator)

    def advance(self, effects: Effects) -> Reach:
        if self.state is MemberState.RECONCILING:
            self._reconcile(effects)
        return Reach.NOTHING if self.state in (MemberState.FATAL, MemberState.LEAVING) else Reach.ALL

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        del polling
        if self.muted or not self._sends_heartbeats:
            return None
        if self._lookup.coordinator is None:
            return self._lookup.deadline(now)
        due = [] if self._deadlines.poll_ends_at is None else [self._deadlines.poll_ends_at]
        if not self._requests.is_pending(self._token):
            due.append(max(self._deadlines.next_heartbeat_at, self._backoff.until))
        return min(due, default=None)

    def _send_heartbeat(self, effects: Effects, node: BrokerNode) -> None:
        sent = self.identity
        owned = self._owned
        whole = self._reported is None  # After a join, and whenever an answer went missing.
        config = self._config
        question = AskNewerHeartbeat(
            self._group_id,
            sent.member_id,
            sent.generation,
            sent.instance_id,
            config.max_poll_interval_ms if whole else -1,
            config.topics if whole else None,
            config.group_remote_assignor if whole else None,
            owned if whole or owned != self._reported else None,
        )
        if self.state is MemberState.ACKNOWLEDGING:
            self.state = MemberState.STABLE
        self._deadlines.next_heartbeat_in(self._interval_ms, effects.now)
        kind = StepKind.JOIN if sent.generation == 0 else StepKind.HEARTBEAT
        self._token = self._requests.send(
            effects,
            kind,
            node,
            question,
            on_answer=lambda effects, heartbeat: self._on_answer(effects, node, sent, owned, heartbeat),
            on_failure=lambda effects, failure: self._on_failure(effects, node, failure),
            needed=_NEEDED,
        )

    def _on_answer(
        self, effects: Effects, node: BrokerNode, sent: Identity, owned: OwnedIds, heartbeat: Beat
    ) -> str | Failed:
        if sent != self.identity or self.state not in _SENDS_HEARTBEATS:
            return "It no longer matters."
        if heartbeat.error:
            return self._refused(effects, node, heartbeat)
        self._backoff.succeeded()
        self._reported = owned
        self._interval_ms = max(heartbeat.interval_ms, 1)
        self._deadlines.next_heartbeat_in(self._interval_ms, effects.now)
        member_id = heartbeat.member_id or sent.member_id
        self.identity = replace(sent, member_id=member_id, generation=heartbeat.epoch)
        if heartbeat.assignment is None:
            if self.state is MemberState.JOINING:
                self.state = MemberState.STABLE
            return f"It is a member, of epoch {heartbeat.epoch}."
        self._target = heartbeat.assignment
        if self._target != self._owned:
            self.state = MemberState.RECONCILING
            return "Another assignment: what goes is given up first, then what comes is taken on."
        # Nothing changes, but it must be acknowledged: the first assignment may be empty.
        self.state = (
            MemberState.STABLE
            if self._reported == self._target and sent.generation
            else MemberState.ACKNOWLEDGING
        )
        return "It owns what it should."

    def _reconcile(self, effects: Effects) -> None:
        """Go from the owned partitions to the target, as far as the names of topics are known."""
        assert self._target is not None
        named: list[TopicPartition] = []
        known: list[tuple[bytes, tuple[int, ...]]] = []
        for topic_id, numbers in self._target:
            name = self._metadata.name_of(topic_id)
            if name is None:
                self._metadata.outdated()  # A new topic; the partitions of known topics are taken on already.
                continue
            known.append((topic_id, numbers))
            named += (TopicPartition(name, number) for number in numbers)
        owned = self._assignment.partitions
        revoked = tuple(partition for partition in owned if partition not in named)
        if revoked and not self._giving_up:
            self._giving_up = True
            self._assignment.revoking(revoked)
            self.commits.commit_before_leaving(effects, self._config.max_poll_interval_ms)
        if revoked and not self.commits.is_settled:
            return
        self._giving_up = False
        added = tuple(partition for partition in named if partition not in owned)
        if revoked:
            effects.emit(PartitionsRevoked(revoked))
        if added or revoked:
            self._assignment.assign(named)
            effects.emit(PartitionsAssigned(added))
            gives = f", and gives up {listed(revoked)}" if revoked else ""
            self._requests.record(effects, StepKind.ASSIGNMENT, f"It takes on {listed(added)}{gives}.")
        before, self._owned = self._owned, tuple(known)
        if self._owned != before or self._owned == self._target:
            self.state = MemberState.ACKNOWLEDGING if self._owned == self._target else MemberState.RECONCILING
            self._deadlines.next_heartbeat_in(0, effects.now)

    # Refusals and failures.

    def _refused(self, effects: Effects, node: BrokerNode, heartbeat: Beat) -> str | Failed:
        meaning = info(heartbeat.error).meaning
        if heartbeat.error in _FIND_COORDINATOR:
            self._reported = None
            self._deadlines.next_heartbeat_in(0, effects.now)
            self._lookup.lost(effects, node)
            return Failed(f"{meaning} The coordinator is looked for anew.")
        if heartbeat.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            wait_ms = self._backoff.failed(effects.now)
            self._deadlines.next_heartbeat_in(wait_ms, effects.now)
            return Failed(f"{meaning} It is tried again in {wait_ms} ms.")
        if heartbeat.error in _FENCED:
            self._backoff.failed(effects.now)
            self._start_over(effects)
            return Failed(f"{meaning} Its partitions are lost, and it joins again.")
        kind = _KINDS.get(heartbeat.error, ProblemKind.UNEXPECTED)
        said = heartbeat.message or meaning
        problem = Problem(
            kind, f"Group {self._group_id}: {describe(heartbeat.error)}. {said}", heartbeat.error
        )
        if heartbeat.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            effects.fail(problem)
            return Failed(f"{said} Heartbeats go on.")
        return self._end(effects, problem)

    def _on_failure(self, effects: Effects, node: BrokerNode, failure: Failure) -> str | Failed:
        if self.state not in _SENDS_HEARTBEATS:
            return "It no longer matters."
        if failure.kind is FailureKind.UNSUPPORTED:
            return self._end(effects, Problem(ProblemKind.UNSUPPORTED, failure.text))
        self._reported = None
        self._lookup.lost(effects, node)
        wait_ms = self._backoff.failed(effects.now)
        self._deadlines.next_heartbeat_in(wait_ms, effects.now)
        return Failed("The coordinator is looked for anew.")

    def _end(self, effects: Effects, problem: Problem) -> str | Failed:
        self.state = MemberState.FATAL
        self._fatal = problem
        self._release_all(effects, lost=True)
        effects.fail(problem)
        return Failed(f"{problem.text} The consumer gives up.")

    def _start_over(self, effects: Effects) -> None:
        self._release_all(effects, lost=True)
        self.identity = replace(self.identity, generation=0)
        self.state = MemberState.JOINING
        self._deadlines.next_heartbeat_in(0, effects.now)

    def _release_all(self, effects: Effects, *, lost: bool) -> None:
        owned = self._assignment.partitions
        self._assignment.assign(())
        self._target, self._owned, self._reported, self._giving_up = None, (), None, False
        if owned:
            effects.emit(PartitionsLost(owned) if lost else PartitionsRevoked(owned))

    # Leaving.

    def _leave_for_late_poll(self, effects: Effects, node: BrokerNode) -> None:
        record_late_poll(self._requests, effects)
        self.state = MemberState.STALE
        self._send_leave(effects, node)
        self._release_all(effects, lost=True)

    def close(self, effects: Effects) -> None:
        if self.state in (MemberState.LEAVING, MemberState.UNSUBSCRIBED, MemberState.FATAL):
            return
        joined = self.identity.generation > 0 and self.state in _SENDS_HEARTBEATS
        self._release_all(effects, lost=not joined)
        node = self._lookup.coordinator
        self.state = MemberState.UNSUBSCRIBED
        if joined and node is not None:
            self.state = MemberState.LEAVING
            self._send_leave(effects, node)

    def _send_leave(self, effects: Effects, node: BrokerNode) -> None:
        """A static member leaves for a while: it keeps its partitions until its session ends."""
        epoch = _LEAVE if self.identity.instance_id is None else _LEAVE_FOR_A_WHILE
        question = AskNewerHeartbeat(
            self._group_id, self.identity.member_id, epoch, self.identity.instance_id
        )
        self._token = self._requests.send(
            effects, StepKind.LEAVE, node, question, on_answer=self._left, on_failure=self._left
        )

    def _left(self, effects: Effects, answer: object) -> str | Failed:
        del answer  # If the request failed, the coordinator removes the member when the session ends.
        if self.state is MemberState.LEAVING:
            self.state = MemberState.UNSUBSCRIBED
        elif self.state is MemberState.STALE and not self._deadlines.poll_expired(effects.now):
            self._start_over(effects)  # A poll came while it was leaving.
        return "The group goes on without it."
