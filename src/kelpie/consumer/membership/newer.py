"""A member of a group of the newer protocol (KIP-848): one request for everything, and no leader.

The coordinator shares the partitions out. A member says in its heartbeats what it subscribes to and what it
owns, and hears what it should own. What is no longer its own it gives up first, and says so; what it gains it
gets once the others have given it up.

UNSUBSCRIBED   no member
JOINING        a heartbeat with epoch 0 is on its way, or due
STABLE         owns what it should
RECONCILING    another assignment has come: giving up (committing first), then taking on, in a poll
ACKNOWLEDGING  done; the next heartbeat, due at once, says what it owns
STALE          the application did not poll in time: it has left, and joins again with the next poll
LEAVING        the last heartbeat, of epoch −1, is on its way
FATAL          poll raises why

| error                                          | what follows                                              |
|------------------------------------------------|-----------------------------------------------------------|
| 14 COORDINATOR_LOAD_IN_PROGRESS                | again after the back-off                                  |
| 15, 16, no answer                              | find the coordinator anew; the next heartbeat tells all   |
| 25 UNKNOWN_MEMBER_ID, 110 FENCED_MEMBER_EPOCH  | its partitions are lost; join again                       |
| 29 TOPIC_AUTHORIZATION_FAILED                  | poll raises it; heartbeats go on                          |
| 30, 35, 42, 81, 82, 111, 112, 128, any other   | poll raises it, and that is the end                       |
"""

from collections.abc import Callable
from enum import Enum

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.membership.clocks import Clocks
from kelpie.consumer.membership.identity import Identity
from kelpie.consumer.membership.membership import Commits, Reach
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Assigned, Failure, FailureKind, Lost, Place, Problem, ProblemKind, Revoked
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat, Beat, OwnedIds
from kelpie.questions.question import listed

NEEDED = "an epoch above 0 and the partitions of this member"
_LEAVE = -1
_LEAVE_FOR_A_WHILE = -2
_ELSEWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
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


class State(Enum):
    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    STABLE = "STABLE"
    RECONCILING = "RECONCILING"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STALE = "STALE"
    LEAVING = "LEAVING"
    FATAL = "FATAL"


_BEATS = (State.JOINING, State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)


