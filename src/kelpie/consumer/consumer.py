"""The consumer: what finds the coordinator, joins, takes up positions, fetches and commits, put together.

Each method is an event. It takes the time, and returns an `Outcome`: what to ask, what to tell the
application, when to wake it. After each event every part is looked at, in the order of Kafka's own poll loop,
until nothing new follows:

    metadata                       in any case
    heartbeats                     in any case: they do not wait for the application
    membership                     in a poll
    positions                      in a poll, once the membership is settled
    automatic commits              in a poll
    records to hand out, fetches   in a poll
    commits asked for              in any case

A poll begins with `poll`, and ends with records, with a problem, or by `poll_ended`. An application that does
not poll is a slow consumer, as in life: it sends heartbeats, until max.poll.interval.ms is over.
"""

from collections.abc import Callable, Iterable

from kelpie.consumer.committing import Committing, Offsets
from kelpie.consumer.config import ConsumerConfig, GroupProtocol
from kelpie.consumer.desk import Desk, Turn
from kelpie.consumer.fetching import Fetching
from kelpie.consumer.lookup import Lookup
from kelpie.consumer.machine import Machine
from kelpie.consumer.membership.classic import ClassicMembership
from kelpie.consumer.membership.membership import Membership, NoMembership, Reach
from kelpie.consumer.membership.newer import NewerMembership
from kelpie.consumer.metadata import Metadata
from kelpie.consumer.nodes import Nodes
from kelpie.consumer.outcome import Closed, Delivered, Outcome, Place, Problem, Raised
from kelpie.consumer.positions.assignment import Assignment
from kelpie.consumer.positions.partition import Position
from kelpie.consumer.positions.update import Positions
from kelpie.consumer.steps import Step
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_MOST_PASSES = 20


