"""Logs of `__transaction_state` as an earlier coordinator may have left them."""

from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.transactions.records import record_of
from kelpie.coordinator.transactions.transaction import Facts
from kelpie.model.names import TopicPartition
from kelpie.wire.transaction_state import TransactionState
from tests.coordinator.transactions.driver import START


def log_with(
    transactional_id: str,
    *,
    producer_id: int,
    producer_epoch: int,
    state: TransactionState = TransactionState.EMPTY,
    joined: frozenset[TopicPartition] = frozenset(),
    value_version: int = 1,
) -> list[CoordinatorRecord]:
    facts = Facts(
        state=state,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=60_000,
        updated_at=START - 10,
        started_at=-1 if state is TransactionState.EMPTY else START - 10,
        partitions=joined,
    )
    return [record_of(transactional_id, facts, value_version)]
