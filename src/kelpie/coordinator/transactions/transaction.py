"""One transactional id: its states, what is known of it, and the steps it can take.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ─┐
      ▲         │                                           ├─► Ongoing, Empty, Dead; PrepareAbort (KIP-890)
      └ init    └───────► PrepareAbort ───► CompleteAbort ──┘

- Empty: a producer id is given, no transaction is open. InitProducerId leads here.
- Ongoing: partitions have joined. More may join.
- PrepareCommit, PrepareAbort: decided, and final. Markers are being written.
- CompleteCommit, CompleteAbort: all markers are written.
- Dead: about to be forgotten. Never written: a tombstone is.
- PrepareEpochFence exists in Kafka's memory only, between the decision to fence and PrepareAbort. Here both
  are one step, so the state is known but never entered.

With transaction version 2 a client that does not know whether its transaction has begun may abort it anyway:
so Empty, CompleteCommit and CompleteAbort may be followed by PrepareAbort.

Facts are what a record of the log says, plus the last producer epoch, which Kafka does not write (so a retry
is no longer recognised after the coordinator has moved). A step is a function from facts to facts. A
Transaction holds the facts that are written and those that are being written (`pending`): while there are
any, no other step may begin.

The epoch of a producer is a signed 16-bit number. A client is never given the highest one, so that the
coordinator can always fence it; an epoch from 32766 on is exhausted, and a new producer id follows.
"""

from dataclasses import dataclass, replace

from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.transaction_state import TransactionState

IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is open: the id may expire, and a producer id may be given out."""

ENTERED_FROM: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""The state that is entered, and the states it may be entered from."""

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

COMPLETION = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

NAMES = {state: state.name.title().replace("_", "") for state in TransactionState}
"""As DescribeTransactions and ListTransactions spell them."""

NO_ID = -1
NO_EPOCH = -1
HIGHEST_EPOCH = 2**15 - 1
NO_TIMEOUT_MS = 2**31 - 1
"""A transaction with this timeout is part of a two-phase commit (KIP-939), and is never timed out."""


def exhausted(epoch: int) -> bool:
    return epoch >= HIGHEST_EPOCH - 1


