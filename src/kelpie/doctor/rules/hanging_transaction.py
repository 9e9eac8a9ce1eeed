"""KLP306 hanging-transaction

What it sees: a transaction is open in a partition that the group reads, and
nobody will end it: the last stable offset stands still.

Why it matters: consumers with isolation.level=read_committed read no further
than the last stable offset, whatever is written behind it. To them the topic
looks empty: no error, no lag in their own metrics. In compacted topics nothing
behind it is cleaned any more.

How it decides: the last stable offset is smaller than the end of the log, a
producer's transaction is open at it (DescribeProducers), and its coordinator
knows nothing of that transaction, is done with it, or should have ended it long
ago by its timeout. A transaction that its coordinator still waits for is only a
notice, and only if two surveys saw it at the same place, or its last record is a
minute old: it ends with its timeout.
Where brokers cannot describe producers (before 2.8), a last stable offset that
stood still for longer than transaction.max.timeout.ms is as good. Kafka's own
tools print no last stable offset: where one was run last, that of earlier surveys
counts, if it stood still between them. Groups whose offset is behind the last
stable offset read uncommitted records and are not concerned.

What to do: start the producer again with its transactional id: that ends what it
left open, if the coordinator knows of it. Otherwise abort the transaction; the
finding has the command with its numbers.

When it is wrong: a group that reads uncommitted records and has just stopped at
the last stable offset by chance.

Reproduce: kelpie lab run hanging-transaction
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, evidence_of, records, some
from kelpie.doctor.positions import NOISE, Track
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.transactions import Fate, ending, fate_of, open_in, transaction_evidence
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import LogEnds, OpenTransaction
from kelpie.observations.positions import NO_OFFSET

_DEFAULT_MAX_TIMEOUT_MS = 900_000


class _Held(NamedTuple):
    track: Track
    end: LogEnds
    transaction: OpenTransaction | None
    fate: Fate
    stands_since: Instant | None
    """When the last stable offset was first seen where it is, if more than one survey saw it."""

    @property
    def behind(self) -> int:
        return self.end.latest - self.end.stable

    @property
    def since(self) -> Instant | None:
        if self.transaction is not None and self.transaction.last_written is not None:
            return self.transaction.last_written
        return self.stands_since


def judge(case: Case) -> Judgement:
    names = [name for name in case.reads.partitions if not case.is_gone(name)]
    if not names:
        return undetermined("which partitions it reads: it has neither members nor committed offsets")
    held, unclear, unknown = [], [], []
    for name in names:
        track = case.track(name)
        end = track.end
        if end is None or end.stable == NO_OFFSET:
            unknown.append(name)
            continue
        if end.stable >= end.latest or track.offset > end.stable:
            continue
        judged = _judge(case, track, end)
        if judged is None:
            unclear.append(name)
        elif judged.fate is not Fate.WELL:
            held.append(judged)
    if held:
        return _found(case, held)
    if unclear:
        return undetermined(f"which transaction is open in {some(unclear)}, and since when", SECOND_LOOK)
    return undetermined(f"the last stable offset of {some(unknown)}") if unknown else ABSENT


def _judge(case: Case, track: Track, end: LogEnds) -> _Held | None:
    """What holds the last stable offset. None: nobody can say."""
    since = _stands_since(track, end)
    transactions = open_in(case.cluster, track.name)
    first = next((each for each in transactions if each.started_at_offset <= end.stable + NOISE), None)
    if first is not None:
        fate = fate_of(first, case.cluster.now, seen_before=since is not None)
        return _Held(track, end, first, fate, since)
    if track.name in case.cluster.transactions:
        return _Held(track, end, None, Fate.WELL, since)  # It has ended in between.
    limit_ms = case.cluster.number("transaction.max.timeout.ms")
    if limit_ms is None:
        limit_ms = _DEFAULT_MAX_TIMEOUT_MS
    if since is not None and case.cluster.now - since > limit_ms:
        return _Held(track, end, None, Fate.OVERDUE, since)
    return None


def _stands_since(track: Track, end: LogEnds) -> Instant | None:
    same = [row.at for row in track.ends if row.latest > row.stable == end.stable and row.at is not None]
    return same[0] if len(same) > 1 and same[0] < same[-1] else None


def _found(case: Case, held: list[_Held]) -> Finding:
    held.sort(key=lambda hold: (-hold.fate.severity, -hold.behind))
    worst = held[0]
    track, end, since = worst.track, worst.end, worst.since
    names = [hold.track.name for hold in held]
    hidden = sum(hold.behind for hold in held)
    at_it = track.offset != NO_OFFSET and end.stable - track.offset <= NOISE
    arrived = "has read up to there and waits" if at_it else "will get no further than that"
    silent = (
        f", and its producer has been silent for {duration(case.cluster.now - since)}"
        if since is not None
        else ""
    )
    find = Remedy("Find the producer with kafka-transactions.sh find-hanging (brokers since 3.0).")
    transaction = worst.transaction
    return RULE.finding(
        worst.fate.severity,
        case.group,
        f"An open transaction holds back readers of {some(names)}: the last stable offset of "
        f"{track.name} is {end.stable}, the log ends at {end.latest}{silent}. "
        f"Group {case.group}, if it reads committed records only, {arrived}.",
        why=f"{records(hidden)} behind it {'is' if hidden == 1 else 'are'} hidden from consumers with "
        f"isolation.level=read_committed. {worst.fate.value}",
        evidence=_evidence(held),
        remedies=[find] if transaction is None else ending(case.cluster, transaction, worst.fate),
        cause=str(track.name),
        partitions=names,
        since=since,
    )


def _evidence(held: list[_Held]) -> list[Evidence]:
    evidence = []
    for hold in held[: MOST_EVIDENCE // 3]:
        earlier = [row for row in hold.track.ends[:-1] if row.latest > row.stable == hold.end.stable][:1]
        evidence += evidence_of(*earlier, hold.end)
        if hold.transaction is not None:
            evidence.append(transaction_evidence(hold.transaction))
    return evidence


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "is held up by a hanging transaction", "are held up by a hanging transaction", stops_group=True
    ),
)
