"""Answers from the state of a shard, or of all shards of a broker.

Kafka reads the pattern of ListTransactions v2 with RE2, here it is Python's `re`: both agree on all that
operators write for names.
"""

import re
from collections.abc import Iterable, Mapping

from kelpie.coordinator.transactions.records import by_topic
from kelpie.coordinator.transactions.transaction import NAMES, Facts, Transaction
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import add_partitions_to_txn, describe_transactions
from kelpie.wire.api import list_transactions as listing
from kelpie.wire.structs import TopicPartitions


def described(transactional_id: str, facts: Facts) -> describe_transactions.DescribedTransaction:
    return describe_transactions.DescribedTransaction(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=NAMES[facts.state],
        transaction_timeout_ms=facts.timeout_ms,
        transaction_start_time_ms=facts.started_at,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        topics=[
            TopicPartitions(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(facts.partitions).items()
        ],
    )


def not_described(transactional_id: str, error: ErrorCode) -> describe_transactions.DescribedTransaction:
    return describe_transactions.DescribedTransaction(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )


def list_transactions(
    transactions: Iterable[Transaction], request: listing.ListTransactionsRequest, now: Instant
) -> listing.ListTransactionsResponse:
    """ListTransactions of one broker. A broker that is still loading a shard answers 14 by itself instead."""
    states = {name: state for state, name in NAMES.items()}
    wanted = {states[name] for name in request.state_filters if name in states}
    try:
        pattern = re.compile(request.transactional_id_pattern or ".*", re.DOTALL)
    except re.error:
        error = ErrorCode.INVALID_REGULAR_EXPRESSION
        return listing.ListTransactionsResponse(
            error_code=error, unknown_state_filters=[], transaction_states=[]
        )
    return listing.ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=[name for name in request.state_filters if name not in states],
        transaction_states=[
            listing.ListedTransaction(
                transactional_id=transaction.transactional_id,
                producer_id=facts.producer_id,
                transaction_state=NAMES[facts.state],
            )
            for transaction in transactions
            for facts in [transaction.facts]
            if (not request.producer_id_filters or facts.producer_id in request.producer_id_filters)
            and (not request.state_filters or facts.state in wanted)
            and (request.duration_filter < 0 or now - facts.started_at > request.duration_filter)
            and pattern.fullmatch(transaction.transactional_id)
        ],
    )


def add_partitions_result(
    transactional_id: str, errors: Mapping[TopicPartition, ErrorCode]
) -> add_partitions_to_txn.AddPartitionsToTxnResult:
    """One transaction's part of an AddPartitionsToTxn response of v4 or later."""
    return add_partitions_to_txn.AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=topic_results(errors)
    )


def topic_results(
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[add_partitions_to_txn.AddPartitionsToTxnTopicResult]:
    return [
        add_partitions_to_txn.AddPartitionsToTxnTopicResult(
            name=topic,
            results_by_partition=[
                add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                    partition_index=partition,
                    partition_error_code=errors[TopicPartition(topic, partition)],
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(errors).items()
    ]
