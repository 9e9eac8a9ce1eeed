"""Where the reset policy begins: ListOffsets, of the leaders, one request for each.

| error of a partition                      | what follows                                              |
|-------------------------------------------|-----------------------------------------------------------|
| none, with an offset                      | begin there                                               |
| none, without one (no record so young)    | ask again when the request would have timed out           |
| 43 UNSUPPORTED_FOR_MESSAGE_FORMAT         | the same                                                  |
| 29 TOPIC_AUTHORIZATION_FAILED             | poll raises it                                            |
| any other: 3, 5, 6, 9, 56, 74, 75, 78, …  | ask for metadata, and again after the back-off            |

An answer counts only if the partition is still assigned and still waits for this very policy. A partition
without a leader waits for metadata. Latest is the high watermark, or, for readers of committed records, the
last stable offset.
"""

from collections.abc import Mapping

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Failure, FailureKind, Place, Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.fetch_state import FetchState
from kelpie.consumer.positions.leaders import by_leader
from kelpie.consumer.positions.partition import Origin, Position
from kelpie.consumer.positions.policy import ResetPolicy
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.questions.list_offsets import AskOffsets, ListedOffset
from kelpie.questions.question import listed

NEEDED = "an offset for each partition"


class Resets:
    def __init__(self, desk: Desk, metadata: Metadata, assignment: Assignment) -> None:
        self._desk = desk
        self._metadata = metadata
        self._assignment = assignment

    def advance(self, turn: Turn) -> None:
        due = self._assignment.due(FetchState.AWAIT_RESET, turn.now)
        for place, partitions in by_leader(turn, self._desk, self._metadata, self._assignment, due).items():
            self._ask(turn, place, partitions)

    def _ask(self, turn: Turn, place: Place, partitions: list[TopicPartition]) -> None:
        config = self._desk.config
        policies: dict[TopicPartition, ResetPolicy] = {}
        wanted: dict[TopicPartition, tuple[int, int | None]] = {}
        for partition in partitions:
            own = self._assignment.get(partition)
            assert own is not None
            assert own.policy is not None
            policies[partition] = own.policy
            wanted[partition] = (own.policy.timestamp(turn.now), self._metadata.leader(partition).epoch)
        # Until the answer comes, or can come no more, these are not asked for again.
        self._assignment.not_before(partitions, turn.now + config.request_timeout_ms)
        self._desk.ask(
            turn,
            What.RESET,
            place,
            AskOffsets(int(config.isolation_level), wanted, config.request_timeout_ms),
            then=lambda turn, rows: self._told(turn, policies, rows),
            otherwise=lambda turn, failure: self._not_told(turn, partitions, failure),
        )

    def _told(
        self,
        turn: Turn,
        policies: Mapping[TopicPartition, ResetPolicy],
        rows: Mapping[TopicPartition, ListedOffset],
    ) -> Follows:
        begun, nothing, again, forbidden = [], [], [], []
        reasons: set[int] = set()
        for partition, policy in policies.items():
            row = rows.get(partition, ListedOffset(ErrorCode.UNKNOWN_SERVER_ERROR))
            if row.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                forbidden.append(partition)
            elif row.error and row.error != ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                again.append(partition)
                reasons.add(row.error)
            elif row.offset is None:
                nothing.append(partition)
            elif self._begin(partition, policy, row):
                begun.append(f"{partition} at {row.offset}")
        if again:
            self._assignment.not_before(again, turn.now + self._desk.config.retry_backoff_ms)
            self._metadata.outdated()
        if forbidden:
            self._assignment.not_before(forbidden, turn.now + self._desk.config.retry_backoff_ms)
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            text = f"{listed(forbidden)} cannot be read: {describe(error)}. {info(error).meaning}"
            turn.fail(Problem(ProblemKind.NOT_AUTHORISED, text, error, tuple(forbidden)))
        told = [f"It begins with {', '.join(begun[:8])}{' …' if len(begun) > 8 else ''}."] if begun else []
        if again:
            told.append(
                f"{info(min(reasons)).meaning} {listed(again)}: asked again in "
                f"{self._desk.config.retry_backoff_ms} ms, with new metadata."
            )
        if nothing:
            told.append(f"{listed(nothing)}: no record is so young; it waits for one.")
        if forbidden:
            told.append(f"{listed(forbidden)} may not be read: the consumer gives up.")
        failed = bool(again or forbidden)
        return Follows(
            " ".join(told) or "It no longer matters.", failed=failed, needed=NEEDED if failed else ""
        )

    def _begin(self, partition: TopicPartition, policy: ResetPolicy, row: ListedOffset) -> bool:
        own = self._assignment.get(partition)
        if own is None or own.state is not FetchState.AWAIT_RESET or own.policy != policy:
            return False  # Taken away, sought elsewhere, or to be reset by another policy, in the meantime.
        assert row.offset is not None
        self._metadata.seen(partition, row.epoch)
        # Where an epoch begins says nothing of the record before it, so there is nothing to check.
        position = Position(row.offset, None, self._metadata.leader(partition))
        return own.seek_unvalidated(position, Origin.RESET)

    def _not_told(self, turn: Turn, partitions: list[TopicPartition], failure: Failure) -> Follows:
        wait_ms = self._desk.config.retry_backoff_ms
        self._assignment.not_before(partitions, turn.now + wait_ms)
        if failure.kind is FailureKind.UNSUPPORTED:
            turn.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Follows("The consumer gives up.", failed=True, needed=NEEDED)
        self._metadata.outdated()
        return Follows(f"It is asked again in {wait_ms} ms, with new metadata.", failed=True, needed=NEEDED)
