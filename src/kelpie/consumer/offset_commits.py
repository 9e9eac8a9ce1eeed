"""Commits: OffsetCommit, sent to the coordinator, one request at a time.

| error of a partition                   | what follows                                                    |
|----------------------------------------|-----------------------------------------------------------------|
| 3, 14                                  | again after the back-off                                        |
| 7, 15, 16, or no answer                | find the coordinator anew, and again                            |
| 113 STALE_MEMBER_EPOCH                 | again, with the epoch that the next heartbeat brings            |
| 22, 25, 69, 110                        | commit failed: the group goes on without this member            |
| 27 REBALANCE_IN_PROGRESS               | refused: join first; what was not committed may be read twice   |
| 82 FENCED_INSTANCE_ID                  | refused: another process has this group.instance.id             |
| 12, 28, 29, 30, and any other          | refused                                                         |

An automatic commit raises no error: after an error that may pass it is retried soon, else at the next
interval. It commits the positions of delivered records, and is sent in polls, as in Kafka: a consumer that
does not poll does not commit.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import (
    BrokerNode,
    CommitFailed,
    Effects,
    Failure,
    FailureKind,
    OffsetsCommitted,
    Problem,
    ProblemKind,
)
from kelpie.consumer.membership.membership import Identity, Membership
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.offset_commit import AskToCommit, OffsetToCommit

Offsets = Mapping[TopicPartition, OffsetToCommit]

_FIND_COORDINATOR = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
_RETRIABLE = _FIND_COORDINATOR | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
}
_OF_MEMBERSHIP: dict[int, ProblemKind] = {
    ErrorCode.ILLEGAL_GENERATION: ProblemKind.COMMIT_FAILED,
    ErrorCode.UNKNOWN_MEMBER_ID: ProblemKind.COMMIT_FAILED,
    ErrorCode.FENCED_MEMBER_EPOCH: ProblemKind.COMMIT_FAILED,
    ErrorCode.REBALANCE_IN_PROGRESS: ProblemKind.REBALANCING,
    ErrorCode.FENCED_INSTANCE_ID: ProblemKind.FENCED,
}
_OTHERS: dict[int, ProblemKind] = {
    ErrorCode.GROUP_ID_NOT_FOUND: ProblemKind.COMMIT_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ProblemKind.NOT_AUTHORISED,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: ProblemKind.REFUSED,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: ProblemKind.REFUSED,
}


@dataclass(frozen=True, slots=True)
class _Commit:
    commit_id: int
    offsets: Offsets
    automatic: bool
    until: Instant
    """It is not retried after this."""


@dataclass(eq=False)
class OffsetCommits:
    _requests: PendingRequests
    _lookup: CoordinatorLookup | None
    _assignment: SubscriptionState
    _membership: Membership
    _waiting: deque[_Commit] = field(default_factory=deque)
    _token: int | None = None
    _last_id: int = 0
    _next_automatic: Instant | None = None

    def __post_init__(self) -> None:
        config = self._requests.config
        self._group_id = config.group_id or ""
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._automatic = config.enable_auto_commit and self._lookup is not None

    @property
    def is_settled(self) -> bool:
        """Whether no commit is pending."""
        return not self._waiting

    def commit(self, effects: Effects, offsets: Offsets | None = None, limit_ms: int | None = None) -> int:
        """Commit these, or all positions. The event at its end has the id that this returns."""
        self._last_id += 1
        if offsets is None:
            offsets = self._consumed()
        limit = self._requests.config.request_timeout_ms if limit_ms is None else limit_ms
        self._add(effects, _Commit(self._last_id, offsets, automatic=False, until=effects.now + limit))
        return self._last_id

    def commit_before_leaving(self, effects: Effects, limit_ms: int) -> None:
        """If commits are automatic: commit the positions, before partitions are given up."""
        offsets = self._consumed()
        if self._automatic and offsets:
            self._last_id += 1
            self._add(effects, _Commit(self._last_id, offsets, automatic=True, until=effects.now + limit_ms))

    def polled(self, effects: Effects) -> None:
        """In a poll: an automatic commit may be due."""
        if not self._automatic:
            return
        interval = self._requests.config.auto_commit_interval_ms
        if self._next_automatic is None:
            self._next_automatic = effects.now + interval
        if effects.now >= self._next_automatic and self.is_settled:
            self._next_automatic = effects.now + interval
            self.commit_before_leaving(effects, interval)

    def advance(self, effects: Effects) -> None:
        if not self._waiting or self._requests.is_pending(self._token):
            return
        commit = self._waiting[0]
        if self._lookup is None:
            self._end(
                effects, commit, Problem(ProblemKind.REFUSED, "There is no group to commit offsets for.")
            )
            return
        committer = self._membership.committer()
        if isinstance(committer, Problem):
            self._end(effects, commit, committer)
            return
        if effects.now >= commit.until:
            text = "The offsets could not be committed in time: the coordinator is not to be had."
            self._end(effects, commit, Problem(ProblemKind.COMMIT_FAILED, text))
            return
        if not self._backoff.over(effects.now):
            return
        coordinator = self._lookup.ready(effects)
        if coordinator is not None:
            self._send(effects, coordinator, commit, committer)

    def deadline(self, now: Instant, polling: bool) -> Instant | None:
        due = []
        if self._waiting and not self._requests.is_pending(self._token):
            due.append(self._waiting[0].until)
            ready = self._lookup.deadline(now) if self._lookup is not None else None
            if not self._backoff.over(now):
                due.append(self._backoff.until)
            elif ready is not None:
                due.append(ready)
        if polling and self._next_automatic is not None and self.is_settled:
            due.append(self._next_automatic)
        return min(due, default=None)

    def _consumed(self) -> dict[TopicPartition, OffsetToCommit]:
        positions = self._assignment.positions()
        return {
            partition: OffsetToCommit(position.offset, position.epoch)
            for partition, position in positions.items()
        }

    def _add(self, effects: Effects, commit: _Commit) -> None:
        if commit.offsets:
            self._waiting.append(commit)
        else:
            effects.emit(OffsetsCommitted(commit.commit_id, {}))  # There is nothing to send.

    def _send(self, effects: Effects, node: BrokerNode, commit: _Commit, committer: Identity) -> None:
        question = AskToCommit(
            self._group_id,
            committer.generation,
            committer.member_id,
            committer.instance_id,
            commit.offsets,
            committer.uses_consumer_protocol and committer.is_member,
        )
        self._token = self._requests.send(
            effects,
            StepKind.COMMIT,
            node,
            question,
            on_answer=lambda effects, rows: self._on_answer(effects, node, commit, committer, rows),
            on_failure=lambda effects, failure: self._on_failure(effects, node, commit, failure),
        )

    def _on_answer(
        self,
        effects: Effects,
        node: BrokerNode,
        commit: _Commit,
        sent: Identity,
        rows: Mapping[TopicPartition, int],
    ) -> str | Failed:
        errors = {rows.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in commit.offsets} - {0}
        if not errors:
            self._backoff.succeeded()
            self._end(effects, commit, None)
            return "The offsets are stored."
        fatal = sorted(errors - _RETRIABLE)
        if not fatal:
            if errors & _FIND_COORDINATOR:
                self._lost(effects, node)
            if ErrorCode.STALE_MEMBER_EPOCH in errors:
                self._membership.refused(effects, ErrorCode.STALE_MEMBER_EPOCH, sent)
            return self._retry(effects, commit, info(min(errors)).meaning)
        error = fatal[0]
        if error in _OF_MEMBERSHIP:
            self._membership.refused(effects, error, sent)
        kind = _OF_MEMBERSHIP.get(error) or _OTHERS.get(error, ProblemKind.UNEXPECTED)
        hit = tuple(sorted(partition for partition, code in rows.items() if code == error))
        meaning = info(error).meaning
        text = f"The offsets were not committed: {describe(error)}. {meaning}"
        self._end(effects, commit, Problem(kind, text, error, hit))
        return Failed(f"{meaning} The commit is given up.")

    def _on_failure(
        self, effects: Effects, node: BrokerNode, commit: _Commit, failure: Failure
    ) -> str | Failed:
        if failure.kind is FailureKind.UNSUPPORTED:
            self._end(effects, commit, Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Failed("The commit is given up.")
        self._lost(effects, node)
        return self._retry(effects, commit, "The coordinator is looked for anew.")

    def _lost(self, effects: Effects, node: BrokerNode) -> None:
        assert self._lookup is not None
        self._lookup.lost(effects, node)

    def _retry(self, effects: Effects, commit: _Commit, why: str) -> str | Failed:
        wait_ms = self._backoff.failed(effects.now)
        if effects.now + wait_ms >= commit.until:
            text = f"The offsets could not be committed in time. {why}"
            self._end(effects, commit, Problem(ProblemKind.COMMIT_FAILED, text))
            return Failed(f"{why} Time is up: the commit is given up.")
        return Failed(f"{why} It is tried again in {wait_ms} ms.")

    def _end(self, effects: Effects, commit: _Commit, problem: Problem | None) -> None:
        if self._waiting and self._waiting[0] is commit:
            self._waiting.popleft()
        if problem is None:
            effects.emit(OffsetsCommitted(commit.commit_id, commit.offsets))
        elif not commit.automatic:
            effects.emit(CommitFailed(commit.commit_id, problem))
