"""When an open transaction is aborted for taking longer than its transaction.timeout.ms.

Kafka checks all transactions every transaction.abort.timed.out.transaction.cleanup.interval.ms.
So a late transaction stays open until the next check. Here each has a timer at its first check, and the
checks of a shard are counted from its load (in Kafka from the start of the broker).
"""

from kelpie.coordinator.transactions.transaction import NO_TIMEOUT_MS, Facts
from kelpie.model.time import Instant
from kelpie.wire.transaction_state import TransactionState


def late(facts: Facts, now: Instant) -> bool:
    return now > facts.started_at + facts.timeout_ms


def first_look(facts: Facts, loaded_at: Instant, interval_ms: int, now: Instant) -> Instant | None:
    """The first check, after now, that finds the transaction late. None if it is not open, or never late."""
    if facts.state is not TransactionState.ONGOING or facts.timeout_ms == NO_TIMEOUT_MS:
        return None
    late_at = max(facts.started_at + facts.timeout_ms, now) + 1
    checks = -(-(late_at - loaded_at) // interval_ms)
    return loaded_at + checks * interval_ms
