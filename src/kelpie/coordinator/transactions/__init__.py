"""The transaction coordinator: all transactional ids of one partition of `__transaction_state`.

It follows Kafka 4.3 (TransactionCoordinator, TransactionMetadata, TransactionStateManager), and by its
behaviour 2.8 and 3.9: KIP-98, KIP-360 (a producer raises its own epoch), KIP-447, KIP-588 (PRODUCER_FENCED),
KIP-664 (describe and list), KIP-890 (partitions are verified; with transaction version 2 each transaction has
its own epoch, and the leader's append adds the partition).

    shard = TransactionShard(config, behaviour, next_producer_id, coordinator_epoch)

Loading and leaving. One shard lives as long as one leadership; `coordinator_epoch` is the leader epoch.

    replay(key, value) -> None                    each record, in the order of the log
    loaded(now) -> TransactionOutcome             once, after the last record: carries prepared ends on
    unloaded() -> TransactionOutcome              takes the timers away; nothing is parked in this shard
    timer(key, now) -> TransactionOutcome         a timer of an earlier outcome is due
    expire(now) -> TransactionOutcome             tombstones of idle ids; Kafka asks once an hour

Requests. `to` is answered exactly once. Coordinator gate (14, 15, 16), authorisation and topic existence are
the caller's business.

    init_producer_id(to, request, version, now)   with a transactional id; InitProducerIdResponse
    add_partitions(to, request, version, now)     v0-3; AddPartitionsToTxnResponse
    verify_or_add(to, transactional_id, *, producer_id, producer_epoch, partitions, verify_only, now)
                                                  one transaction of v4+, or of the produce path;
                                                  the response is a dict[TopicPartition, ErrorCode]
    add_offsets(to, request, version, offsets_partition, now)
                                                  `offsets_partition` of the group; AddOffsetsToTxnResponse
    end(to, request, version, now)                EndTxnResponse
    markers_written(transactional_id, now)        all markers of the MarkerRequest are on their leaders

Looking, without an outcome.

    describe(transactional_id) -> describe_transactions.TransactionState
    transactions -> Mapping[str, Transaction]
    list_transactions(shards, request, now) -> ListTransactionsResponse
    add_partitions_result(transactional_id, errors) -> AddPartitionsToTxnResult    shapes one answer of v4+

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
