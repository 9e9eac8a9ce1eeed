"""Heartbeats of a classic member, and the two deadlines behind them: the heartbeat thread of Kafka's client.

`advance` does the first of these that applies:

    coordinator unknown        look for it
    session over               no answer for session.timeout.ms: the coordinator counts as lost
    max.poll.interval.ms over  leave the group, so that the other members do not wait for this application
    heartbeat due              send it
"""

from dataclasses import dataclass
from typing import Protocol

from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import BrokerNode, Effects, Failure, Problem, ProblemKind
from kelpie.consumer.membership import refusals
from kelpie.consumer.membership.membership import Identity, MemberDeadlines
from kelpie.consumer.membership.refusals import GroupRefusal
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.time import Instant
from kelpie.questions.heartbeat import AskHeartbeat

_FIND_COORDINATOR = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class HeartbeatOwner(Protocol):
    """The member that the heartbeats are for."""

    muted: bool

    @property
    def identity(self) -> Identity: ...

    def drop(self, effects: Effects, refusal: GroupRefusal) -> None: ...

    def poll_expired(self, effects: Effects) -> None: ...


@dataclass(eq=False, slots=True)
class Heartbeats:
    _requests: PendingRequests
    _lookup: CoordinatorLookup
    _deadlines: MemberDeadlines
    _member: HeartbeatOwner
    _token: int | None = None
    _stable: bool = False

    def advance(self, effects: Effects, *, stable: bool) -> None:
        self._stable = stable
        if self._member.muted:
            return
        coordinator = self._lookup.ready(effects)
        if coordinator is None:
            return
        if effects.now >= self._deadlines.session_ends_at:
            self._lookup.lost(effects)
            # The coordinator that is found next gets the time of a session to answer.
            self._deadlines.heartbeat_answered(effects.now)
            session_ms = self._requests.config.session_timeout_ms
            text = f"No heartbeat was answered for {session_ms} ms: the coordinator counts as lost."
            needed = "an answer to a heartbeat within session.timeout.ms"
            self._requests.record(effects, StepKind.HEARTBEAT, text, needed)
        elif self._deadlines.poll_expired(effects.now):
            record_late_poll(self._requests, effects)
            self._member.poll_expired(effects)
        elif effects.now >= self._deadlines.next_heartbeat_at and not self._requests.is_pending(self._token):
            self._send_heartbeat(effects, coordinator)

    def deadline(self, now: Instant) -> Instant | None:
        if self._member.muted:
            return None
        if self._lookup.coordinator is None:
            return self._lookup.deadline(now)
        due = [self._deadlines.session_ends_at]
        if self._deadlines.poll_ends_at is not None:
            due.append(self._deadlines.poll_ends_at)
        if not self._requests.is_pending(self._token):
            due.append(self._deadlines.next_heartbeat_at)
        return min(due)

    def _send_heartbeat(self, effects: Effects, node: BrokerNode) -> None:
        config = self._requests.config
        sent = self._member.identity
        self._deadlines.next_heartbeat_in(config.heartbeat_interval_ms, effects.now)
        self._token = self._requests.send(
            effects,
            StepKind.HEARTBEAT,
            node,
            AskHeartbeat(config.group_id or "", sent.generation, sent.member_id, sent.instance_id),
            on_answer=lambda effects, error: self._on_answer(effects, node, sent, error),
            on_failure=lambda effects, failure: self._on_failure(effects, node, failure),
            timeout_ms=min(config.request_timeout_ms, config.session_timeout_ms),
        )

    def _on_answer(self, effects: Effects, node: BrokerNode, sent: Identity, error: int) -> str | Failed:
        if not error:
            self._deadlines.heartbeat_answered(effects.now)
            return "It is a member still."
        meaning = info(error).meaning
        if error in _FIND_COORDINATOR:
            self._lookup.lost(effects, node)
            return Failed(f"{meaning} The coordinator is looked for anew.")
        if sent != self._member.identity:
            return "It is of another generation by now; this no longer matters."
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._deadlines.heartbeat_answered(effects.now)
            if not self._stable:
                return "It is joining already."
            self._member.drop(effects, refusals.OF_MEMBERSHIP[error])
            return "The group is rebalancing: it joins again with the next poll."
        if error in refusals.OF_MEMBERSHIP:
            self._member.drop(effects, refusals.OF_MEMBERSHIP[error])
            return Failed(meaning)
        kind = ProblemKind.UNEXPECTED
        if error == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        effects.fail(Problem(kind, f"A heartbeat was refused: {describe(error)}. {meaning}", error))
        return Failed(f"{meaning} The consumer gives up.")

    def _on_failure(self, effects: Effects, node: BrokerNode, failure: Failure) -> str | Failed:
        del failure
        self._lookup.lost(effects, node)
        self._deadlines.next_heartbeat_in(self._requests.config.retry_backoff_ms, effects.now)
        return Failed("The coordinator is looked for anew.")


def record_late_poll(requests: PendingRequests, effects: Effects) -> None:
    interval_ms = requests.config.max_poll_interval_ms
    text = f"The application has not polled for {interval_ms} ms: the member leaves the group."
    requests.record(effects, StepKind.HEARTBEAT, text, needed="a poll within max.poll.interval.ms")
