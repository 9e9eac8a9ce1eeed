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

from itertools import takewhile

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, evidence_of, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.transactions import Fate, ending, fate_of, open_in, open_ms, transaction_evidence
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import Committed, Event, EventKind, OpenTransaction

UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)


def judge(case: Case) -> Judgement:
    patience = case.commit_rhythm.patience_ms
    unstable = [row for row in case.committed.values() if row.error == UNSTABLE]
    if not unstable:
        events = _events(case)
        if len(events) > 1 and (events[-1].at or 0) - (events[0].at or 0) >= patience:
            return _found(case, [], None, Fate.AWAITED, events[0].at)
        return ABSENT if case.offsets_are_known else undetermined("its committed offsets")
    seen = _seen_before(case, [row.name for row in unstable])
    home = case.offsets_partition
    transaction = next(iter(open_in(case.cluster, home)), None) if home is not None else None
    if transaction is None:
        if seen is None:
            return undetermined(SECOND_LOOK)
        return _found(case, unstable, None, Fate.AWAITED, seen)
    age = open_ms(transaction, case.cluster.now)
    fate = fate_of(transaction, case.cluster.now, seen_before=seen is not None)
    if fate is Fate.WELL:
        if age is None or age < patience:
            return ABSENT
        fate = Fate.AWAITED
    since = min((at for at in (seen, transaction.last_written) if at is not None), default=None)
    return _found(case, unstable, transaction, fate, since)


def _events(case: Case) -> list[Event]:
    return [event for event in case.events_of(EventKind.UNSTABLE_OFFSET) if event.at is not None]


def _seen_before(case: Case, names: list[TopicPartition]) -> Instant | None:
    """The first of the surveys that saw it without a break until now, if there was more than one."""
    times: set[Instant] = set()
    for name in names:
        rows = reversed(case.committed_over_time.get(name, ()))
        run = takewhile(lambda row: row.error == UNSTABLE, rows)
        run_times = {row.at for row in run if row.at is not None}
        if len(run_times) > 1:
            times |= run_times
    return min(times, default=None)


def _found(
    case: Case,
    unstable: list[Committed],
    transaction: OpenTransaction | None,
    fate: Fate,
    since: Instant | None,
) -> Finding:
    names = [row.name for row in unstable]
    lasting = f" for {duration(case.cluster.now - since)}" if since is not None else ""
    where = f" of {some(names)}" if names else ""
    evidence = evidence_of(*unstable[: MOST_EVIDENCE // 2])
    remedies = []
    if transaction is not None:
        evidence.append(transaction_evidence(transaction))
        remedies = ending(case.cluster, transaction, fate)
    events = _events(case)
    find = Remedy("Find the application whose transactions commit this group's offsets, and its state.")
    return RULE.finding(
        Severity.CRITICAL if fate is not Fate.AWAITED or not case.members else Severity.WARNING,
        case.group,
        f"Group {case.group}: the committed offsets{where} have been unstable{lasting}: a transaction that "
        "commits them is neither committed nor aborted.",
        why="A consumer that starts now, or takes a partition over, gets no position and reads nothing until "
        f"the transaction ends. {fate.value}",
        evidence=evidence + quotes((*events[:1], *events[-1:])),
        remedies=remedies or [find],
        cause=str(case.offsets_partition or ""),
        partitions=names,
        since=since,
    )


RULE = Rule.of(__name__, judge, Presentation(stops_group=True))
