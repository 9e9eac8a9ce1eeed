"""KLP307 unstable-offset

What it sees: the group's committed offset is not known, because a transaction
that commits it is neither committed nor aborted.

Why it matters: consumers that ask for stable offsets (all of Java's since 2.5)
hear UNSTABLE_OFFSET_COMMIT when they start or take a partition over, and ask
again and again without a line in the log: they get no position, and no records.

How it decides: the coordinator answered error 88, and it is not only for a moment:
two surveys saw it, 5 s apart or as far as three of the group's usual pauses between
commits, and the group's records in __consumer_offsets show no transaction that ended
in between; a minute apart where these records were not read and no leader tells of an
open transaction, since each look may have met another one, and while brokers fail over
(as in KLP309). Or the transaction that commits these offsets has been open for longer than three of the
group's usual pauses between commits, however far the clock of the coordinator may be
from the clock here, or no coordinator knows it or its coordinator is done with it.
Coordinators up to 3.x answer error 88 also while a plain commit waits
for replicas, so a group whose commits are in no transaction is undetermined. Client
logs that show it for as long are as good. Many groups share a partition of
__consumer_offsets, so several transactions may be open in it. The records of the
pending commits carry the id of their producer: that tells which transaction is the
group's; without a broker to ask, as from disks and logs alone, the finding names that
producer by its number. Without these records the finding names no transaction if
several are open, and never advises to abort one.

What it needs: the right Describe on the group. To name the transaction: Kafka 2.8,
ClusterAction or Read on __consumer_offsets and reading its newest records; to
know whether it will end: what KLP306 needs. Without that, two surveys that saw
error 88 are enough to report it, and one is undetermined. It is critical, and the
command that aborts is there, only after two surveys a minute apart, and the
command only for a transaction older than transaction.max.timeout.ms.

What to do: start the producer with its transactional id again: that ends the
transaction. Otherwise it ends with its timeout (transaction.timeout.ms, 1 minute
by default), unless it hangs: then abort it, once the finding has the command.

When it is wrong: an application whose transactions usually take that long.

Reproduce: kelpie lab run unstable-offset
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from kelpie.cluster.failovers import FAILOVER_MS
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, evidence_of, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.doctor.transactions import (
    APART_MS,
    UNKNOWN_STATE,
    Fate,
    ending,
    fate_of,
    open_in,
    open_ms,
    transaction_evidence,
)
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration, moment
from kelpie.observations import Committed, Event, EventKind, OpenTransaction, PendingCommit

UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
_MOMENT_MS = 5_000
"""Surveys that are so far apart, and saw the same transaction, show more than a moment of it."""


class _Suspect(NamedTuple):
    """The transaction that commits the group's offsets, as far as it is known."""

    transaction: OpenTransaction | None
    is_certain: bool
    """The records of the pending commits name its producer."""
    open: int
    """Transactions that are open in the group's partition of the offsets topic."""


def judge(case: Case) -> Judgement:
    patience = case.commit_rhythm.patience_ms
    unstable = [row for row in case.committed.values() if row.error == UNSTABLE]
    if not unstable:
        events = _events(case)
        if len(events) > 1 and (events[-1].at or 0) - (events[0].at or 0) >= patience:
            return _found(case, [], _suspect(case, []), Fate.UNTOLD, events[0].at)
        return ABSENT if case.offsets_are_known else undetermined("its committed offsets")
    seen = _seen_before(case, [row.name for row in unstable])
    stood_ms = _stood_ms(case, unstable, seen)
    suspect = _suspect(case, [row.name for row in unstable])
    least = min(patience, _MOMENT_MS)
    if not (suspect.open or case.commits or case.pending):
        least = APART_MS  # Nothing tells one transaction from the next.
    if any(case.is_failing_over(row.name) for row in unstable):
        patience = least = max(patience, FAILOVER_MS)
    if stood_ms < least:
        seen, stood_ms = None, 0
    transaction = suspect.transaction
    if transaction is None:
        if seen is None:
            return undetermined(SECOND_LOOK)
        if case.commits and not case.commits_in_transactions:
            return undetermined(
                "what commits its offsets: its own commits, which are in no transaction, may wait"
            )
        return _found(case, unstable, suspect, Fate.UNTOLD, seen)
    now = case.cluster.now - case.ages_uncertain_ms
    age = open_ms(transaction, now)
    fate = fate_of(transaction, now, stood_ms=stood_ms)
    if fate is Fate.WELL:
        if age is None or age < patience:
            return ABSENT
        fate = Fate.UNTOLD if transaction.state == UNKNOWN_STATE else Fate.AWAITED
    return _found(case, unstable, suspect, fate, seen)


def _suspect(case: Case, names: list[TopicPartition]) -> _Suspect:
    home = case.offsets_partition
    transactions = open_in(case.cluster, home) if home is not None else []
    producers = {row.producer_id for row in _pending(case, names)}
    own = [each for each in transactions if each.producer_id in producers]
    if own:
        return _Suspect(own[0], True, len(transactions))
    only = transactions[0] if len(transactions) == 1 and not producers else None
    return _Suspect(only, False, len(transactions))


def _pending(case: Case, names: list[TopicPartition]) -> list[PendingCommit]:
    """The pending commits of these partitions; of all, if the partitions are not known."""
    return [row for row in case.pending if not names or row.name in names]