@dataclass(frozen=True, slots=True)
class Facts:
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    updated_at: Instant
    started_at: Instant = -1
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NO_ID
    """The producer id before the last step. It differs from `producer_id` right after a new id was taken."""
    next_producer_id: int = NO_ID
    """In a prepared end: the id that the producer goes on with, because its epochs are exhausted."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the producer raised it itself; a request that still carries it is a retry."""
    client_version: int = 0
    """The transaction version that the client of the last join or end speaks."""

    @property
    def exhausted(self) -> bool:
        return exhausted(self.producer_epoch)

    def is_late(self, now: Instant) -> bool:
        """Whether the transaction has been open for longer than its transaction.timeout.ms."""
        return now > self.started_at + self.timeout_ms

    def first_late_check(self, loaded_at: Instant, interval_ms: int, now: Instant) -> Instant | None:
        """The first check, after now, that finds the transaction late. None if it is not open, or never late.

        Kafka checks all transactions every transaction.abort.timed.out.transaction.cleanup.interval.ms, so a
        late transaction stays open until the next check. Here each has a timer at its first check, and the
        checks of a shard are counted from its load (in Kafka from the start of the broker).
        """
        if self.state is not TransactionState.ONGOING or self.timeout_ms == NO_TIMEOUT_MS:
            return None
        late_at = max(self.started_at + self.timeout_ms, now) + 1
        checks = -(-(late_at - loaded_at) // interval_ms)
        return loaded_at + checks * interval_ms


def new_facts(producer_id: int, timeout_ms: int, now: Instant) -> Facts:
    """An id just seen for the first time: no epoch yet, and nothing of it is in the log."""
    return Facts(TransactionState.EMPTY, producer_id, NO_EPOCH, timeout_ms, now)


def epoch_raised(facts: Facts, timeout_ms: int, expected_epoch: int | None, now: Instant) -> Facts | None:
    """InitProducerId. None if the expected epoch is neither the current one nor that of a retry."""
    assert not facts.exhausted, f"no epoch is left after {facts.producer_epoch}"
    raised = facts.producer_epoch + 1
    if expected_epoch is None:
        epoch, last = raised, NO_EPOCH
    elif facts.producer_epoch in (NO_EPOCH, expected_epoch):
        epoch, last = raised, facts.producer_epoch
    elif expected_epoch == facts.last_producer_epoch:
        epoch, last = facts.producer_epoch, facts.last_producer_epoch  # A retry: its answer was lost.
    else:
        return None
    return _started_over(facts, (facts.producer_id, epoch), last, timeout_ms, now)


def producer_id_rotated(
    facts: Facts, producer_id: int, timeout_ms: int, now: Instant, *, by_producer: bool
) -> Facts:
    """InitProducerId when the epochs are exhausted. A producer that named its epoch may ask again."""
    last = facts.producer_epoch if by_producer else NO_EPOCH
    return _started_over(facts, (producer_id, 0), last, timeout_ms, now)


def epoch_fenced(facts: Facts, *, again: bool) -> Facts:
    """Before transaction version 2: a higher epoch shuts a producer out, then its transaction is aborted."""
    raised = facts.producer_epoch if again else min(facts.producer_epoch + 1, HIGHEST_EPOCH)
    return replace(facts, producer_epoch=raised, last_producer_epoch=NO_EPOCH)


def _started_over(facts: Facts, producer: tuple[int, int], last: int, timeout_ms: int, now: Instant) -> Facts:
    producer_id, epoch = producer
    return replace(
        facts,
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_at=-1,
        updated_at=now,
    )


def partitions_joined(
    facts: Facts, partitions: frozenset[TopicPartition], client_version: int, now: Instant
) -> Facts:
    return replace(
        facts,
        state=TransactionState.ONGOING,
        partitions=facts.partitions | partitions,
        started_at=now if facts.state in IDLE else facts.started_at,
        updated_at=now,
        client_version=client_version,
    )


def end_prepared(
    facts: Facts, state: TransactionState, client_version: int, next_producer_id: int, now: Instant
) -> Facts:
    """With transaction version 2 the end already carries the epoch of the next transaction (KIP-890)."""
    raises = client_version >= 2
    return replace(
        facts,
        state=state,
        producer_epoch=min(facts.producer_epoch + 1, HIGHEST_EPOCH) if raises else facts.producer_epoch,
        last_producer_epoch=facts.producer_epoch if raises else facts.last_producer_epoch,
        next_producer_id=next_producer_id,
        # An abort of what never began has to start somewhere.
        started_at=now if facts.state in IDLE else facts.started_at,
        updated_at=now,
        client_version=client_version,
    )


def end_completed(facts: Facts, now: Instant) -> Facts:
    """All markers are written. A next producer id takes over, from epoch 0."""
    moves = facts.client_version >= 2 and facts.next_producer_id != NO_ID
    return replace(
        facts,
        state=COMPLETION[facts.state],
        producer_id=facts.next_producer_id if moves else facts.producer_id,
        producer_epoch=0 if moves else facts.producer_epoch,
        next_producer_id=NO_ID,
        partitions=frozenset(),
        updated_at=now,
    )


def forgotten(facts: Facts) -> Facts:
    return replace(facts, state=TransactionState.DEAD, partitions=frozenset())


@dataclass(slots=True)
class Transaction:
    transactional_id: str
    facts: Facts
    pending: Facts | None = None
    """What is being written, or, behind a prepared end, will be written once the markers are."""
    completing: bool = False
    """The completion is being written; before, the markers are."""
    fence_failed: bool = False
    """Before transaction version 2: a raised epoch could not be written, and is not raised again."""

    def prepare(self, facts: Facts) -> Facts:
        """Begin a step. It is taken by `settle`, or given up by `abandon`."""
        assert self.pending is None, f"{self.transactional_id} is already on its way to {self.pending}"
        assert self.facts.state in ENTERED_FROM[facts.state], f"{facts.state!r} after {self.facts.state!r}"
        assert facts.producer_id >= 0
        assert 0 <= facts.producer_epoch <= HIGHEST_EPOCH or facts.state is TransactionState.DEAD
        self.pending = replace(facts, previous_producer_id=self.facts.producer_id)
        return self.pending

    def settle(self) -> None:
        """The pending facts are in the log."""
        assert self.pending is not None
        self.facts, self.pending, self.completing = self.pending, None, False

    def abandon(self, facts: Facts) -> None:
        if self.pending is facts:
            self.pending = None
