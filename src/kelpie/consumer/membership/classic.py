"""A member of a classic group: AbstractCoordinator and ConsumerCoordinator of Kafka's client.

UNJOINED               no member, or no longer
PREPARING_REBALANCE    JoinGroup is under way
COMPLETING_REBALANCE   joined; SyncGroup is under way (the leader may first need metadata)
STABLE                 has its assignment, until it must rejoin

| from                 | by                                                        | to                   |
|----------------------|-----------------------------------------------------------|----------------------|
| UNJOINED, STABLE     | a rejoin is needed, a poll is under way, and partitions   | PREPARING_REBALANCE  |
|                      | have been given up as far as they must be                 |                      |
| PREPARING_REBALANCE  | JoinGroup answered                                        | COMPLETING_REBALANCE |
| COMPLETING_REBALANCE | SyncGroup answered                                        | STABLE               |
| any                  | a refusal, or the time between polls is over              | UNJOINED             |

refusals.py says what follows from refusals. heartbeats.py sends heartbeats, leader_task.py does the work of
the leader, and owned_partitions.py gives partitions up and takes them on.
"""

from collections.abc import Sequence
from enum import Enum

from kelpie.assignors import ASSIGNORS, subscription
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import BrokerNode, Effects, Failure, FailureKind, Problem, ProblemKind
from kelpie.consumer.membership import refusals
from kelpie.consumer.membership.heartbeats import Heartbeats
from kelpie.consumer.membership.leader_task import LeaderTask
from kelpie.consumer.membership.membership import NO_GENERATION, NO_MEMBER, GroupMembership, Identity, Reach
from kelpie.consumer.membership.owned_partitions import OwnedPartitions
from kelpie.consumer.membership.refusals import GroupRefusal, Retry
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.join_group import AskToJoin, Joined
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.question import listed
from kelpie.questions.sync_group import AskForAssignment, Synced
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, partitions_in
from kelpie.wire.malformed import Malformed

_JOIN_LAPSE_MS = 5_000
_AT_ONCE = 3


class JoinState(Enum):
    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


