"""Committed offsets for partitions that have just been assigned: OffsetFetch, of the coordinator.

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

−1 may mean three things, and the answer does not tell them apart: the group is new, the topic is new to it,
or its offsets have expired.
"""

from collections.abc import Mapping

from kelpie.consumer.backoff import Backoff
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.membership.identity import Identity, Member
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.outcome import Failure, FailureKind, Place, Problem, ProblemKind
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.fetch_state import FetchState
from kelpie.consumer.positions.partition import Origin, Position
from kelpie.consumer.steps import Follows, What
from kelpie.errors import ErrorCode, describe, info
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.questions.offset_fetch import AskCommitted, CommittedOffset, CommittedOffsets
from kelpie.questions.question import listed

NEEDED = "an offset, or −1 for none, for each partition"
_REDISCOVER = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_OF_MEMBERSHIP = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH}
)


class Committed:
    def __init__(
        self, desk: Desk, metadata: Metadata, lookup: Lookup, assignment: Assignment, member: Member
    ) -> None:
        config = desk.config
        self._desk = desk
        self._metadata = metadata
        self._lookup = lookup
        self._assignment = assignment
        self._member = member
        self._group_id = config.group_id or ""
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._token: int | None = None
        self.absent: set[TopicPartition] = set()
        """Partitions for which the coordinator has said that nothing is committed."""

    def refresh(self, turn: Turn) -> bool:
        """Whether the coordinator has told of every partition that has just been assigned."""
        initializing = self._assignment.in_state(FetchState.INITIALIZING)
        self.absent &= set(initializing)
        wanted = [partition for partition in initializing if partition not in self.absent]
        if not wanted:
            return True
        if self._desk.is_under_way(self._token) or not self._backoff.over(turn.now):
            return False
        coordinator = self._lookup.ready(turn)
        if coordinator is not None:
            self._ask(turn, coordinator, tuple(wanted))
        return False

    def deadline(self, now: Instant) -> Instant | None:
        wanted = set(self._assignment.in_state(FetchState.INITIALIZING)) - self.absent
        if not wanted or self._desk.is_under_way(self._token):
            return None
        if not self._backoff.over(now):
            return self._backoff.until
        return self._lookup.deadline(now)

    def _ask(self, turn: Turn, place: Place, partitions: tuple[TopicPartition, ...]) -> None:
        identity = self._member.identity
        newer = identity.is_newer and identity.is_member
        question = AskCommitted(
            self._group_id,
            partitions,
            member_id=identity.member_id if newer else None,
            member_epoch=identity.generation if newer else -1,
        )

        def then(turn: Turn, answer: CommittedOffsets) -> Follows:
            return self._told(turn, place, identity, answer)

        def otherwise(turn: Turn, failure: Failure) -> Follows:
            return self._not_told(turn, place, failure)

        self._token = self._desk.ask(turn, What.COMMITTED, place, question, then=then, otherwise=otherwise)

    def _told(self, turn: Turn, place: Place, sent: Identity, answer: CommittedOffsets) -> Follows:
        errors = {row.error for row in answer.partitions.values() if row.error}
        if answer.error:
            errors = {answer.error}
        if not errors:
            self._backoff.succeeded()
            return self._take(answer.partitions)
        return self._refused(turn, place, sent, answer.partitions, errors)

    def _take(self, rows: Mapping[TopicPartition, CommittedOffset]) -> Follows:
        taken, absent, gone = [], [], []
        for partition, row in sorted(rows.items()):
            own = self._assignment.get(partition)
            if own is None or own.state is not FetchState.INITIALIZING:
                gone.append(partition)  # Taken away, or sought elsewhere, while the answer was on its way.
            elif row.offset < 0:
                self.absent.add(partition)
                absent.append(partition)
            else:
                self._metadata.seen(partition, row.epoch)
                position = Position(row.offset, row.epoch, self._metadata.leader(partition))
                own.seek_unvalidated(position, Origin.COMMITTED)
                taken.append(f"{partition} at {row.offset}")
        told = [f"It goes on with {', '.join(taken[:8])}{' …' if len(taken) > 8 else ''}."] if taken else []
        if absent:
            told.append(f"Nothing is committed for {listed(absent)}: auto.offset.reset decides.")
        if gone:
            told.append(f"{listed(gone)} no longer concerns it.")
        return Follows(" ".join(told))

    def _refused(
        self,
        turn: Turn,
        place: Place,
        sent: Identity,
        rows: Mapping[TopicPartition, CommittedOffset],
        errors: set[int],
    ) -> Follows:
        wait_ms = self._backoff.failed(turn.now)
        again = f"They are asked for again in {wait_ms} ms."
        fatal = [error for error in sorted(errors) if not self._mends(error)]
        if fatal:
            self._raise(turn, fatal[0], rows)
            return Follows(f"{info(fatal[0]).meaning} The consumer gives up.", failed=True, needed=NEEDED)
        if errors & _REDISCOVER:
            self._lookup.lost(turn, place)
            again = f"The coordinator is looked for anew; then {again[0].lower()}{again[1:]}"
        for error in errors & _OF_MEMBERSHIP:
            self._member.refused(turn, error, sent)
        return Follows(f"{info(min(errors)).meaning} {again}", failed=True, needed=NEEDED)

    @staticmethod
    def _mends(error: int) -> bool:
        """Whether asking again may help. A topic that does not exist counts as hopeless, as in Kafka."""
        if error in _OF_MEMBERSHIP:
            return True
        return info(error).retriable and error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _raise(self, turn: Turn, error: int, rows: Mapping[TopicPartition, CommittedOffset]) -> None:
        hit = tuple(partition for partition, row in sorted(rows.items()) if row.error == error)
        of = listed(hit) if hit else f"group {self._group_id}"
        kind = ProblemKind.UNEXPECTED
        if error in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            kind = ProblemKind.NOT_AUTHORISED
        text = f"The committed offsets of {of} cannot be had: {describe(error)}. {info(error).meaning}"
        turn.fail(Problem(kind, text, error, hit))

    def _not_told(self, turn: Turn, place: Place, failure: Failure) -> Follows:
        wait_ms = self._backoff.failed(turn.now)
        if failure.kind is FailureKind.UNSUPPORTED:
            turn.fail(Problem(ProblemKind.UNSUPPORTED, failure.text))
            return Follows("The consumer gives up.", failed=True, needed=NEEDED)
        self._lookup.lost(turn, place)
        return Follows(
            f"The coordinator is looked for anew, and asked again in {wait_ms} ms.",
            failed=True,
            needed=NEEDED,
        )
