"""What an operator sets, and what differs between releases of Kafka."""

from dataclasses import dataclass, replace

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    max_timeout_ms: int = 15 * _MINUTE_MS
    """transaction.max.timeout.ms"""
    abort_interval_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms: how often Kafka checks for timed-out
    transactions. A late one is aborted at the next check, counted from the load of the shard."""
    expiration_ms: int = 7 * 24 * 60 * _MINUTE_MS
    """transactional.id.expiration.ms"""
    completion_retry_ms: int = 100
    """How long to wait before a completion that could not be written is written again."""


@dataclass(frozen=True, slots=True)
class TransactionBehaviour:
    value_version: int
    """Version of the records' values. Version 1 keeps the previous and the next producer id over a load."""
    transaction_version: int
    """The feature `transaction.version`. From 2 on, an abort by the coordinator raises the epoch as the end
    of a client's own transaction does (KIP-890), instead of before it (KIP-588)."""
    pending_answers_first: bool
    """While a transition is being written, its epoch is uncertain. Kafka 4 then answers
    CONCURRENT_TRANSACTIONS before it checks producer id and epoch (KAFKA-18660)."""
    verifies_offsets: bool = True
    """3.8 (KIP-890): before offsets are written into a transaction, its coordinator is asked whether the
    group is part of it."""

    @property
    def raises_epoch(self) -> bool:
        return self.transaction_version >= 2


BEHAVIOUR_2_8 = TransactionBehaviour(
    value_version=0, transaction_version=0, pending_answers_first=False, verifies_offsets=False
)
BEHAVIOUR_3_9 = replace(BEHAVIOUR_2_8, verifies_offsets=True)
BEHAVIOUR_4_3 = TransactionBehaviour(value_version=1, transaction_version=2, pending_answers_first=True)
