"""The states of a transactional id, and which may follow which.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ─┐
      ▲         │                                           ├─► Ongoing, Empty, Dead; PrepareAbort (KIP-890)
      └ init    └───────► PrepareAbort ───► CompleteAbort ──┘

- Empty: a producer id is given, no transaction is open. InitProducerId leads here.
- Ongoing: partitions have joined. More may join.
- PrepareCommit, PrepareAbort: decided. From here it cannot be turned; markers are on their way.
- CompleteCommit, CompleteAbort: all markers are written.
- Dead: about to be forgotten. Never written: a tombstone is.
- PrepareEpochFence exists in Kafka's memory only, between the decision to fence and PrepareAbort. Here both
  are one step, so the state is known but never entered.

With transaction version 2 a client that does not know whether its transaction has begun may abort it anyway:
so Empty, CompleteCommit and CompleteAbort may be followed by PrepareAbort.
"""

from kelpie.wire.transaction_state import TransactionStatus

State = TransactionStatus

IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""No transaction is open: the id may expire, and a producer id may be given out."""

ENTERED_FROM: dict[State, frozenset[State]] = {
    State.EMPTY: IDLE,
    State.ONGOING: IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: IDLE | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: IDLE,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""The state that is entered, and the states it may be entered from."""

PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})

COMPLETION = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}

NAMES = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions spell them."""
