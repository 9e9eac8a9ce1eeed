"""Fetching: one request to each leader at a time, for partitions that are FETCHING and have nothing left.

| error of a partition                            | what follows                                         |
|-------------------------------------------------|------------------------------------------------------|
| none                                            | the records are kept until a poll takes them         |
| 3, 6, 9, 56, 74, 78, 100, 103                   | ask for metadata; fetch again after the back-off     |
| 75 UNKNOWN_LEADER_EPOCH, −1                     | fetch again after the back-off                       |
| 1 OFFSET_OUT_OF_RANGE                           | the reset policy decides; without one, poll raises   |
| 29 TOPIC_AUTHORIZATION_FAILED                   | poll raises it                                       |
| 2 CORRUPT_MESSAGE, and any other                | poll raises it                                       |

What arrives counts only if the partition is still assigned, still FETCHING, and still at the offset that was
asked for. Records of a partition that is paused or about to be revoked are kept back. A position moves when
records are handed out, not when they arrive.
"""

from collections.abc import Mapping

from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import ConsumedRecord, Failure, FailureKind, Place, Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.fetch_state import FetchState
from kelpie.consumer.positions.partition import Position
from kelpie.consumer.positions.update import Positions
from kelpie.consumer.steps import Follows, What
from kelpie.consumer.unpacking import Unpacking
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.fetch import AskRecords, Fetched, FetchedPartition
from kelpie.questions.question import listed
from kelpie.wire.malformed import Malformed

