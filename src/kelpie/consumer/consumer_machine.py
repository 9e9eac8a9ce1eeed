"""The consumer: its parts find the coordinator, join, take up positions, fetch and commit.

Each method is an event. It takes the time, and returns `Effects`: requests to send, events for the
application, and when to wake the machine. After each event every part may act, in the order of Kafka's own
poll loop, until nothing new follows:

    metadata                       always
    heartbeats                     always: they do not wait for the application
    membership                     in a poll
    positions                      in a poll, when the member has its assignment
    automatic commits              in a poll
    records and fetches            in a poll
    commits on demand              always

A poll begins with `poll`, and ends with records, with a problem, or by `poll_ended`. An application that does
not poll is a slow consumer, as in Kafka: heartbeats go on until max.poll.interval.ms is over.
"""

from collections.abc import Callable, Iterable

from kelpie.consumer.broker_connections import BrokerConnections
from kelpie.consumer.config import ConsumerConfig, GroupProtocol
from kelpie.consumer.coordinator_lookup import CoordinatorLookup
from kelpie.consumer.effects import (
    BrokerNode,
    ConsumerClosed,
    Effects,
    Problem,
    ProblemRaised,
    RecordsDelivered,
)
from kelpie.consumer.fetcher import Fetcher
from kelpie.consumer.membership.classic import ClassicMembership
from kelpie.consumer.membership.consumer_group import ConsumerGroupMembership
from kelpie.consumer.membership.membership import Membership, Reach
from kelpie.consumer.metadata import ConsumerMetadata
from kelpie.consumer.offset_commits import OffsetCommits, Offsets
from kelpie.consumer.pending_requests import Machine, PendingRequests
from kelpie.consumer.positions.fetch_positions import FetchPositions
from kelpie.consumer.positions.partition_state import FetchPosition
from kelpie.consumer.positions.subscription_state import SubscriptionState
from kelpie.consumer.steps import ConsumerStep
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

_MOST_PASSES = 20


