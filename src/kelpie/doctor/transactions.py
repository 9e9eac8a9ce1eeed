"""Whether an open transaction will end, and who will end it."""

from enum import Enum

from kelpie.cluster import ClusterView
from kelpie.doctor.finding import Severity
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


def transaction_text(transaction: OpenTransaction) -> str:
    it = transaction
    name = TopicPartition(it.topic, it.partition)
    who = f"producer {it.producer_id}, epoch {it.producer_epoch}"
    if it.transactional_id:
        who += f", transactional id {it.transactional_id}"
    written = f", last record {moment(it.last_written)}" if it.last_written is not None else ""
    match it.state:
        case "":
            state = "its coordinator does not know it"
        case "?":
            state = "its coordinator could not be asked"
        case _:
            state = f"its coordinator says {it.state}"
    timeout = f", timeout {duration(it.timeout_ms)}" if it.timeout_ms > 0 else ""
    return f"{name}: transaction open since offset {it.started_at_offset} ({who}{written}; {state}{timeout})"