NEEDED = "records, or none yet, from the position on"
_ANOTHER_LEADER = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_LATER = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class Fetching:
    def __init__(self, desk: Desk, metadata: Metadata, assignment: Assignment, positions: Positions) -> None:
        self._desk = desk
        self._metadata = metadata
        self._assignment = assignment
        self._positions = positions
        self._under_way: dict[Place, int] = {}
        self._kept: dict[TopicPartition, Unpacking] = {}
        self._not_before: dict[TopicPartition, Instant] = {}
        self.answers = 0
        """Partitions that a fetch was answered for without an error, so far."""

    # Handing out.

    def take(self, turn: Turn, most: int) -> list[ConsumedRecord]:
        """Records for the application. What was handed out moves the positions."""
        taken: list[ConsumedRecord] = []
        for partition, kept in tuple(self._kept.items()):
            own = self._assignment.get(partition)
            if own is None or own.position is None or own.state is not FetchState.FETCHING:
                del self._kept[partition]  # Taken away, or sent elsewhere, since it was fetched.
                continue
            if own.position.offset != kept.next_offset:
                del self._kept[partition]
                continue
            if not own.is_fetchable or len(taken) >= most:
                continue
            try:
                taken += kept.take(most - len(taken))
            except Malformed as malformed:
                del self._kept[partition]
                self._broken(turn, partition, kept.next_offset, malformed)
            own.consumed(Position(kept.next_offset, self._epoch(kept, own.position), own.position.leader))
            if kept.is_done:
                self._kept.pop(partition, None)
                if kept.is_cut_off:
                    self._too_large(turn, partition, kept.next_offset)
        return taken

    @staticmethod
    def _epoch(kept: Unpacking, before: Position) -> int | None:
        return kept.epoch if kept.next_offset > before.offset else before.epoch

    # Asking.

    def advance(self, turn: Turn) -> None:
        wanted: dict[Place, dict[TopicPartition, tuple[int, int | None]]] = {}
        self._not_before = {
            partition: at for partition, at in self._not_before.items() if partition in self._assignment
        }
        for partition, own in self._assignment:
            if not own.is_fetchable or partition in self._kept:
                continue
            if turn.now < self._not_before.get(partition, 0):
                continue
            assert own.position is not None
            leader = self._metadata.leader(partition)
            place = self._desk.nodes.broker(leader.node_id)
            if place is None or self._desk.nodes.is_unavailable(place, turn.now):
                self._metadata.outdated()
                self._later(turn, [partition])
            elif not self._desk.is_under_way(self._under_way.get(place)):
                wanted.setdefault(place, {})[partition] = (own.position.offset, leader.epoch)
        for place, partitions in wanted.items():
            self._ask(turn, place, partitions)

    def deadline(self, now: Instant) -> Instant | None:
        waiting = [at for at in self._not_before.values() if at > now]
        return min(waiting, default=None)

    def _ask(self, turn: Turn, place: Place, wanted: Mapping[TopicPartition, tuple[int, int | None]]) -> None:
        config = self._desk.config
        question = AskRecords(
            wanted,
            int(config.isolation_level),
            config.fetch_max_wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            config.max_partition_fetch_bytes,
        )
        self._under_way[place] = self._desk.ask(
            turn,
            What.FETCH,
            place,
            question,
            then=lambda turn, fetched: self._fetched(turn, wanted, fetched),
            otherwise=lambda turn, failure: self._not_fetched(turn, wanted, failure),
            limit_ms=config.request_timeout_ms + config.fetch_max_wait_ms,
        )

    def _fetched(
        self, turn: Turn, wanted: Mapping[TopicPartition, tuple[int, int | None]], fetched: Fetched
    ) -> Follows:
        if fetched.error:
            self._later(turn, wanted)
            return Follows(f"{info(fetched.error).meaning} It is fetched again.", failed=True, needed=NEEDED)
        told: list[str] = []
        failed = False
        size = 0
        for partition, (offset, _) in wanted.items():
            row = fetched.partitions.get(partition)
            own = self._assignment.get(partition)
            if row is None:
                self._later(turn, [partition])
                continue
            if own is None or own.state is not FetchState.FETCHING or own.position is None:
                continue
            if own.position.offset != offset:
                continue
            if row.error:
                told.append(f"{partition}: {self._refused(turn, partition, offset, row)}")
                failed = True
                continue
            self.answers += 1
            self._not_before.pop(partition, None)
            own.high_watermark, own.last_stable_offset = row.high_watermark, row.last_stable_offset
            own.log_start_offset = row.log_start_offset
            if row.records:
                size += len(row.records)
                self._keep(partition, offset, row)
        if not failed:
            told.append("The records wait for a poll." if size else "Nothing new; it is fetched again.")
        return Follows(" ".join(told), failed=failed, needed=NEEDED if failed else "")

    def _keep(self, partition: TopicPartition, offset: int, row: FetchedPartition) -> None:
        config = self._desk.config
        self._kept[partition] = Unpacking(
            partition,
            row,
            offset,
            only_committed=bool(config.isolation_level),
            check_crcs=config.check_crcs,
        )

    def _refused(self, turn: Turn, partition: TopicPartition, offset: int, row: FetchedPartition) -> str:
        error = row.error
        meaning = info(error).meaning
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._positions.reset(partition):
                return f"there is no offset {offset}; it is reset to {self._desk.config.auto_offset_reset}."
            text = (
                f"{partition} has no offset {offset}: it was deleted or never written, and auto.offset.reset "
                "is none, so nobody says where to go on."
            )
            turn.fail(Problem(ProblemKind.OUT_OF_RANGE, text, error, (partition,)))
            self._later(turn, [partition])
            return f"there is no offset {offset}, and no policy that says where to go on."
        self._later(turn, [partition])
        if error in _ANOTHER_LEADER:
            self._metadata.outdated()
            return f"{meaning} It is fetched again, with new metadata."
        if error in _LATER:
            return f"{meaning} It is fetched again."
        kind = ProblemKind.UNEXPECTED
        if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            kind = ProblemKind.NOT_AUTHORISED
        elif error == ErrorCode.CORRUPT_MESSAGE:
            kind = ProblemKind.CORRUPT
        text = f"{partition} cannot be fetched at {offset}: {describe(error)}. {meaning}"
        turn.fail(Problem(kind, text, error, (partition,)))
        return f"{meaning} The consumer gives up."

    def _not_fetched(
        self, turn: Turn, wanted: Mapping[TopicPartition, tuple[int, int | None]], failure: Failure
    ) -> Follows:
        self._later(turn, wanted)
        if failure.kind is FailureKind.UNSUPPORTED:
            turn.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Follows("The consumer gives up.", failed=True, needed=NEEDED)
        self._metadata.outdated()
        return Follows(f"{listed(wanted)}: fetched again, with new metadata.", failed=True, needed=NEEDED)

    def _later(self, turn: Turn, partitions: Mapping[TopicPartition, object] | list[TopicPartition]) -> None:
        for partition in partitions:
            self._not_before[partition] = turn.now + self._desk.config.retry_backoff_ms

    def _broken(self, turn: Turn, partition: TopicPartition, offset: int, malformed: Malformed) -> None:
        text = (
            f"The records of {partition} from offset {offset} on cannot be read: {malformed}. Seek past them "
            "to go on."
        )
        turn.fail(Problem(ProblemKind.CORRUPT, text, partitions=(partition,)))
        self._later(turn, [partition])

    def _too_large(self, turn: Turn, partition: TopicPartition, offset: int) -> None:
        text = (
            f"The record of {partition} at offset {offset} is larger than max.partition.fetch.bytes "
            f"({self._desk.config.max_partition_fetch_bytes}), and brokers before 0.10.1 do not send it "
            "whole. Raise that setting."
        )
        turn.fail(Problem(ProblemKind.TOO_LARGE, text, partitions=(partition,)))
        self._later(turn, [partition])
