"""Heartbeats of a classic member, and the two deadlines behind them: the heartbeat thread of Kafka's client.

In this order, each time it is looked at:

    coordinator unknown       look for it
    session over              no answer for session.timeout.ms: the coordinator counts as lost
    time between polls over   leave the group: the application is stuck, and the others must not wait for it
    heartbeat due             send it
"""

from typing import Protocol

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.membership import refusals
from kelpie.consumer.membership.clocks import Clocks
from kelpie.consumer.membership.identity import Identity
from kelpie.consumer.membership.refusals import Refusal
from kelpie.consumer.outcome import Failure, Place, Problem, ProblemKind
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.time import Instant
from kelpie.questions.heartbeat import AskHeartbeat

NEEDED = "0"
_ELSEWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class Beater(Protocol):
    """The member whose heart it is."""

    @property
    def identity(self) -> Identity: ...

    def drop(self, turn: Turn, refusal: Refusal) -> None: ...

    def poll_is_late(self, turn: Turn) -> None: ...


class Beating:
    def __init__(self, desk: Desk, lookup: Lookup, clocks: Clocks, member: Beater) -> None:
        self._desk = desk
        self._lookup = lookup
        self._clocks = clocks
        self._member = member
        self._token: int | None = None
        self._stable = False
        self.muted = False

    def advance(self, turn: Turn, *, stable: bool) -> None:
        self._stable = stable
        if self.muted:
            return
        coordinator = self._lookup.ready(turn)
        if coordinator is None:
            return
        if turn.now >= self._clocks.session_until:
            self._lookup.lost(turn)
            self._clocks.heard(turn.now)  # The one that is found gets a session's time to answer.
            session_ms = self._desk.config.session_timeout_ms
            follows = Follows(
                f"No heartbeat was answered for {session_ms} ms: the coordinator counts as lost.",
                failed=True,
                needed="an answer to a heartbeat within session.timeout.ms",
            )
            self._desk.note(turn, What.HEARTBEAT, follows)
        elif self._clocks.poll_is_late(turn.now):
            interval_ms = self._desk.config.max_poll_interval_ms
            follows = Follows(
                f"The application has not polled for {interval_ms} ms: the member leaves the group.",
                failed=True,
                needed="a poll within max.poll.interval.ms",
            )
            self._desk.note(turn, What.HEARTBEAT, follows)
            self._member.poll_is_late(turn)
        elif turn.now >= self._clocks.next_beat and not self._desk.is_under_way(self._token):
            self._beat(turn, coordinator)

    def deadline(self, now: Instant) -> Instant | None:
        if self.muted:
            return None
        if self._lookup.coordinator is None:
            return self._lookup.deadline(now)
        due = [self._clocks.session_until]
        if self._clocks.poll_until is not None:
            due.append(self._clocks.poll_until)
        if not self._desk.is_under_way(self._token):
            due.append(self._clocks.next_beat)
        return min(due)

    def _beat(self, turn: Turn, place: Place) -> None:
        config = self._desk.config
        sent = self._member.identity
        self._clocks.beat_in(config.heartbeat_interval_ms, turn.now)
        self._token = self._desk.ask(
            turn,
            What.HEARTBEAT,
            place,
            AskHeartbeat(config.group_id or "", sent.generation, sent.member_id, sent.instance_id),
            then=lambda turn, error: self._heard(turn, place, sent, error),
            otherwise=lambda turn, failure: self._not_heard(turn, place, failure),
            limit_ms=min(config.request_timeout_ms, config.session_timeout_ms),
        )

    def _heard(self, turn: Turn, place: Place, sent: Identity, error: int) -> Follows:
        if not error:
            self._clocks.heard(turn.now)
            return Follows("It is a member still.")
        meaning = info(error).meaning
        if error in _ELSEWHERE:
            self._lookup.lost(turn, place)
            return Follows(f"{meaning} The coordinator is looked for anew.", failed=True, needed=NEEDED)
        if sent != self._member.identity:
            return Follows("It is of another generation by now; this no longer matters.")
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._clocks.heard(turn.now)
            if not self._stable:
                return Follows("It is joining already.")
            self._member.drop(turn, refusals.OF_MEMBERSHIP[error])
            return Follows("The group is rebalancing: it joins again with the next poll.")
        if error in refusals.OF_MEMBERSHIP:
            self._member.drop(turn, refusals.OF_MEMBERSHIP[error])
            return Follows(meaning, failed=True, needed=NEEDED)
        kind = ProblemKind.UNEXPECTED
        if error == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        turn.fail(Problem(kind, f"A heartbeat was refused: {describe(error)}. {meaning}", error))
        return Follows(f"{meaning} The consumer gives up.", failed=True, needed=NEEDED)

    def _not_heard(self, turn: Turn, place: Place, failure: Failure) -> Follows:
        del failure
        self._lookup.lost(turn, place)
        self._clocks.beat_in(self._desk.config.retry_backoff_ms, turn.now)
        return Follows("The coordinator is looked for anew.", failed=True, needed=NEEDED)