class NewerMembership:
    commits: Commits

    def __init__(
        self,
        desk: Desk,
        metadata: Metadata,
        lookup: Lookup,
        assignment: Assignment,
        new_id: Callable[[], str],
    ) -> None:
        config = desk.config
        assert config.group_id is not None
        self._desk = desk
        self._config = config
        self._group_id = config.group_id
        self._metadata = metadata
        self._lookup = lookup
        self._assignment = assignment
        self._clocks = Clocks(config)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.muted = False
        self.state = State.JOINING
        self.identity = Identity(new_id(), 0, config.group_instance_id, is_newer=True)
        self._target: OwnedIds | None = None
        """What it should own."""
        self._owned: OwnedIds = ()
        self._told: OwnedIds | None = None
        """What the coordinator has last been told; None: nothing, so the next heartbeat tells all."""
        self._giving_up = False
        self._interval_ms = config.heartbeat_interval_ms
        self._token: int | None = None
        self._fatal: Problem | None = None

    # What others ask and tell.

    @property
    def is_joined(self) -> bool:
        return self.state is State.STABLE and self.identity.generation > 0

    @property
    def is_closed(self) -> bool:
        return self.state in (State.UNSUBSCRIBED, State.FATAL)

    def committer(self) -> Identity | Problem:
        if self.identity.generation > 0 and self.state in _BEATS:
            return self.identity
        text = "The offsets were not committed: this consumer is no member of the group (any more)."
        return Problem(ProblemKind.COMMIT_FAILED, text)

    def refused(self, turn: Turn, error: int, sent: Identity) -> None:
        """A commit or an offset request was refused: the next heartbeat, sent at once, brings the truth."""
        if error != ErrorCode.REBALANCE_IN_PROGRESS and sent == self.identity:
            self._clocks.beat_in(0, turn.now)

    def polled(self, turn: Turn) -> None:
        self._clocks.polled(turn.now)
        if self._fatal is not None:
            turn.fail(self._fatal)
        if self.state is State.STALE and not self._desk.is_under_way(self._token):
            self._start_over(turn)

    # What happens in any case.

    @property
    def _beats(self) -> bool:
        """It does not join before the application has polled once."""
        return self.state in _BEATS and self._clocks.poll_until is not None

    def background(self, turn: Turn) -> None:
        if self.muted or not self._beats:
            return
        coordinator = self._lookup.ready(turn)
        if coordinator is None:
            return
        if self._clocks.poll_is_late(turn.now):
            self._poll_is_late(turn, coordinator)
            return
        due = turn.now >= self._clocks.next_beat or self.state is State.ACKNOWLEDGING
        if due and self._backoff.over(turn.now) and not self._desk.is_under_way(self._token):
            self._beat(turn, coordinator)

    def advance(self, turn: Turn) -> Reach:
        if self.state is State.RECONCILING:
            self._reconcile(turn)
        return Reach.NOTHING if self.state in (State.FATAL, State.LEAVING) else Reach.ALL

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        del polling
        if self.muted or not self._beats:
            return None
        if self._lookup.coordinator is None:
            return self._lookup.deadline(now)
        due = [] if self._clocks.poll_until is None else [self._clocks.poll_until]
        if not self._desk.is_under_way(self._token):
            due.append(max(self._clocks.next_beat, self._backoff.until))
        return min(due, default=None)

    def _beat(self, turn: Turn, place: Place) -> None:
        sent = self.identity
        owned = self._owned
        whole = self._told is None  # After a join, and whenever an answer went missing.
        config = self._config
        question = AskNewerHeartbeat(
            self._group_id,
            sent.member_id,
            sent.generation,
            sent.instance_id,
            config.max_poll_interval_ms if whole else -1,
            config.topics if whole else None,
            config.group_remote_assignor if whole else None,
            owned if whole or owned != self._told else None,
        )
        if self.state is State.ACKNOWLEDGING:
            self.state = State.STABLE
        self._clocks.beat_in(self._interval_ms, turn.now)
        what = What.JOIN if sent.generation == 0 else What.HEARTBEAT
        self._token = self._desk.ask(
            turn,
            what,
            place,
            question,
            then=lambda turn, beat: self._heard(turn, place, sent, owned, beat),
            otherwise=lambda turn, failure: self._not_heard(turn, place, failure),
        )

    def _heard(self, turn: Turn, place: Place, sent: Identity, owned: OwnedIds, beat: Beat) -> Follows:
        if sent != self.identity or self.state not in _BEATS:
            return Follows("It no longer matters.")
        if beat.error:
            return self._refused(turn, place, beat)
        self._backoff.succeeded()
        self._told = owned
        self._interval_ms = max(beat.interval_ms, 1)
        self._clocks.beat_in(self._interval_ms, turn.now)
        member_id = beat.member_id or sent.member_id
        self.identity = Identity(member_id, beat.epoch, sent.instance_id, is_newer=True)
        if beat.assignment is None:
            if self.state is State.JOINING:
                self.state = State.STABLE
            return Follows(f"It is a member, of epoch {beat.epoch}.")
        self._target = beat.assignment
        if self._target != self._owned:
            self.state = State.RECONCILING
            return Follows("Another assignment: what goes is given up first, then what comes is taken on.")
        # Nothing changes, and yet it must be said: the first assignment may be empty.
        self.state = State.STABLE if self._told == self._target and sent.generation else State.ACKNOWLEDGING
        return Follows("It owns what it should.")

    def _reconcile(self, turn: Turn) -> None:
        """Come from what is owned to what should be, as far as the topics' names are known."""
        assert self._target is not None
        named: list[TopicPartition] = []
        known: list[tuple[bytes, tuple[int, ...]]] = []
        for topic_id, numbers in self._target:
            name = self._metadata.name_of(topic_id)
            if name is None:
                self._metadata.outdated()  # It has been created since; what is known is taken on already.
                continue
            known.append((topic_id, numbers))
            named += (TopicPartition(name, number) for number in numbers)
        owned = self._assignment.partitions
        revoked = tuple(partition for partition in owned if partition not in named)
        if revoked and not self._giving_up:
            self._giving_up = True
            self._assignment.revoking(revoked)
            self.commits.commit_before_leaving(turn, self._config.max_poll_interval_ms)
        if revoked and not self.commits.is_settled:
            return
        self._giving_up = False
        added = tuple(partition for partition in named if partition not in owned)
        if revoked:
            turn.tell(Revoked(revoked))
        if added or revoked:
            self._assignment.assign(named)
            turn.tell(Assigned(added))
            gives = f", and gives up {listed(revoked)}" if revoked else ""
            self._desk.note(turn, What.ASSIGNMENT, Follows(f"It takes on {listed(added)}{gives}."))
        before, self._owned = self._owned, tuple(known)
        if self._owned != before or self._owned == self._target:
            self.state = State.ACKNOWLEDGING if self._owned == self._target else State.RECONCILING
            self._clocks.beat_in(0, turn.now)

    # When it does not work.

    def _refused(self, turn: Turn, place: Place, beat: Beat) -> Follows:
        meaning = info(beat.error).meaning
        if beat.error in _ELSEWHERE:
            self._told = None
            self._clocks.beat_in(0, turn.now)
            self._lookup.lost(turn, place)
            return Follows(f"{meaning} The coordinator is looked for anew.", failed=True, needed=NEEDED)
        if beat.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            wait_ms = self._backoff.failed(turn.now)
            self._clocks.beat_in(wait_ms, turn.now)
            return Follows(f"{meaning} It is tried again in {wait_ms} ms.", failed=True, needed=NEEDED)
        if beat.error in _FENCED:
            self._backoff.failed(turn.now)
            self._start_over(turn)
            return Follows(
                f"{meaning} Its partitions are lost, and it joins again.", failed=True, needed=NEEDED
            )
        kind = _KINDS.get(beat.error, ProblemKind.UNEXPECTED)
        said = beat.message or meaning
        problem = Problem(kind, f"Group {self._group_id}: {describe(beat.error)}. {said}", beat.error)
        if beat.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            turn.fail(problem)
            return Follows(f"{said} Heartbeats go on.", failed=True, needed=NEEDED)
        return self._end(turn, problem)

    def _not_heard(self, turn: Turn, place: Place, failure: Failure) -> Follows:
        if self.state not in _BEATS:
            return Follows("It no longer matters.")
        if failure.kind is FailureKind.UNSUPPORTED:
            return self._end(turn, Problem(ProblemKind.UNSUPPORTED, failure.text))
        self._told = None
        self._lookup.lost(turn, place)
        wait_ms = self._backoff.failed(turn.now)
        self._clocks.beat_in(wait_ms, turn.now)
        return Follows("The coordinator is looked for anew.", failed=True, needed=NEEDED)

    def _end(self, turn: Turn, problem: Problem) -> Follows:
        self.state = State.FATAL
        self._fatal = problem
        self._let_go(turn, lost=True)
        turn.fail(problem)
        return Follows(f"{problem.text} The consumer gives up.", failed=True, needed=NEEDED)

    def _start_over(self, turn: Turn) -> None:
        self._let_go(turn, lost=True)
        self.identity = Identity(self.identity.member_id, 0, self.identity.instance_id, is_newer=True)
        self.state = State.JOINING
        self._clocks.beat_in(0, turn.now)

    def _let_go(self, turn: Turn, *, lost: bool) -> None:
        owned = self._assignment.partitions
        self._assignment.assign(())
        self._target, self._owned, self._told, self._giving_up = None, (), None, False
        if owned:
            turn.tell(Lost(owned) if lost else Revoked(owned))

    # Leaving.

    def _poll_is_late(self, turn: Turn, place: Place) -> None:
        interval_ms = self._config.max_poll_interval_ms
        follows = Follows(
            f"The application has not polled for {interval_ms} ms: the member leaves the group.",
            failed=True,
            needed="a poll within max.poll.interval.ms",
        )
        self._desk.note(turn, What.HEARTBEAT, follows)
        self.state = State.STALE
        self._say_goodbye(turn, place)
        self._let_go(turn, lost=True)

    def close(self, turn: Turn) -> None:
        if self.state in (State.LEAVING, State.UNSUBSCRIBED, State.FATAL):
            return
        joined = self.identity.generation > 0 and self.state in _BEATS
        self._let_go(turn, lost=not joined)
        place = self._lookup.coordinator
        self.state = State.UNSUBSCRIBED
        if joined and place is not None:
            self.state = State.LEAVING
            self._say_goodbye(turn, place)

    def _say_goodbye(self, turn: Turn, place: Place) -> None:
        """A static member goes for a while: its partitions wait for it until its session ends."""
        epoch = _LEAVE if self.identity.instance_id is None else _LEAVE_FOR_A_WHILE
        question = AskNewerHeartbeat(
            self._group_id, self.identity.member_id, epoch, self.identity.instance_id
        )
        self._token = self._desk.ask(turn, What.LEAVE, place, question, then=self._left, otherwise=self._left)

    def _left(self, turn: Turn, answer: object) -> Follows:
        del answer  # Whatever it is: if it did not work, the session ends it.
        if self.state is State.LEAVING:
            self.state = State.UNSUBSCRIBED
        elif self.state is State.STALE and not self._clocks.poll_is_late(turn.now):
            self._start_over(turn)  # A poll came while it was leaving.
        return Follows("The group goes on without it.")
