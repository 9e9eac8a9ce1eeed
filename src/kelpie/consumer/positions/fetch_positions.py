"""Positions of all partitions, in the order of Kafka's updateFetchPositions.

1. Positions are validated where the leader has changed (position_validation.py).
2. If all partitions have a position, that is all.
3. The coordinator is asked for the committed offsets of new partitions (committed_positions.py). Nothing more
   happens before it has answered.
4. The reset policy decides for partitions without a committed offset; with the policy none, poll raises it.
5. The leaders are asked for the offsets of the policy (position_resets.py).

Kafka 0.9 did the same, one partition after the other.
"""

from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import Effects, Problem, ProblemKind
from kelpie.consumer.membership.membership import Membership
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.pending_requests import PendingRequests
from kelpie.consumer.positions.committed_positions import CommittedPositions
from kelpie.consumer.positions.partition_state import FetchState
from kelpie.consumer.positions.position_resets import PositionResets
from kelpie.consumer.positions.position_validation import PositionValidation
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import StepKind
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.question import listed

_WAITING = (FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION)


class FetchPositions:
    def __init__(
        self,
        requests: PendingRequests,
        metadata: ConsumerMetadata,
        lookup: CoordinatorLookup | None,
        assignment: SubscriptionState,
        membership: Membership,
    ) -> None:
        self._requests = requests
        self._assignment = assignment
        self._validation = PositionValidation(requests, metadata, assignment)
        self._committed = (
            None if lookup is None else CommittedPositions(requests, metadata, lookup, assignment, membership)
        )
        """None: there is no group."""
        self._resets = PositionResets(requests, metadata, assignment)

    def update(self, effects: Effects) -> None:
        self._validation.advance(effects)
        if self._assignment.all_have_positions:
            return
        if self._committed is not None and not self._committed.refresh(effects):
            return
        self._reset_initializing(effects)
        self._resets.advance(effects)

    def reset(self, partition: TopicPartition) -> bool:
        """The position is out of range. Whether the reset policy gives another one."""
        state = self._assignment.get(partition)
        policy = self._requests.config.auto_offset_reset
        return state is not None and policy.resets and state.reset(policy)

    def deadline(self, now: Instant) -> Instant | None:
        due = [
            state.not_before
            for partition, state in self._assignment
            if state.fetch_state in _WAITING and state.not_before > now
        ]
        committed = None if self._committed is None else self._committed.deadline(now)
        if committed is not None:
            due.append(committed)
        return min(due, default=None)

    def _reset_initializing(self, effects: Effects) -> None:
        left = self._assignment.in_state(FetchState.INITIALIZING)
        policy = self._requests.config.auto_offset_reset
        if not left:
            return
        if not policy.resets:
            if self._committed is not None:
                self._committed.absent.clear()  # The next poll asks again: there may be a commit by then.
            text = (
                f"Nothing is committed for {listed(left)}, and auto.offset.reset is none, so nobody says "
                "where to begin."
            )
            effects.fail(Problem(ProblemKind.NO_OFFSET, text, partitions=tuple(left)))
            needed = "a committed offset for each partition, or another reset policy"
            self._requests.record(effects, StepKind.POSITION, text, needed)
            return
        for partition in left:
            self._assignment[partition].reset(policy)
