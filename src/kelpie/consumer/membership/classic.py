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

What follows from refusals is in refusals.py; heartbeats are in beating.py, the leader's work in leading.py,
and what becomes of the partitions in holdings.py.
"""

from collections.abc import Sequence
from enum import Enum

from kelpie.assignors import subscription
from kelpie.consumer.backoff import Backoff
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.membership import refusals
from kelpie.consumer.membership.beating import Beating
from kelpie.consumer.membership.clocks import Clocks
from kelpie.consumer.membership.holdings import Holdings
from kelpie.consumer.membership.identity import NO_GENERATION, NO_MEMBER, Identity
from kelpie.consumer.membership.leading import Task
from kelpie.consumer.membership.membership import Commits, Reach
from kelpie.consumer.membership.refusals import Refusal, Retry
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Failure, FailureKind, Place, Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.join_group import AskToJoin, Joined
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.question import listed
from kelpie.questions.sync_group import AskForAssignment, Synced
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE, partitions_in
from kelpie.wire.malformed import Malformed

JOIN_NEEDED = "a generation and a member id"
SYNC_NEEDED = "the partitions of this member"
_JOIN_LAPSE_MS = 5_000
_AT_ONCE = 3


class State(Enum):
    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


class ClassicMembership:
    def __init__(self, desk: Desk, metadata: Metadata, lookup: Lookup, assignment: Assignment) -> None:
        config = desk.config
        assert config.group_id is not None
        self._desk = desk
        self._config = config
        self._group_id = config.group_id
        self._metadata = metadata
        self._lookup = lookup
        self._assignment = assignment
        self._clocks = Clocks(config)
        self._holdings = Holdings(config, assignment)
        self._beating = Beating(desk, lookup, self._clocks, self)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.state = State.UNJOINED
        self.identity = Identity(instance_id=config.group_instance_id)
        self._rejoin: str | None = "it has just started"
        """Why it must join, if it must."""
        self._task: Task | None = None
        self._leads: frozenset[str] | None = None
        """Of a leader: the topics of the group."""
        self._counted: dict[str, int] = {}
        self._leaving: int | None = None
        self._closing = False
        self._fenced: Problem | None = None

    # What others ask and tell.

    @property
    def commits(self) -> Commits:
        return self._holdings.commits

    @commits.setter
    def commits(self, commits: Commits) -> None:
        self._holdings.commits = commits

    @property
    def is_joined(self) -> bool:
        return self.state is State.STABLE and self.identity.is_member and self._holdings.granted is None

    @property
    def is_closed(self) -> bool:
        return self._closing and self._leaving is None

    @property
    def muted(self) -> bool:
        return self._beating.muted

    @muted.setter
    def muted(self, muted: bool) -> None:
        self._beating.muted = muted

    def committer(self) -> Identity | Problem:
        if self.state is State.STABLE and self.identity.is_member:
            return self.identity
        if self.identity.is_member:
            text = "The group is rebalancing: the offsets can be committed once the member has joined again."
            return Problem(ProblemKind.REBALANCING, text, ErrorCode.REBALANCE_IN_PROGRESS)
        text = (
            "The offsets were not committed: this consumer is no member of the group (any more), and its "
            "partitions may be another's. Mostly it took longer than max.poll.interval.ms between two polls."
        )
        return Problem(ProblemKind.COMMIT_FAILED, text)

    def refused(self, turn: Turn, error: int, sent: Identity) -> None:
        """Someone else's request was refused because of the membership."""
        if sent == self.identity and error in refusals.OF_MEMBERSHIP:
            self.drop(turn, refusals.OF_MEMBERSHIP[error])

    def drop(self, turn: Turn, refusal: Refusal) -> None:
        """The membership is not what it was; what follows from it is a rejoin, or the end."""
        if refusal.fenced:
            self._fenced = Problem(ProblemKind.FENCED, refusal.text(self._group_id), refusal.error)
            turn.fail(self._fenced)
            return
        if refusal.forget_generation:
            member_id = NO_MEMBER if refusal.forget_member else self.identity.member_id
            self.identity = Identity(member_id, NO_GENERATION, self.identity.instance_id)
            self.state = State.UNJOINED
            self._holdings.dropped()
        self.rejoin(refusal.reason)

    def rejoin(self, reason: str) -> None:
        if self._rejoin is None:
            self._rejoin = reason

    def polled(self, turn: Turn) -> None:
        self._clocks.polled(turn.now)
        if self._fenced is not None:
            turn.fail(self._fenced)

    # What happens in any case.

    def background(self, turn: Turn) -> None:
        if self._task is not None and self.state is State.COMPLETING_REBALANCE:
            self._lead(turn, self._task)
        joined = self.state in (State.COMPLETING_REBALANCE, State.STABLE)
        if joined and self._fenced is None and self._leaving is None:
            self._beating.advance(turn, stable=self.state is State.STABLE)

    def poll_is_late(self, turn: Turn) -> None:
        """The application has not polled in time: whatever it does, the group must not wait for it."""
        self._leave(turn, "consumer poll timeout has expired.")
        self.identity = Identity(instance_id=self.identity.instance_id)
        self.state = State.UNJOINED
        self._holdings.dropped()
        self._rejoin = "the application did not poll within max.poll.interval.ms"

    # What happens in polls.

    def advance(self, turn: Turn) -> Reach:
        if self._fenced is not None or self._leaving is not None or self._closing:
            return Reach.NOTHING
        if self._lookup.ready(turn) is None:
            return Reach.NOTHING
        if self._holdings.granted is not None and self.state is State.STABLE:
            self._take_on(turn, self._holdings.granted)
        self._watch_topics()
        if self._rejoin is None and self.state is State.STABLE:
            return Reach.ALL
        if self.state in (State.UNJOINED, State.STABLE) and self._backoff.over(turn.now):
            self._join(turn)
        return Reach.FETCHES

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        due: list[Instant | None] = []
        joined = self.state in (State.COMPLETING_REBALANCE, State.STABLE)
        if joined and self._fenced is None and self._leaving is None:
            due.append(self._beating.deadline(now))
        if polling and self._fenced is None and self._leaving is None:
            due.append(self._lookup.deadline(now))
            if not self._backoff.over(now):
                due.append(self._backoff.until)
        return min((at for at in due if at is not None), default=None)

    def _join(self, turn: Turn) -> None:
        if not self._holdings.give_up(turn, self.identity):
            return
        coordinator = self._lookup.coordinator
        assert coordinator is not None
        config = self._config
        sent = self.identity
        reason, self._rejoin = self._rejoin or "", None
        self.state = State.PREPARING_REBALANCE
        question = AskToJoin(
            self._group_id,
            sent.member_id,
            sent.instance_id,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            tuple((name, self._subscription(name, sent.generation)) for name in config.assignors),
            reason,
        )
        self._desk.ask(
            turn,
            What.JOIN,
            coordinator,
            question,
            then=lambda turn, joined: self._joined(turn, coordinator, sent, joined),
            otherwise=lambda turn, failure: self._no_answer(turn, coordinator, failure, JOIN_NEEDED),
            # The coordinator answers when all have come: that may take as long as they may take to poll.
            limit_ms=max(config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_LAPSE_MS),
        )

    def _subscription(self, name: str, generation: int) -> bytes:
        held = self._holdings
        owned = self._assignment.partitions
        return subscription(
            name, self._config.topics, owned, generation, held.remembered, remembered_in=held.remembered_in
        )

    def _joined(self, turn: Turn, place: Place, sent: Identity, joined: Joined) -> Follows:
        if self.state is not State.PREPARING_REBALANCE:
            return Follows("It has left in the meantime.")
        if joined.error:
            return self._turned_away(turn, place, sent, refusals.of_join(joined), JOIN_NEEDED)
        if joined.protocol_type not in (None, PROTOCOL_TYPE):
            text = f"Group {self._group_id} is of protocol type {joined.protocol_type}, not {PROTOCOL_TYPE}."
            return self._give_in(turn, Problem(ProblemKind.REFUSED, text), JOIN_NEEDED)
        self.identity = Identity(joined.member_id, joined.generation, self.identity.instance_id)
        self.state = State.COMPLETING_REBALANCE
        self._clocks.joined(turn.now)
        if not joined.leads:
            self._leads = None
            self._metadata.follow(frozenset())
            self._sync(turn, place, joined.protocol)
            return Follows(f"It is member {joined.member_id}; the leader shares the partitions out.")
        task = Task.of(joined)
        self._leads = task.topics
        self._metadata.follow(task.topics)
        if joined.skip_assignment:
            self._counted = self._metadata.partition_counts(task.topics)
            self._sync(turn, place, joined.protocol)
            return Follows(f"It is member {joined.member_id} and leads; the assignment stands.")
        if not task.is_possible:
            text = f"The coordinator chose the assignor {task.protocol!r}, which this consumer did not offer."
            return self._give_in(turn, Problem(ProblemKind.UNEXPECTED, text), JOIN_NEEDED)
        self._task = task
        self._lead(turn, task)
        return Follows(f"It is member {joined.member_id} and leads: it shares the partitions out.")

    def _lead(self, turn: Turn, task: Task) -> None:
        """Share out, as soon as all topics of the group are known."""
        coordinator = self._lookup.coordinator
        if coordinator is None or not self._metadata.knows(task.topics):
            return
        self._task = None
        self._counted = self._metadata.partition_counts(task.topics)
        self._sync(turn, coordinator, task.protocol, task.done(self._counted))

    def _sync(
        self, turn: Turn, place: Place, protocol: str | None, assignments: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        sent = self.identity
        question = AskForAssignment(
            self._group_id, sent.generation, sent.member_id, sent.instance_id, protocol, assignments
        )
        self._desk.ask(
            turn,
            What.SYNC,
            place,
            question,
            then=lambda turn, synced: self._synced(turn, place, sent, synced),
            otherwise=lambda turn, failure: self._no_answer(turn, place, failure, SYNC_NEEDED),
        )

    def _synced(self, turn: Turn, place: Place, sent: Identity, synced: Synced) -> Follows:
        if self.state is not State.COMPLETING_REBALANCE or sent != self.identity:
            return Follows("It is no longer of that generation.")
        if synced.error:
            return self._turned_away(turn, place, sent, refusals.of_sync(synced.error), SYNC_NEEDED)
        try:
            granted = partitions_in(synced.assignment)
        except Malformed as malformed:
            text = (
                f"The assignment that the leader of group {self._group_id} made cannot be read: {malformed}"
            )
            return self._give_in(turn, Problem(ProblemKind.UNEXPECTED, text), SYNC_NEEDED)
        self.state = State.STABLE
        self._backoff.succeeded()
        self._holdings.granted = tuple(
            partition for partition in granted if partition.topic in self._config.topics
        )
        return Follows(f"It is to read {listed(granted)}.")

    def _take_on(self, turn: Turn, granted: Sequence[TopicPartition]) -> None:
        added, revoked = self._holdings.take_on(turn, granted, self.identity.generation)
        text = f"It takes on {listed(added)}"
        if revoked:
            text += f", gives up {listed(revoked)}, and joins again so that others can have them"
            self.rejoin(f"need to revoke partitions {listed(revoked)} as indicated by the current assignment")
        self._desk.note(turn, What.ASSIGNMENT, Follows(f"{text}."))

    def _watch_topics(self) -> None:
        """The leader notices new partitions, and topics that come or go: the group must share out anew."""
        if self._leads is None or self.state is not State.STABLE or not self._metadata.knows(self._leads):
            return
        if self._metadata.partition_counts(self._leads) != self._counted:
            self.rejoin("topics of the group have changed")

    # When it does not work.

    def _turned_away(
        self, turn: Turn, place: Place, sent: Identity, refusal: Refusal, needed: str
    ) -> Follows:
        self.state = State.UNJOINED
        self._task = None
        self.rejoin(refusal.reason)
        if refusal.retry is Retry.NEVER:
            problem = Problem(refusal.kind, refusal.text(self._group_id), refusal.error)
            if refusal.fenced:
                self._fenced = problem
            return self._give_in(turn, problem, needed)
        if sent == self.identity:
            if refusal.adopt is not None:
                self.identity = Identity(refusal.adopt, NO_GENERATION, sent.instance_id)
            elif refusal.forget_generation:
                self.drop(turn, refusal)
        if refusal.rediscover:
            self._lookup.lost(turn, place)
        wait_ms = self._backoff.failed(turn.now)
        if refusal.retry is Retry.AT_ONCE and self._backoff.failures <= _AT_ONCE:
            self._backoff.until = 0
            wait_ms = 0
        when = f"in {wait_ms} ms" if wait_ms else "at once"
        # To be given an id first is how joining goes since Kafka 2.2: no failure.
        failed = refusal.adopt is None
        return Follows(
            f"{refusal.meaning} It joins again {when}.", failed=failed, needed=needed if failed else ""
        )

    def _give_in(self, turn: Turn, problem: Problem, needed: str) -> Follows:
        self.state = State.UNJOINED
        self._task = None
        self.rejoin("the last attempt failed")
        self._backoff.failed(turn.now)
        turn.fail(problem)
        return Follows(f"{problem.text} The consumer gives up.", failed=True, needed=needed)

    def _no_answer(self, turn: Turn, place: Place, failure: Failure, needed: str) -> Follows:
        if self.state not in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE):
            return Follows("It no longer matters.")
        if failure.kind is FailureKind.UNSUPPORTED:
            return self._give_in(turn, Problem(ProblemKind.UNSUPPORTED, failure.text), needed)
        self.state = State.UNJOINED
        self._task = None
        self.rejoin("the coordinator did not answer")
        self._lookup.lost(turn, place)
        wait_ms = self._backoff.failed(turn.now)
        return Follows(
            f"The coordinator is looked for anew, and it joins again in {wait_ms} ms.",
            failed=True,
            needed=needed,
        )

    # Leaving.

    def close(self, turn: Turn) -> None:
        if self._closing:
            return
        self._closing = True
        self._holdings.let_go(turn, self.identity)
        self._leave(turn, "the consumer is being closed")
        self.state = State.UNJOINED

    def _leave(self, turn: Turn, reason: str) -> None:
        """Static members do not leave: they are expected back."""
        coordinator = self._lookup.coordinator
        identity = self.identity
        if identity.instance_id is not None or coordinator is None or identity.member_id == NO_MEMBER:
            return
        if self.state is State.UNJOINED or self._leaving is not None:
            return
        self._leaving = self._desk.ask(
            turn,
            What.LEAVE,
            coordinator,
            AskToLeave(self._group_id, identity.member_id, None, reason),
            then=self._left,
            otherwise=self._left,
        )

    def _left(self, turn: Turn, answer: object) -> Follows:
        del turn, answer  # Whatever it is: if it did not work, the session ends it.
        self._leaving = None
        return Follows("The group goes on without it.")
