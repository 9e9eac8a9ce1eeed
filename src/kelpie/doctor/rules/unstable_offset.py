"""KLP307 unstable-offset

What it sees: the group's committed offset is not known, because a transaction
that commits it is neither committed nor aborted.

Why it matters: consumers that ask for stable offsets (all of Java's since 2.5)
hear UNSTABLE_OFFSET_COMMIT when they start or take a partition over, and ask
again and again without a line in the log: they get no position, and no records.

How it decides: the coordinator answered error 88, and it is not only for a
moment: two surveys saw it; or the transaction in the group's partition of
__consumer_offsets has been open for longer than three of the group's usual
pauses between commits, or its coordinator does not know it or is done with it.
Client logs that show it for as long are as good.

What to do: start the producer with its transactional id again: that ends the
transaction. Otherwise it ends with its timeout (transaction.timeout.ms, 1 minute
by default), unless it hangs: then abort it.

When it is wrong: an application whose transactions usually take that long.

Reproduce: kelpie lab run unstable-offset
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, abort, evidence_of, some
from kelpie.doctor.rule import Rule
from kelpie.doctor.transactions import Fate, fate_of, open_in, open_ms, transaction_text
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import Committed, Event, EventKind, OpenTransaction

UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)


def judge(case: Case) -> Judgement:
    patience = case.commit_rhythm.patience_ms
    unstable = [row for row in case.committed.values() if row.error == UNSTABLE]
    told = _events(case)
    if not unstable:
        if told and len(told) > 1 and (told[-1].at or 0) - (told[0].at or 0) >= patience:
            return _found(case, [], None, Fate.AWAITED, told[0].at)
        return ABSENT if case.offsets_are_known else undetermined("its committed offsets")
    names = [row.name for row in unstable]
    seen = _seen_before(case, names)
    own = case.offsets_partition
    transaction = next(iter(open_in(case.cluster, own)), None) if own is not None else None
    if transaction is None:
        if seen is None:
            return undetermined(SECOND_LOOK)
        return _found(case, unstable, None, Fate.AWAITED, seen)
    age = open_ms(transaction, case.cluster.now)
    fate = fate_of(transaction, case.cluster.now, seen_before=seen is not None)
    if fate is Fate.WELL and (age is None or age < patience):
        return ABSENT
    since = min((at for at in (seen, transaction.last_written) if at is not None), default=None)
    return _found(case, unstable, transaction, fate if fate is not Fate.WELL else Fate.AWAITED, since)


def _events(case: Case) -> list[Event]:
    return [
        event for event in case.events if event.kind is EventKind.UNSTABLE_OFFSET and event.at is not None
    ]


def _seen_before(case: Case, names: list[TopicPartition]) -> Instant | None:
    """The first of the looks that saw it without a break until now, if there were more than one."""
    first: Instant | None = None
    for name in names:
        run = []
        for row in reversed(case.committed_over_time.get(name, ())):
            if row.error != UNSTABLE:
                break
            if row.at is not None:
                run.append(row.at)
        if len(set(run)) > 1:
            first = min(run) if first is None else min(first, *run)
    return first


def _found(
    case: Case,
    unstable: list[Committed],
    transaction: OpenTransaction | None,
    fate: Fate,
    since: Instant | None,
) -> Finding:
    told = _events(case)
    names = [row.name for row in unstable]
    now = case.cluster.now
    long = f" for {duration(now - since)}" if since is not None else ""
    where = f" of {some(names)}" if names else ""
    evidence = evidence_of(*unstable[: MOST_EVIDENCE // 2])
    if transaction is not None:
        evidence.append(Evidence(transaction_text(transaction), transaction.source, transaction.at))
    evidence += [Evidence(event.text, event.source, event.at) for event in (*told[:1], *told[-1:])]
    remedies = []
    if transaction is not None and transaction.transactional_id and fate is not Fate.FORGOTTEN:
        remedies.append(
            Remedy(f"Start the producer {transaction.transactional_id!r} again: that ends what it left open.")
        )
    if transaction is not None and fate is not Fate.AWAITED:
        remedies += abort(case.cluster, transaction)
    if not remedies:
        remedies.append(
            Remedy("Find the application whose transactions commit this group's offsets, and its state.")
        )
    return RULE.finding(
        Severity.CRITICAL if fate is not Fate.AWAITED or not case.members else Severity.WARNING,
        case.group,
        f"Group {case.group}: the committed offsets{where} have been unstable{long}: a transaction that "
        "commits them is neither committed nor aborted.",
        why="A consumer that starts now, or takes a partition over, gets no position and reads nothing until "
        f"the transaction ends. {fate.value}",
        evidence=evidence,
        remedies=remedies,
        cause=str(case.offsets_partition or ""),
        partitions=names,
        since=since,
    )


RULE = Rule.of(__name__, judge)
