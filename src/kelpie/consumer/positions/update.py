"""Taking up positions: updateFetchPositions, in its order.

1. Positions are checked where the leader has changed (validation.py).
2. If all partitions have a position, that is all.
3. Committed offsets are asked for, for partitions that have just been assigned (committed.py). This needs the
   coordinator; until it has answered, nothing further is done.
4. What is still without a position goes to the reset policy; with the policy none, poll raises it.
5. The leaders are asked where the policy begins (reset.py).

Kafka 0.9 did the same, one partition after the other, and waited for each.
"""

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.membership.identity import Member
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.committed import Committed
from kelpie.consumer.positions.fetch_state import FetchState
from kelpie.consumer.positions.reset import Resets
from kelpie.consumer.positions.validation import Validation
from kelpie.consumer.steps import Follows, What
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.question import listed

_WAITING = (FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION)


class Positions:
    def __init__(
        self, desk: Desk, metadata: Metadata, lookup: Lookup | None, assignment: Assignment, member: Member
    ) -> None:
        self._desk = desk
        self._metadata = metadata
        self._assignment = assignment
        self._validation = Validation(desk, metadata, assignment)
        self._committed = None if lookup is None else Committed(desk, metadata, lookup, assignment, member)
        """None: no group, so nothing is committed."""
        self._resets = Resets(desk, metadata, assignment)

    def update(self, turn: Turn) -> None:
        self._validation.advance(turn)
        if self._assignment.all_have_positions:
            return
        if self._committed is not None and not self._committed.refresh(turn):
            return
        self._reset_initializing(turn)
        self._resets.advance(turn)

    def reset(self, partition: TopicPartition) -> bool:
        """The position is of no use (out of range); whether there is a policy that finds another."""
        own = self._assignment.get(partition)
        policy = self._desk.config.auto_offset_reset
        return own is not None and policy.resets and own.reset(policy)

    def deadline(self, now: Instant) -> Instant | None:
        due = [
            own.not_before
            for partition, own in self._assignment
            if own.state in _WAITING and own.not_before > now
        ]
        committed = None if self._committed is None else self._committed.deadline(now)
        if committed is not None:
            due.append(committed)
        return min(due, default=None)

    def _reset_initializing(self, turn: Turn) -> None:
        left = self._assignment.in_state(FetchState.INITIALIZING)
        policy = self._desk.config.auto_offset_reset
        if not left:
            return
        if not policy.resets:
            if self._committed is not None:
                self._committed.absent.clear()  # The next poll asks again: someone may have committed.
            text = (
                f"Nothing is committed for {listed(left)}, and auto.offset.reset is none, so nobody says "
                "where to begin."
            )
            turn.fail(Problem(ProblemKind.NO_OFFSET, text, partitions=tuple(left)))
            needed = "a committed offset for each partition, or another reset policy"
            self._desk.note(turn, What.POSITION, Follows(text, failed=True, needed=needed))
            return
        for partition in left:
            own = self._assignment.get(partition)
            assert own is not None
            own.reset(policy)
