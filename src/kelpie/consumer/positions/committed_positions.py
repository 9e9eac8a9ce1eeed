"""Committed offsets of partitions that have just been assigned: OffsetFetch, sent to the coordinator.

| error of the group                | what follows                                                     |
|-----------------------------------|------------------------------------------------------------------|
| 15, 16                            | find the coordinator anew, ask again                             |
| 14, and other retriable ones      | ask again                                                        |
| 25, 113 (newer protocol)          | the membership hears of it; ask again                            |
| 30, and any other                 | poll raises it                                                   |

| error of a partition              | what follows                                                     |
|-----------------------------------|------------------------------------------------------------------|
| none, offset 0 or above           | go on there                                                      |
| none, offset −1                   | nothing committed: the reset policy decides                      |
| 88 UNSTABLE_OFFSET_COMMIT         | a transaction will decide: ask again, for all                    |
| 3, 29, and any other              | poll raises it                                                   |
| before v2: 14; 15, 16; 22, 25     | ask again; find the coordinator; join again                      |

−1 has three possible reasons, and the answer does not tell which: the group is new, the topic is new to it,
or its offsets have expired.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import BrokerNode, Effects, Failure, FailureKind, Problem, ProblemKind
from kelpie.consumer.membership.membership import Identity, Membership
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.partition_state import FetchPosition, FetchState, PositionOrigin
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import Failed, StepKind
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffset, CommittedOffsets
from kelpie.questions.question import listed

_FIND_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_OF_MEMBERSHIP = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH}
)


@dataclass(eq=False)
class CommittedPositions:
    _requests: PendingRequests
    _metadata: ConsumerMetadata
    _lookup: CoordinatorLookup
    _assignment: SubscriptionState
    _membership: Membership
    _token: int | None = None
    absent: set[TopicPartition] = field(default_factory=set)
    """Partitions without a committed offset, by the coordinator's answer."""

    def __post_init__(self) -> None:
        config = self._requests.config
        self._group_id = config.group_id or ""
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    def refresh(self, effects: Effects) -> bool:
        """Whether the coordinator has answered for every partition that has just been assigned."""
        initializing = self._assignment.in_state(FetchState.INITIALIZING)
        self.absent &= set(initializing)
        wanted = [partition for partition in initializing if partition not in self.absent]
        if not wanted:
            return True
        if self._requests.is_pending(self._token) or not self._backoff.over(effects.now):
            return False
        coordinator = self._lookup.ready(effects)
        if coordinator is not None:
            self._send(effects, coordinator, tuple(wanted))
        return False

    def deadline(self, now: Instant) -> Instant | None:
        wanted = set(self._assignment.in_state(FetchState.INITIALIZING)) - self.absent
        if not wanted or self._requests.is_pending(self._token):
            return None
        if not self._backoff.over(now):
            return self._backoff.until
        return self._lookup.deadline(now)

    def _send(self, effects: Effects, node: BrokerNode, partitions: tuple[TopicPartition, ...]) -> None:
        identity = self._membership.identity
        newer = identity.uses_consumer_protocol and identity.is_member
        question = AskCommitted(
            self._group_id,
            partitions,
            member_id=identity.member_id if newer else None,
            member_epoch=identity.generation if newer else -1,
        )

        self._token = self._requests.send(
            effects,
            StepKind.COMMITTED,
            node,
            question,
            on_answer=lambda effects, answer: self._on_answer(effects, node, identity, answer),
            on_failure=lambda effects, failure: self._on_failure(effects, node, failure),
        )

    def _on_answer(
        self, effects: Effects, node: BrokerNode, sent: Identity, answer: CommittedOffsets
    ) -> str | Failed:
        errors = {row.error for row in answer.partitions.values() if row.error}
        if answer.error:
            errors = {answer.error}
        if not errors:
            self._backoff.succeeded()
            return self._take(answer.partitions)
        return self._refused(effects, node, sent, answer.partitions, errors)

    def _take(self, rows: Mapping[TopicPartition, CommittedOffset]) -> str | Failed:
        taken, absent, gone = [], [], []
        for partition, row in sorted(rows.items()):
            state = self._assignment.get(partition)
            if state is None or state.fetch_state is not FetchState.INITIALIZING:
                gone.append(partition)  # Revoked, or at another position, since the request.
            elif row.offset < 0:
                self.absent.add(partition)
                absent.append(partition)
            else:
                self._metadata.seen(partition, row.epoch)
                position = FetchPosition(row.offset, row.epoch, self._metadata.leader(partition))
                state.seek_unvalidated(position, PositionOrigin.COMMITTED)
                taken.append(f"{partition} at {row.offset}")
        sentences = []
        if taken:
            sentences.append(f"It goes on with {', '.join(taken[:8])}{' …' if len(taken) > 8 else ''}.")
        if absent:
            sentences.append(f"Nothing is committed for {listed(absent)}: auto.offset.reset decides.")
        if gone:
            sentences.append(f"{listed(gone)} no longer concerns it.")
        return " ".join(sentences)

    def _refused(
        self,
        effects: Effects,
        node: BrokerNode,
        sent: Identity,
        rows: Mapping[TopicPartition, CommittedOffset],
        errors: set[int],
    ) -> str | Failed:
        wait_ms = self._backoff.failed(effects.now)
        again = f"They are asked for again in {wait_ms} ms."
        fatal = [error for error in sorted(errors) if not self._is_retriable(error)]
        if fatal:
            self._raise(effects, fatal[0], rows)
            return Failed(f"{info(fatal[0]).meaning} The consumer gives up.")
        if errors & _FIND_COORDINATOR:
            self._lookup.lost(effects, node)
            again = f"The coordinator is looked for anew; then {again[0].lower()}{again[1:]}"
        for error in errors & _OF_MEMBERSHIP:
            self._membership.refused(effects, error, sent)
        return Failed(f"{info(min(errors)).meaning} {again}")

    @staticmethod
    def _is_retriable(error: int) -> bool:
        """Whether a retry may help. A topic that does not exist is not retried, as in Kafka."""
        if error in _OF_MEMBERSHIP:
            return True
        return info(error).retriable and error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _raise(self, effects: Effects, error: int, rows: Mapping[TopicPartition, CommittedOffset]) -> None:
        hit = tuple(partition for partition, row in sorted(rows.items()) if row.error == error)
        of = listed(hit) if hit else f"group {self._group_id}"
        kind = ProblemKind.UNEXPECTED
        if error in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            kind = ProblemKind.NOT_AUTHORISED
        text = f"The committed offsets of {of} cannot be had: {describe(error)}. {info(error).meaning}"
        effects.fail(Problem(kind, text, error, hit))

    def _on_failure(self, effects: Effects, node: BrokerNode, failure: Failure) -> str | Failed:
        wait_ms = self._backoff.failed(effects.now)
        if failure.kind is FailureKind.UNSUPPORTED:
            effects.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Failed("The consumer gives up.")
        self._lookup.lost(effects, node)
        return Failed(f"The coordinator is looked for anew, and asked again in {wait_ms} ms.")
