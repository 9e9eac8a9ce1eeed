"""The transaction coordinator: all transactional ids of one partition of `__transaction_state`.

It follows Kafka 4.3 (TransactionCoordinator, TransactionMetadata, TransactionStateManager), and by its
behaviour 2.8 and 3.9: KIP-98, KIP-360 (a producer raises its own epoch), KIP-447, KIP-588 (PRODUCER_FENCED),
KIP-664 (describe and list), KIP-890 (partitions are verified; with transaction version 2 each transaction has
its own epoch, and the leader's append adds the partition).

    shard = TransactionShard(config, behaviour, next_producer_id, coordinator_epoch)

One shard lives as long as one leadership; `coordinator_epoch` is the leader epoch. `replay` takes each record
in the order of the log. `loaded` runs once, after the last record, and carries prepared ends on. `unloaded`
takes the timers away; no call is parked in this shard. `expire` writes tombstones of idle ids; Kafka runs it
once an hour.

Each request answers `to` exactly once. The caller has checked that this broker is the coordinator (14, 15,
16), authorisation, and that the topics exist. AddPartitionsToTxn up to version 3 is `add_partitions`; each
transaction of a later version, or of the produce path, is `verify_or_add`. `describe`, `transactions` and
`list_transactions` read without an outcome.

A TransactionOutcome is an Outcome with `markers`: like the replies, they leave once the records have been
written. The driver writes each MarkerRequest to the leaders of its partitions, for as long as it takes, and
then calls `markers_written`.

`next_producer_id()` yields an id that no producer of the cluster has had.
"""

from kelpie.coordinator.transactions.listing import add_partitions_result, list_transactions
from kelpie.coordinator.transactions.outcome import MarkerRequest, TransactionOutcome
from kelpie.coordinator.transactions.release_behaviour import (
    BEHAVIOUR_2_8,
    BEHAVIOUR_3_9,
    BEHAVIOUR_4_3,
    TransactionBehaviour,
    TransactionConfig,
)
from kelpie.coordinator.transactions.shard import TransactionShard
from kelpie.coordinator.transactions.transaction import Facts, Transaction

__all__ = [
    "BEHAVIOUR_2_8",
    "BEHAVIOUR_3_9",
    "BEHAVIOUR_4_3",
    "Facts",
    "MarkerRequest",
    "Transaction",
    "TransactionBehaviour",
    "TransactionConfig",
    "TransactionOutcome",
    "TransactionShard",
    "add_partitions_result",
    "list_transactions",
]
