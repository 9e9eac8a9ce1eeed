"""Whether an open transaction will end, who will end it, and what to do about it."""

from enum import Enum

from kelpie.cluster import ClusterView, commands
from kelpie.doctor.finding import Evidence, Remedy, Severity
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration, moment
from kelpie.observations import OpenTransaction

UNKNOWN_STATE = "?"
"""Nobody can say whether its coordinator knows it."""
OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
APART_MS = 60_000
"""Surveys that are so far apart show that it lasts."""
_CLEANUP_MS = 10_000
"""So often coordinators abort transactions whose timeout has passed."""
_LONG_MS = 60_000
"""As long as transactions may take by default (transaction.timeout.ms)."""
_DEFAULT_MAX_TIMEOUT_MS = 900_000


class Fate(Enum):
    """Who will end it."""

    WELL = ""
    AWAITED = "Its coordinator waits for its producer, and aborts it when its timeout has passed."
    UNTOLD = "Whether its coordinator knows it, and will end it, cannot be told."
    OVERDUE = "Its timeout has passed long ago, and its coordinator does not end it."
    FORGOTTEN = "Its coordinator knows nothing of it: nobody will end it."
    FINISHED = "Its coordinator has ended it, but not in this partition: nobody will end it here."

    def severity(self, stood_ms: int) -> Severity:
        """`stood_ms`: for so long surveys saw the last stable offset at the same place; 0: one survey."""
        if self in (Fate.WELL, Fate.AWAITED):
            return Severity.NOTICE
        return Severity.CRITICAL if self is not Fate.UNTOLD and stood_ms >= APART_MS else Severity.WARNING


def longest_ms(cluster: ClusterView) -> int:
    """No coordinator lets a transaction last longer (transaction.max.timeout.ms)."""
    given = cluster.number("transaction.max.timeout.ms")
    return _DEFAULT_MAX_TIMEOUT_MS if given is None else given


def open_in(cluster: ClusterView, name: TopicPartition) -> list[OpenTransaction]:
    """Those that the last survey saw, the oldest first; others may have ended since."""
    rows = cluster.transactions.get(name, ())
    last = max((row.at for row in rows if row.at is not None), default=None)
    newest = [row for row in rows if row.at is None or row.at == last]
    return sorted(newest, key=lambda row: row.started_at_offset)


def fate_of(transaction: OpenTransaction, now: Instant, *, stood_ms: int) -> Fate:
    """`stood_ms`: as for `Fate.severity`."""
    age = open_ms(transaction, now) or 0
    state = transaction.state
    if state in OPEN_STATES:
        if 0 < transaction.timeout_ms < age - _CLEANUP_MS:
            return Fate.OVERDUE
        return Fate.AWAITED if stood_ms or age >= _LONG_MS else Fate.WELL
    if state == UNKNOWN_STATE:
        return Fate.UNTOLD if stood_ms or age >= _LONG_MS else Fate.WELL
    if not state:
        # The survey saw it open before and after. While coordinators move, a young one is in no list.
        return Fate.FORGOTTEN if stood_ms or age >= _LONG_MS else Fate.WELL
    # The coordinator is done; the marker may be on its way to this partition.
    return Fate.FINISHED if stood_ms or age >= _CLEANUP_MS else Fate.WELL


def open_ms(transaction: OpenTransaction, now: Instant) -> int | None:
    """It was open for at least so long: from its last record until it was seen open. None: unknown."""
    if transaction.last_written is None:
        return None
    seen = now if transaction.at is None else min(now, transaction.at)
    return max(0, seen - transaction.last_written)


def transaction_evidence(transaction: OpenTransaction) -> Evidence:
    name = transaction.name
    who = f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}"
    if transaction.transactional_id:
        who += f", transactional id {transaction.transactional_id}"
    if transaction.last_written is not None:
        who += f", last record {moment(transaction.last_written)}"
    match transaction.state:
        case "":
            state = "no coordinator knows it"
        case "?":
            state = "whether its coordinator knows it cannot be told"
        case _:
            state = f"its coordinator says {transaction.state}"
    if transaction.timeout_ms > 0:
        state += f", timeout {duration(transaction.timeout_ms)}"
    begin = transaction.started_at_offset
    return Evidence.of(transaction, f"{name}: transaction open since offset {begin} ({who}; {state})")


def ending(cluster: ClusterView, transaction: OpenTransaction, fate: Fate, *, stood_ms: int) -> list[Remedy]:
    """Start its producer again; abort it only if two surveys saw it and no transaction may last so long."""
    remedies = []
    if transaction.transactional_id and fate is not Fate.FORGOTTEN:
        producer = repr(transaction.transactional_id)
        remedies.append(Remedy(f"Start the producer {producer} again: that ends what it left open."))
    if fate is Fate.AWAITED:
        return remedies
    if fate is Fate.UNTOLD:
        return [*remedies, *_asking_better(cluster, transaction)]
    if transaction.state in OPEN_STATES - {"Ongoing"}:
        text = (
            f"Its coordinator is ending it ({transaction.state}) and does not get done: look in its log for "
            "the brokers to which it cannot write markers. Do not abort it."
        )
        return [*remedies, Remedy(text)]
    limit = longest_ms(cluster)
    if stood_ms < APART_MS or (open_ms(transaction, cluster.now) or 0) <= limit:
        text = (
            f"Look again once it is older than {duration(limit)} (transaction.max.timeout.ms). Kelpie "
            "advises to abort a transaction only then, and only if two surveys a minute apart saw it."
        )
        return [*remedies, Remedy(text, commands.kelpie("doctor", cluster))]
    return [*remedies, *_aborting(cluster, transaction)]


def _asking_better(cluster: ClusterView, transaction: OpenTransaction) -> list[Remedy]:
    reasons = [
        row.reason for row in cluster.unasked if row.kind == "partition" and row.name == str(transaction.name)
    ]
    return [
        Remedy(
            "Do not abort it yet: its coordinator may know it. Run the doctor as a user that may describe "
            "all transactional ids, with every broker reachable." + (f" ({reasons[0]})" if reasons else ""),
            commands.kelpie("doctor", cluster),
        )
    ]


def _aborting(cluster: ClusterView, transaction: OpenTransaction) -> list[Remedy]:
    """For brokers since 3.0, and for older ones."""
    where = ("abort", "--topic", transaction.topic, "--partition", transaction.partition)
    start = ("--start-offset", transaction.started_at_offset)
    producer_words = (
        *("--producer-id", transaction.producer_id),
        *("--producer-epoch", transaction.producer_epoch),
        *("--coordinator-epoch", max(transaction.coordinator_epoch, 0)),
    )
    return [
        Remedy(
            "If its producer is gone for good, abort the transaction; its records are never seen then.",
            commands.kafka("kafka-transactions", cluster, *where, *start),
        ),
        Remedy(
            "The same for brokers older than 3.0.",
            commands.kafka("kafka-transactions", cluster, *where, *producer_words),
        ),
    ]