class ClassicMembership(GroupMembership):
    def __init__(
        self,
        requests: PendingRequests,
        metadata: ConsumerMetadata,
        lookup: CoordinatorLookup,
        assignment: SubscriptionState,
    ) -> None:
        super().__init__(requests, metadata, lookup, assignment)
        config = requests.config
        self._owned = OwnedPartitions(config, assignment)
        self._heartbeats = Heartbeats(requests, lookup, self._deadlines, self)
        self.state = JoinState.UNJOINED
        self.identity = Identity(instance_id=config.group_instance_id)
        self._rejoin: str | None = "it has just started"
        """Why it must join, if it must."""
        self._task: LeaderTask | None = None
        self._leads: frozenset[str] | None = None
        """Of a leader: the topics of the group."""
        self._counted: dict[str, int] = {}
        self._leaving: int | None = None
        self._closing = False
        self._fenced: Problem | None = None

    # For the other parts of the consumer.

    @property
    def is_joined(self) -> bool:
        return self.state is JoinState.STABLE and self.identity.is_member and self._owned.granted is None

    @property
    def is_closed(self) -> bool:
        return self._closing and self._leaving is None

    def committer(self) -> Identity | Problem:
        if self.state is JoinState.STABLE and self.identity.is_member:
            return self.identity
        if self.identity.is_member:
            text = "The group is rebalancing: the offsets can be committed once the member has joined again."
            return Problem(ProblemKind.REBALANCING, text, ErrorCode.REBALANCE_IN_PROGRESS)
        text = (
            "The offsets were not committed: this consumer is no member of the group (any more), and its "
            "partitions may be another's. Mostly it took longer than max.poll.interval.ms between two polls."
        )
        return Problem(ProblemKind.COMMIT_FAILED, text)

    def refused(self, effects: Effects, error: int, sent: Identity) -> None:
        """A request of another part was refused because of the membership."""
        if sent == self.identity and error in refusals.OF_MEMBERSHIP:
            self.drop(effects, refusals.OF_MEMBERSHIP[error])

    def drop(self, effects: Effects, refusal: GroupRefusal) -> None:
        """The coordinator refuses the member: it joins again, or ends."""
        if refusal.fenced:
            self._fenced = Problem(ProblemKind.FENCED, refusal.text(self._group_id), refusal.error)
            effects.fail(self._fenced)
            return
        if refusal.forget_generation:
            member_id = NO_MEMBER if refusal.forget_member else self.identity.member_id
            self.identity = Identity(member_id, NO_GENERATION, self.identity.instance_id)
            self.state = JoinState.UNJOINED
            self._owned.coordinator_dropped_member()
        self.rejoin(refusal.reason)

    def rejoin(self, reason: str) -> None:
        if self._rejoin is None:
            self._rejoin = reason

    def polled(self, effects: Effects) -> None:
        self._deadlines.polled(effects.now)
        if self._fenced is not None:
            effects.fail(self._fenced)

    # With and without polls.

    def background(self, effects: Effects) -> None:
        if self._task is not None and self.state is JoinState.COMPLETING_REBALANCE:
            self._lead(effects, self._task)
        joined = self.state in (JoinState.COMPLETING_REBALANCE, JoinState.STABLE)
        if joined and self._fenced is None and self._leaving is None:
            self._heartbeats.advance(effects, stable=self.state is JoinState.STABLE)

    def poll_expired(self, effects: Effects) -> None:
        """The application has not polled in time. The group must not wait for it."""
        self._leave(effects, "consumer poll timeout has expired.")
        self.identity = Identity(instance_id=self.identity.instance_id)
        self.state = JoinState.UNJOINED
        self._owned.coordinator_dropped_member()
        self._rejoin = "the application did not poll within max.poll.interval.ms"

    # In polls.

    def advance(self, effects: Effects) -> Reach:
        if self._fenced is not None or self._leaving is not None or self._closing:
            return Reach.NOTHING
        if self._lookup.ready(effects) is None:
            return Reach.NOTHING
        if self._owned.granted is not None and self.state is JoinState.STABLE:
            self._accept(effects, self._owned.granted)
        self._watch_topics()
        if self._rejoin is None and self.state is JoinState.STABLE:
            return Reach.ALL
        if self.state in (JoinState.UNJOINED, JoinState.STABLE) and self._backoff.over(effects.now):
            self._join(effects)
        return Reach.FETCHES

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        due: list[Instant | None] = []
        joined = self.state in (JoinState.COMPLETING_REBALANCE, JoinState.STABLE)
        if joined and self._fenced is None and self._leaving is None:
            due.append(self._heartbeats.deadline(now))
        if polling and self._fenced is None and self._leaving is None:
            due.append(self._lookup.deadline(now))
            if not self._backoff.over(now):
                due.append(self._backoff.until)
        return min((at for at in due if at is not None), default=None)

    def _join(self, effects: Effects) -> None:
        if not self._owned.revoke_before_join(effects, self.identity, self.commits):
            return
        coordinator = self._lookup.coordinator
        assert coordinator is not None
        config = self._config
        sent = self.identity
        reason, self._rejoin = self._rejoin or "", None
        self.state = JoinState.PREPARING_REBALANCE
        question = AskToJoin(
            self._group_id,
            sent.member_id,
            sent.instance_id,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            tuple((name, self._subscription(name, sent.generation)) for name in config.assignors),
            reason,
        )
        self._requests.send(
            effects,
            StepKind.JOIN,
            coordinator,
            question,
            on_answer=lambda effects, joined: self._joined(effects, coordinator, sent, joined),
            on_failure=lambda effects, failure: self._on_failure(effects, coordinator, failure),
            # The coordinator answers when all members have joined, and each may take max.poll.interval.ms.
            timeout_ms=max(config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_LAPSE_MS),
        )

    def _subscription(self, name: str, generation: int) -> bytes:
        held = self._owned
        owned = self._assignment.partitions
        return subscription(
            name, self._config.topics, owned, generation, held.remembered, remembered_in=held.remembered_in
        )

    def _joined(self, effects: Effects, node: BrokerNode, sent: Identity, joined: Joined) -> str | Failed:
        if self.state is not JoinState.PREPARING_REBALANCE:
            return "It has left in the meantime."
        if joined.error:
            return self._on_refusal(effects, node, sent, refusals.of_join(joined))
        if joined.protocol_type not in (None, PROTOCOL_TYPE):
            text = f"Group {self._group_id} is of protocol type {joined.protocol_type}, not {PROTOCOL_TYPE}."
            return self._raise(effects, Problem(ProblemKind.REFUSED, text))
        self.identity = Identity(joined.member_id, joined.generation, self.identity.instance_id)
        self.state = JoinState.COMPLETING_REBALANCE
        self._deadlines.joined(effects.now)
        if not joined.leads:
            self._leads = None
            self._metadata.follow(frozenset())
            self._sync(effects, node, joined.protocol)
            return f"It is member {joined.member_id}; the leader shares the partitions out."
        task = LeaderTask.of(joined)
        self._leads = task.topics
        self._metadata.follow(task.topics)
        if joined.skip_assignment:
            self._counted = self._metadata.partition_counts(task.topics)
            self._sync(effects, node, joined.protocol)
            return f"It is member {joined.member_id} and leads; the assignment stands."
        if task.protocol not in ASSIGNORS:
            text = f"The coordinator chose the assignor {task.protocol!r}, which this consumer did not offer."
            return self._raise(effects, Problem(ProblemKind.UNEXPECTED, text))
        self._task = task
        self._lead(effects, task)
        return f"It is member {joined.member_id} and leads: it shares the partitions out."

    def _lead(self, effects: Effects, task: LeaderTask) -> None:
        """Assign the partitions, as soon as all topics of the group are known."""
        coordinator = self._lookup.coordinator
        if coordinator is None or not self._metadata.knows(task.topics):
            return
        self._task = None
        self._counted = self._metadata.partition_counts(task.topics)
        self._sync(effects, coordinator, task.protocol, task.done(self._counted))

    def _sync(
        self,
        effects: Effects,
        node: BrokerNode,
        protocol: str | None,
        assignments: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        sent = self.identity
        question = AskForAssignment(
            self._group_id, sent.generation, sent.member_id, sent.instance_id, protocol, assignments
        )
        self._requests.send(
            effects,
            StepKind.SYNC,
            node,
            question,
            on_answer=lambda effects, synced: self._synced(effects, node, sent, synced),
            on_failure=lambda effects, failure: self._on_failure(effects, node, failure),
        )

    def _synced(self, effects: Effects, node: BrokerNode, sent: Identity, synced: Synced) -> str | Failed:
        if self.state is not JoinState.COMPLETING_REBALANCE or sent != self.identity:
            return "It is no longer of that generation."
        if synced.error:
            return self._on_refusal(effects, node, sent, refusals.of_sync(synced.error))
        try:
            granted = partitions_in(synced.assignment)
        except Malformed as malformed:
            text = (
                f"The assignment that the leader of group {self._group_id} made cannot be read: {malformed}"
            )
            return self._raise(effects, Problem(ProblemKind.UNEXPECTED, text))
        self.state = JoinState.STABLE
        self._backoff.succeeded()
        self._owned.granted = tuple(
            partition for partition in granted if partition.topic in self._config.topics
        )
        return f"It is to read {listed(granted)}."

    def _accept(self, effects: Effects, granted: Sequence[TopicPartition]) -> None:
        added, revoked = self._owned.accept(effects, granted, self.identity.generation)
        text = f"It takes on {listed(added)}"
        if revoked:
            text += f", gives up {listed(revoked)}, and joins again so that others can have them"
            self.rejoin(f"need to revoke partitions {listed(revoked)} as indicated by the current assignment")
        self._requests.record(effects, StepKind.ASSIGNMENT, f"{text}.")

    def _watch_topics(self) -> None:
        """The leader notices new partitions, and topics that come or go: then the group must rebalance."""
        if self._leads is None or self.state is not JoinState.STABLE or not self._metadata.knows(self._leads):
            return
        if self._metadata.partition_counts(self._leads) != self._counted:
            self.rejoin("topics of the group have changed")

    # Refusals and failures.

    def _on_refusal(
        self, effects: Effects, node: BrokerNode, sent: Identity, refusal: GroupRefusal
    ) -> str | Failed:
        self.state = JoinState.UNJOINED
        self._task = None
        self.rejoin(refusal.reason)
        if refusal.retry is Retry.NEVER:
            problem = Problem(refusal.kind, refusal.text(self._group_id), refusal.error)
            if refusal.fenced:
                self._fenced = problem
            return self._raise(effects, problem)
        if sent == self.identity:
            if refusal.adopt is not None:
                self.identity = Identity(refusal.adopt, NO_GENERATION, sent.instance_id)
            elif refusal.forget_generation:
                self.drop(effects, refusal)
        if refusal.rediscover:
            self._lookup.lost(effects, node)
        wait_ms = self._backoff.failed(effects.now)
        if refusal.retry is Retry.AT_ONCE and self._backoff.failures <= _AT_ONCE:
            self._backoff.until = 0
            wait_ms = 0
        when = f"in {wait_ms} ms" if wait_ms else "at once"
        # Since Kafka 2.2 a new member gets its id this way: that is no failure.
        text = f"{refusal.meaning} It joins again {when}."
        return Failed(text) if refusal.adopt is None else text

    def _raise(self, effects: Effects, problem: Problem) -> str | Failed:
        self.state = JoinState.UNJOINED
        self._task = None
        self.rejoin("the last attempt failed")
        self._backoff.failed(effects.now)
        effects.fail(problem)
        return Failed(f"{problem.text} The consumer gives up.")

    def _on_failure(self, effects: Effects, node: BrokerNode, failure: Failure) -> str | Failed:
        if self.state not in (JoinState.PREPARING_REBALANCE, JoinState.COMPLETING_REBALANCE):
            return "It no longer matters."
        if failure.kind is FailureKind.UNSUPPORTED:
            return self._raise(effects, Problem(ProblemKind.UNSUPPORTED, failure.text))
        self.state = JoinState.UNJOINED
        self._task = None
        self.rejoin("the coordinator did not answer")
        self._lookup.lost(effects, node)
        wait_ms = self._backoff.failed(effects.now)
        return Failed(f"The coordinator is looked for anew, and it joins again in {wait_ms} ms.")

    # Leaving.

    def close(self, effects: Effects) -> None:
        if self._closing:
            return
        self._closing = True
        self._owned.release_all(effects, self.identity)
        self._leave(effects, "the consumer is being closed")
        self.state = JoinState.UNJOINED

    def _leave(self, effects: Effects, reason: str) -> None:
        """Static members do not leave: the coordinator keeps their place until the session ends."""
        coordinator = self._lookup.coordinator
        identity = self.identity
        if identity.instance_id is not None or coordinator is None or identity.member_id == NO_MEMBER:
            return
        if self.state is JoinState.UNJOINED or self._leaving is not None:
            return
        self._leaving = self._requests.send(
            effects,
            StepKind.LEAVE,
            coordinator,
            AskToLeave(self._group_id, identity.member_id, None, reason),
            on_answer=self._left,
            on_failure=self._left,
        )

    def _left(self, _effects: Effects, _answer: object) -> str | Failed:
        """If the request failed, the coordinator removes the member when the session ends."""
        self._leaving = None
        return "The group goes on without it."