class Consumer(Machine):
    def __init__(
        self,
        config: ConsumerConfig,
        addresses: Iterable[tuple[str, int]],
        *,
        draw: Callable[[int], int],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(Desk(config, Nodes.at(config, addresses, draw)))
        self.config = config
        topics = frozenset(config.topics) or frozenset(partition.topic for partition in config.partitions)
        self.metadata = Metadata(self._desk, topics)
        self.assignment = Assignment()
        self._lookup = None if config.group_id is None else Lookup(self._desk, self.metadata, config.group_id)
        self.membership: Membership = self._new_membership(new_id)
        self._positions = Positions(self._desk, self.metadata, self._lookup, self.assignment, self.membership)
        self._fetching = Fetching(self._desk, self.metadata, self.assignment, self._positions)
        self._committing = Committing(self._desk, self._lookup, self.assignment, self.membership)
        self.membership.commits = self._committing
        self.assignment.assign(config.partitions)
        self._problems: list[Problem] = []
        self._polling = False
        self._closing = False
        self._closed = False

    # Events.

    def poll(self, now: Instant) -> Outcome:
        """The application wants records."""
        assert not self._closing, "a consumer that is being closed cannot be polled"
        turn = Turn(now)
        self._polling = True
        self.membership.polled(turn)
        return self._end(turn)

    def poll_ended(self, now: Instant) -> Outcome:
        """The application waits no longer."""
        self._polling = False
        return self._end(Turn(now))

    def commit(
        self, now: Instant, offsets: Offsets | None = None, limit_ms: int | None = None
    ) -> tuple[int, Outcome]:
        """Commit these offsets, or all positions. `Committed` or `CommitRefused` names the id given here."""
        turn = Turn(now)
        commit_id = self._committing.commit(turn, offsets, limit_ms)
        return commit_id, self._end(turn)

    def seek(self, partition: TopicPartition, offset: int, now: Instant) -> Outcome:
        """Go on there. A partition that is not assigned cannot be sought in: then nothing happens."""
        own = self.assignment.get(partition)
        if own is not None:
            own.seek_validated(Position(offset, None, self.metadata.leader(partition)))
        return self._end(Turn(now))

    def pause(self, partitions: Iterable[TopicPartition], now: Instant, *, paused: bool = True) -> Outcome:
        """Hand out nothing of these, until it is called with `paused=False`."""
        for partition in partitions:
            own = self.assignment.get(partition)
            if own is not None:
                own.paused = paused
        return self._end(Turn(now))

    def rejoin(self, now: Instant, reason: str = "rebalance enforced by user") -> Outcome:
        """Make the group rebalance, as enforceRebalance does."""
        if isinstance(self.membership, ClassicMembership):
            self.membership.rejoin(reason)
        return self._end(Turn(now))

    def mute_heartbeats(self, now: Instant, *, muted: bool = True) -> Outcome:
        """Hold heartbeats back, as a long pause of the process would: for experiments."""
        self.membership.muted = muted
        return self._end(Turn(now))

    def close(self, now: Instant) -> Outcome:
        """Commit, if that is automatic, and leave the group. `Closed` is the last event."""
        turn = Turn(now)
        if not self._closing:
            self._closing = True
            self._polling = False
            self._committing.commit_before_leaving(turn, self.config.request_timeout_ms)
        return self._end(turn)

    # What it knows.

    @property
    def steps(self) -> tuple[Step, ...]:
        return self._desk.journal.steps

    @property
    def coordinator(self) -> Place | None:
        return None if self._lookup is None else self._lookup.coordinator

    @property
    def fetches_answered(self) -> int:
        return self._fetching.answers

    @property
    def is_polling(self) -> bool:
        return self._polling

    # How it goes on.

    def _new_membership(self, new_id: Callable[[], str]) -> Membership:
        if not self.config.topics:
            return NoMembership()
        assert self._lookup is not None
        if self.config.group_protocol is GroupProtocol.CONSUMER:
            return NewerMembership(self._desk, self.metadata, self._lookup, self.assignment, new_id)
        return ClassicMembership(self._desk, self.metadata, self._lookup, self.assignment)

    def _end(self, turn: Turn) -> Outcome:
        if self._closed:
            return Outcome()
        for number in range(_MOST_PASSES):
            before = turn.size
            self._pass(turn)
            if self._closed:
                return turn.outcome(None)
            # A pass may leave a wish behind (for metadata, say) that the next one fulfils.
            if number and turn.size == before:
                break
        return turn.outcome(self._deadline(turn.now))

    def _pass(self, turn: Turn) -> None:
        if self._closing:
            self._wind_up(turn)
            return
        self.metadata.advance(turn)
        self.membership.background(turn)
        if self._raise(turn):
            return
        if self._polling:
            reach = self.membership.advance(turn)
            if reach is Reach.ALL and not self._raise(turn):
                self._positions.update(turn)
            if not self._raise(turn):
                self._committing.polled(turn)
            if reach is not Reach.NOTHING:
                self._hand_out(turn)
                self._fetching.advance(turn)
            self._raise(turn)
        self._committing.advance(turn)

    def _hand_out(self, turn: Turn) -> None:
        if not self._polling:
            return
        records = self._fetching.take(turn, self.config.max_poll_records)
        if records:
            self._polling = False
            turn.tell(Delivered(tuple(records)))

    def _raise(self, turn: Turn) -> bool:
        """Problems end the poll that is under way, or wait for the next. Whether one has ended now."""
        self._problems += (problem for problem in turn.problems if problem not in self._problems)
        turn.problems.clear()
        if not self._polling or not self._problems:
            return False
        self._polling = False
        turn.tell(Raised(self._problems.pop(0)))
        return True

    def _wind_up(self, turn: Turn) -> None:
        if not self._committing.is_settled:
            self.metadata.advance(turn)
            self._committing.advance(turn)
        if not self._committing.is_settled:
            return
        self.membership.close(turn)
        if self.membership.is_closed:
            self._closed = True
            turn.tell(Closed())

    def _deadline(self, now: Instant) -> Instant | None:
        due = [self._committing.deadline(now, self._polling)]
        if not self._closing:
            due += [self.metadata.deadline(now), self.membership.deadline(now, self._polling)]
        elif not self._committing.is_settled:
            due.append(self.metadata.deadline(now))
        if self._polling:
            due += [self._positions.deadline(now), self._fetching.deadline(now)]
        return min((at for at in due if at is not None), default=None)