def _events(case: Case) -> list[Event]:
    return [event for event in case.events_of(EventKind.UNSTABLE_OFFSET) if event.at is not None]


def _seen_before(case: Case, names: list[TopicPartition]) -> Instant | None:
    """The first of the surveys that saw this transaction without a break until now, if there was more than
    one. Two surveys of a busy group may each have met another of its transactions.
    """
    times: set[Instant] = set()
    for name in names:
        begun = _begun_after(case, name)
        rows = reversed(case.committed_over_time.get(name, ()))
        run = takewhile(lambda row: row.error == UNSTABLE, rows)
        run_times = {row.at for row in run if row.at is not None and row.at >= begun}
        if len(run_times) > 1:
            times |= run_times
    return min(times, default=None)


def _stood_ms(case: Case, unstable: Sequence[Committed], seen: Instant | None) -> int:
    """From the first survey that saw it until the coordinator last answered so. The rest of a survey may take
    seconds: in that time the transaction may have ended.
    """
    if seen is None:
        return 0
    answered = max((row.at for row in unstable if row.at is not None), default=case.cluster.now)
    return max(0, answered - seen)


def _begun_after(case: Case, name: TopicPartition) -> Instant:
    """The transaction that is open now wrote its commit at this time, or later, as far as is known."""
    pending = [row.at for row in case.pending if row.name == name and row.at is not None]
    if pending:
        return min(pending)
    ended = max((row.at or 0 for row in case.commits.get(name, ()) if row.transactional), default=0)
    home = case.offsets_partition
    others = open_in(case.cluster, home) if home is not None else []
    if not others and case.cluster.now - ended < APART_MS:
        return case.cluster.now  # The records were read after the survey, and show that it has ended since.
    may_be_older = any(row.last_written is None or row.last_written < ended for row in others)
    return 0 if may_be_older else ended


def _found(
    case: Case, unstable: list[Committed], suspect: _Suspect, fate: Fate, seen: Instant | None
) -> Finding:
    names = [row.name for row in unstable]
    transaction = suspect.transaction
    is_dated = transaction is not None and not case.ages_uncertain_ms
    written = transaction.last_written if transaction is not None and is_dated else None
    since = min((at for at in (seen, written) if at is not None), default=None)
    lasting = f" for {duration(_stood_ms(case, unstable, since))}" if since is not None else ""
    where = f" of {some(names)}" if names else ""
    evidence = evidence_of(*unstable[: MOST_EVIDENCE // 2])
    own = _pending(case, names)
    if transaction is not None:
        evidence.append(transaction_evidence(transaction))
        own = [row for row in case.pending if row.producer_id == transaction.producer_id]
    evidence += [
        Evidence.of(row, f"{row.name}: pending commit of {row.offset} by producer {row.producer_id}")
        for row in own[:1]
    ]
    events = _events(case)
    stood_ms = _stood_ms(case, unstable, seen)
    home = case.offsets_partition
    return RULE.finding(
        _severity(case, fate, stood_ms),
        case.group,
        f"Group {case.group}: a consumer that starts now reads nothing: the committed offsets{where} have "
        f"been unstable{lasting}. A transaction that commits them is neither committed nor aborted.",
        why="A consumer that starts, or takes a partition over, gets no position until the transaction ends. "
        f"{_who(suspect, home, own)}{fate.value}",
        evidence=evidence + quotes((*events[:1], *events[-1:])),
        remedies=_remedies(case, suspect, fate, stood_ms),
        cause=str(home or ""),
        partitions=names,
        since=since,
        check=checks.producers(case.cluster, home) if home is not None else "",
    )


def _severity(case: Case, fate: Fate, stood_ms: int) -> Severity:
    if fate in (Fate.AWAITED, Fate.UNTOLD):
        nobody_reads = not case.members and stood_ms > 0
        return Severity.CRITICAL if nobody_reads else Severity.WARNING
    return fate.severity(stood_ms)


def _who(suspect: _Suspect, home: TopicPartition | None, own: Sequence[PendingCommit]) -> str:
    if suspect.is_certain or home is None:
        return ""
    if own and suspect.transaction is None:
        row = own[0]
        began = f" since {moment(row.at)}" if row.at is not None else ""
        return (
            f"Producer {row.producer_id} (epoch {row.producer_epoch}) commits them{began}; its transactional "
            "id is not in the records of the offsets topic. "
        )
    if suspect.transaction is not None:
        return f"One transaction is open in {home}; that it is the one of this group is likely, not certain. "
    if suspect.open:
        return f"{suspect.open} transactions are open in {home}; which one is this group's cannot be told. "
    return ""


def _remedies(case: Case, suspect: _Suspect, fate: Fate, stood_ms: int) -> list[Remedy]:
    find = Remedy("Find the application whose transactions commit this group's offsets, and its state.")
    transaction = suspect.transaction
    if transaction is None:
        return [find]
    if suspect.is_certain:
        return ending(case.cluster, transaction, fate, stood_ms=stood_ms) or [find]
    # Its producer may be started again in any case; to abort it would be a guess.
    return [*ending(case.cluster, transaction, Fate.AWAITED, stood_ms=stood_ms), find]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "waits for a transaction that commits its offsets",
        "wait for transactions that commit their offsets",
        stops_group=True,
    ),
    asked_for=Sign.LOG_LINES | Sign.OFFSETS_UNKNOWN | Sign.OFFSET_REFUSED,
)
