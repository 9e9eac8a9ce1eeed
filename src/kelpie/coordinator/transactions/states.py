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

NAMES = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions spell them."""
