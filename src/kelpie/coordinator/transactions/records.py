"""Facts as records of `__transaction_state`, and back; and what a failed append means to a client."""

from collections.abc import Iterable

from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.transactions.transaction import Facts
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.transaction_state import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    TransactionState,
    encode_key,
    encode_value,
)


def record_of(transactional_id: str, facts: Facts, value_version: int) -> CoordinatorRecord:
    """A tombstone, if the id is forgotten."""
    key = encode_key(TransactionLogKey(transactional_id=transactional_id))
    if facts.state is TransactionState.DEAD:
        return CoordinatorRecord(key, None)
    partitions = [
        TransactionPartitions(topic=topic, partition_ids=ids)
        for topic, ids in by_topic(facts.partitions).items()
    ]
    value = TransactionLogValue(
        producer_id=facts.producer_id,
        previous_producer_id=facts.previous_producer_id,
        next_producer_id=facts.next_producer_id,
        producer_epoch=facts.producer_epoch,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_status=facts.state,
        transaction_partitions=None if facts.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=facts.updated_at,
        transaction_start_timestamp_ms=facts.started_at,
        client_transaction_version=facts.client_version,
    )
    return CoordinatorRecord(key, encode_value(value, value_version))


def facts_of(value: TransactionLogValue) -> Facts:
    partitions = frozenset(
        TopicPartition(topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
    return Facts(
        state=TransactionState(value.transaction_status),
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_at=value.transaction_last_update_timestamp_ms,
        started_at=value.transaction_start_timestamp_ms,
        partitions=partitions,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


_ANSWERS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def answer_to_failed_append(error: ErrorCode) -> ErrorCode:
    """The error for the client when the coordinator's own record could not be written."""
    return _ANSWERS.get(error, error)