class ConsumerMachine(Machine):
    def __init__(
        self,
        config: ConsumerConfig,
        addresses: Iterable[tuple[str, int]],
        *,
        draw: Callable[[int], int],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(PendingRequests(config, BrokerConnections.at(config, addresses, draw)))
        self.config = config
        topics = frozenset(config.topics) or frozenset(partition.topic for partition in config.partitions)
        self.metadata = ConsumerMetadata(self._requests, topics)
        self.assignment = SubscriptionState()
        self._lookup = (
            None
            if config.group_id is None
            else CoordinatorLookup(self._requests, self.metadata, config.group_id)
        )
        self.membership: Membership = self._new_membership(new_id)
        self._positions = FetchPositions(
            self._requests, self.metadata, self._lookup, self.assignment, self.membership
        )
        self._fetcher = Fetcher(self._requests, self.metadata, self.assignment, self._positions)
        self._commits = OffsetCommits(self._requests, self._lookup, self.assignment, self.membership)
        self.membership.commits = self._commits
        self.assignment.assign(config.partitions)
        self._problems: list[Problem] = []
        self.is_polling = False
        self._closing = False
        self._closed = False

    # Events.

    def poll(self, now: Instant) -> Effects:
        """The application calls poll."""
        assert not self._closing, "a consumer that is being closed cannot be polled"
        effects = Effects(now)
        self.is_polling = True
        self.membership.polled(effects)
        return self._advance(effects)

    def poll_ended(self, now: Instant) -> Effects:
        """The application stops waiting for records."""
        self.is_polling = False
        return self._advance(Effects(now))

    def commit(
        self, now: Instant, offsets: Offsets | None = None, limit_ms: int | None = None
    ) -> tuple[int, Effects]:
        """Commit these offsets, or all positions. `OffsetsCommitted` or `CommitFailed` has the same id."""
        effects = Effects(now)
        commit_id = self._commits.commit(effects, offsets, limit_ms)
        return commit_id, self._advance(effects)

    def seek(self, partition: TopicPartition, offset: int, now: Instant) -> Effects:
        """Read on at this offset. Nothing happens if the partition is not assigned."""
        state = self.assignment.get(partition)
        if state is not None:
            state.seek_validated(FetchPosition(offset, None, self.metadata.leader(partition)))
        return self._advance(Effects(now))

    def pause(self, partitions: Iterable[TopicPartition], now: Instant, *, paused: bool = True) -> Effects:
        """Deliver no records of these, until it is called with `paused=False`."""
        for partition in partitions:
            state = self.assignment.get(partition)
            if state is not None:
                state.paused = paused
        return self._advance(Effects(now))

    def mute_heartbeats(self, now: Instant, *, muted: bool = True) -> Effects:
        """Send no heartbeats, as in a long pause of the process: for experiments."""
        self.membership.muted = muted
        return self._advance(Effects(now))

    def close(self, now: Instant) -> Effects:
        """Commit, if that is automatic, and leave the group. `ConsumerClosed` is the last event."""
        effects = Effects(now)
        if not self._closing:
            self._closing = True
            self.is_polling = False
            self._commits.commit_before_leaving(effects, self.config.request_timeout_ms)
        return self._advance(effects)

    # What it knows.

    @property
    def steps(self) -> tuple[ConsumerStep, ...]:
        return self._requests.history.steps

    @property
    def coordinator(self) -> BrokerNode | None:
        return None if self._lookup is None else self._lookup.coordinator

    # The passes after an event.

    def _new_membership(self, new_id: Callable[[], str]) -> Membership:
        if not self.config.topics:
            return Membership()
        assert self._lookup is not None
        if self.config.group_protocol is GroupProtocol.CONSUMER:
            return ConsumerGroupMembership(
                self._requests, self.metadata, self._lookup, self.assignment, new_id
            )
        return ClassicMembership(self._requests, self.metadata, self._lookup, self.assignment)

    def _advance(self, effects: Effects) -> Effects:
        if self._closed:
            return Effects(effects.now)
        for number in range(_MOST_PASSES):
            before = effects.size
            self._pass(effects)
            if self._closed:
                return effects
            # A part may need something (metadata, say) that another part asks for in the next pass.
            if number and effects.size == before:
                break
        effects.wake_at = self._deadline(effects.now)
        return effects

    def _pass(self, effects: Effects) -> None:
        if self._closing:
            self._close(effects)
            return
        self.metadata.advance(effects)
        self.membership.background(effects)
        if self._raise(effects):
            return
        if self.is_polling:
            reach = self.membership.advance(effects)
            if reach is Reach.ALL and not self._raise(effects):
                self._positions.update(effects)
            if not self._raise(effects):
                self._commits.polled(effects)
            if reach is not Reach.NOTHING:
                self._deliver(effects)
                self._fetcher.advance(effects)
            self._raise(effects)
        self._commits.advance(effects)

    def _deliver(self, effects: Effects) -> None:
        if not self.is_polling:
            return
        records = self._fetcher.take(effects, self.config.max_poll_records)
        if records:
            self.is_polling = False
            effects.emit(RecordsDelivered(tuple(records)))

    def _raise(self, effects: Effects) -> bool:
        """Problems end the current poll, or wait for the next one. Whether a poll has ended now."""
        self._problems += (problem for problem in effects.problems if problem not in self._problems)
        effects.problems.clear()
        if not self.is_polling or not self._problems:
            return False
        self.is_polling = False
        effects.emit(ProblemRaised(self._problems.pop(0)))
        return True

    def _close(self, effects: Effects) -> None:
        if not self._commits.is_settled:
            self.metadata.advance(effects)
            self._commits.advance(effects)
        if not self._commits.is_settled:
            return
        self.membership.close(effects)
        if self.membership.is_closed:
            self._closed = True
            effects.emit(ConsumerClosed())

    def _deadline(self, now: Instant) -> Instant | None:
        due = [self._commits.deadline(now, self.is_polling)]
        if not self._closing:
            due += [self.metadata.deadline(now), self.membership.deadline(now, self.is_polling)]
        elif not self._commits.is_settled:
            due.append(self.metadata.deadline(now))
        if self.is_polling:
            due += [self._positions.deadline(now), self._fetcher.deadline(now)]
        return min((at for at in due if at is not None), default=None)
