"""Is what was read still there? After a change of leader, positions are checked (KIP-320).

A new leader may have lost the end of the log (an unclean election). OffsetForLeaderEpoch tells where, in its
log, the epoch of the last record read ends:

| answer                                    | what follows                                              |
|-------------------------------------------|-----------------------------------------------------------|
| the epoch ends at or behind the position  | all is well: FETCHING                                     |
| it ends before the position               | records read are gone. With a reset policy: go on where   |
|                                           | it ends, not where the policy would; without: poll raises |
| the leader knows no such epoch            | the reset policy decides; without one, poll raises it     |
| 29 TOPIC_AUTHORIZATION_FAILED             | poll raises it                                            |
| any other error: 3, 5, 6, 9, 56, 74, 75,… | ask for metadata, and again after the back-off            |
| the broker is older than 2.3              | no check                                                  |

An answer counts only if the position is still the one that was asked about.
"""

from collections.abc import Mapping

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Failure, FailureKind, Place, Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.fetch_state import FetchState
from kelpie.consumer.positions.leaders import by_leader
from kelpie.consumer.positions.partition import Origin, Position
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds, EpochEnd
from kelpie.questions.question import listed

NEEDED = "where the epoch of the last record ends"


class Validation:
    def __init__(self, desk: Desk, metadata: Metadata, assignment: Assignment) -> None:
        self._desk = desk
        self._metadata = metadata
        self._assignment = assignment

    def advance(self, turn: Turn) -> None:
        for partition, own in self._assignment:
            own.meet_leader(self._metadata.leader(partition))
            if not self._desk.config.validate_positions:
                own.validated()
        due = self._assignment.due(FetchState.AWAIT_VALIDATION, turn.now)
        for place, partitions in by_leader(turn, self._desk, self._metadata, self._assignment, due).items():
            self._ask(turn, place, partitions)

    def _ask(self, turn: Turn, place: Place, partitions: list[TopicPartition]) -> None:
        positions: dict[TopicPartition, Position] = {}
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for partition in partitions:
            own = self._assignment.get(partition)
            assert own is not None
            position = own.position
            assert position is not None
            assert position.epoch is not None
            assert position.leader.epoch is not None
            positions[partition] = position
            wanted[partition] = (position.leader.epoch, position.epoch)
        self._assignment.not_before(partitions, turn.now + self._desk.config.request_timeout_ms)
        self._desk.ask(
            turn,
            What.VALIDATE,
            place,
            AskEpochEnds(wanted),
            then=lambda turn, rows: self._told(turn, positions, rows),
            otherwise=lambda turn, failure: self._not_told(turn, partitions, failure),
        )

    def _told(
        self,
        turn: Turn,
        positions: Mapping[TopicPartition, Position],
        rows: Mapping[TopicPartition, EpochEnd],
    ) -> Follows:
        told: list[str] = []
        again, forbidden = [], []
        reasons: set[int] = set()
        for partition, position in positions.items():
            row = rows.get(partition, EpochEnd(ErrorCode.UNKNOWN_SERVER_ERROR))
            if row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                forbidden.append(partition)
            elif row.error:
                again.append(partition)
                reasons.add(row.error)
            else:
                told += self._compare(turn, partition, position, row)
        wait_ms = self._desk.config.retry_backoff_ms
        self._assignment.not_before(again + forbidden, turn.now + wait_ms)
        if again:
            self._metadata.outdated()
            told.append(f"{info(min(reasons)).meaning} {listed(again)}: asked again in {wait_ms} ms.")
        if forbidden:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            text = f"{listed(forbidden)} cannot be read: {describe(error)}. {info(error).meaning}"
            turn.fail(Problem(ProblemKind.NOT_AUTHORISED, text, error, tuple(forbidden)))
            told.append(f"{listed(forbidden)} may not be read: the consumer gives up.")
        failed = bool(again or forbidden)
        return Follows(" ".join(told) or "All is as it was.", failed=failed, needed=NEEDED if failed else "")

    def _compare(self, turn: Turn, partition: TopicPartition, asked: Position, row: EpochEnd) -> list[str]:
        own = self._assignment.get(partition)
        if own is None or own.state is not FetchState.AWAIT_VALIDATION or own.position != asked:
            return []
        policy = self._desk.config.auto_offset_reset
        if row.end_offset < 0 or row.epoch < 0:
            if policy.resets:
                own.reset(policy)
                return [f"{partition}: the leader knows no epoch {asked.epoch}; it is reset to {policy}."]
            self._truncated(turn, partition, asked, None)
            return [f"{partition}: the leader knows no epoch {asked.epoch}, and nothing says where to begin."]
        if row.end_offset >= asked.offset:
            own.validated()
            return []
        if policy.resets:
            own.seek_validated(Position(row.end_offset, row.epoch, asked.leader), Origin.TRUNCATED)
            lost = asked.offset - row.end_offset
            return [
                f"{partition}: the log was cut back to {row.end_offset}; {lost} offsets before "
                f"{asked.offset} are gone, and it goes on where the log ends."
            ]
        self._truncated(turn, partition, asked, row.end_offset)
        return [f"{partition}: the log was cut back to {row.end_offset}, and there is no reset policy."]

    def _truncated(self, turn: Turn, partition: TopicPartition, at: Position, end_offset: int | None) -> None:
        until = "somewhere before it" if end_offset is None else f"at {end_offset}"
        text = (
            f"The log of {partition} was truncated: the consumer stands at {at.offset}, and what it has read "
            f"ends {until} in the leader's log. auto.offset.reset is none, so it must be told where to go on."
        )
        turn.fail(Problem(ProblemKind.TRUNCATED, text, partitions=(partition,)))
        self._assignment.not_before([partition], turn.now + self._desk.config.retry_backoff_ms)

    def _not_told(self, turn: Turn, partitions: list[TopicPartition], failure: Failure) -> Follows:
        if failure.kind is FailureKind.UNSUPPORTED:
            for partition in partitions:
                own = self._assignment.get(partition)
                if own is not None:
                    own.validated()
            return Follows("The broker cannot tell; the positions are used unchecked.")
        wait_ms = self._desk.config.retry_backoff_ms
        self._assignment.not_before(partitions, turn.now + wait_ms)
        self._metadata.outdated()
        return Follows(f"It is asked again in {wait_ms} ms, with new metadata.", failed=True, needed=NEEDED)
