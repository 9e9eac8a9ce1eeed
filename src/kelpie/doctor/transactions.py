"""Whether an open transaction will end, who will end it, and what to do about it."""

from enum import Enum

from kelpie.cluster import ClusterView, commands
from kelpie.doctor.finding import Evidence, Remedy, Severity
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration, moment
from kelpie.observations import OpenTransaction

UNKNOWN_STATE = "?"
"""The transaction coordinator could not be asked."""
OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
_CLEANUP_MS = 10_000
"""So often coordinators abort transactions whose timeout has passed."""
_SETTLED_MS = 500
"""What was written less than this ago may have ended between two questions."""
_LONG_MS = 60_000
"""As long as transactions may take by default (transaction.timeout.ms)."""


class Fate(Enum):
    """Who will end it."""

    WELL = ""
    AWAITED = "Its coordinator waits for its producer, and aborts it when its timeout has passed."
    OVERDUE = "Its timeout has passed long ago, and its coordinator does not end it."
    FORGOTTEN = "Its coordinator knows nothing of it: nobody will end it."
    FINISHED = "To its coordinator it is over: nobody will end it here."

    @property
    def severity(self) -> Severity:
        return Severity.NOTICE if self in (Fate.WELL, Fate.AWAITED) else Severity.CRITICAL


def open_in(cluster: ClusterView, name: TopicPartition) -> list[OpenTransaction]:
    """Those that the last survey saw, the oldest first; others may have ended since."""
    rows = cluster.transactions.get(name, ())
    last = max((row.at for row in rows if row.at is not None), default=None)
    newest = [row for row in rows if row.at is None or row.at == last]
    return sorted(newest, key=lambda row: row.started_at_offset)


def fate_of(transaction: OpenTransaction, now: Instant, *, seen_before: bool) -> Fate:
    """`seen_before`: an earlier survey saw it open at the same offset."""
    age = open_ms(transaction, now)
    if transaction.state == "":
        return Fate.FORGOTTEN if seen_before or (age or 0) >= _SETTLED_MS else Fate.WELL
    if transaction.state in OPEN_STATES or transaction.state == UNKNOWN_STATE:
        limit = transaction.timeout_ms
        if age is not None and limit > 0 and age > limit + _CLEANUP_MS:
            return Fate.OVERDUE
        return Fate.AWAITED if seen_before or (age or 0) >= _LONG_MS else Fate.WELL
    # The coordinator is done; the marker may be on its way to this partition.
    return Fate.FINISHED if seen_before or (age or 0) >= _CLEANUP_MS else Fate.WELL


def open_ms(transaction: OpenTransaction, now: Instant) -> int | None:
    """It was open for at least so long: from its last record until it was seen open. None: unknown."""
    if transaction.last_written is None:
        return None
    seen = now if transaction.at is None else min(now, transaction.at)
    return max(0, seen - transaction.last_written)


def transaction_evidence(transaction: OpenTransaction) -> Evidence:
    name = TopicPartition(transaction.topic, transaction.partition)
    who = f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}"
    if transaction.transactional_id:
        who += f", transactional id {transaction.transactional_id}"
    if transaction.last_written is not None:
        who += f", last record {moment(transaction.last_written)}"
    match transaction.state:
        case "":
            state = "its coordinator does not know it"
        case "?":
            state = "its coordinator could not be asked"
        case _:
            state = f"its coordinator says {transaction.state}"
    if transaction.timeout_ms > 0:
        state += f", timeout {duration(transaction.timeout_ms)}"
    begin = transaction.started_at_offset
    return Evidence.of(transaction, f"{name}: transaction open since offset {begin} ({who}; {state})")


def ending(cluster: ClusterView, transaction: OpenTransaction, fate: Fate) -> list[Remedy]:
    """Start its producer again, or abort it: for brokers since 3.0, and for older ones."""
    remedies = []
    if transaction.transactional_id and fate is not Fate.FORGOTTEN:
        producer = repr(transaction.transactional_id)
        remedies.append(Remedy(f"Start the producer {producer} again: that ends what it left open."))
    if fate is Fate.AWAITED:
        return remedies
    where = ("abort", "--topic", transaction.topic, "--partition", transaction.partition)
    start = ("--start-offset", transaction.started_at_offset)
    producer_words = (
        *("--producer-id", transaction.producer_id),
        *("--producer-epoch", transaction.producer_epoch),
        *("--coordinator-epoch", max(transaction.coordinator_epoch, 0)),
    )
    return [
        *remedies,
        Remedy(
            "If its producer is gone for good, abort the transaction; its records are never seen then.",
            commands.kafka("kafka-transactions", cluster, *where, *start),
        ),
        Remedy(
            "The same for brokers older than 3.0.",
            commands.kafka("kafka-transactions", cluster, *where, *producer_words),
        ),
    ]
