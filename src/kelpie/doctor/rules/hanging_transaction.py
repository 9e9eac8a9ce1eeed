"""KLP306 hanging-transaction

What it sees: a transaction is open in a partition that the group reads, and
nobody will end it: the last stable offset stands still.

Why it matters: consumers with isolation.level=read_committed read no further
than the last stable offset, whatever is written behind it. To them the topic
looks empty: no error, no lag in their own metrics. In compacted topics nothing
behind it is cleaned any more.

How it decides: the last stable offset is smaller than the end of the log, a
producer's transaction is open at it (DescribeProducers), and no coordinator
knows that transaction, or its coordinator is done with it or should have ended it
long ago by its timeout. On one survey that is a warning. It is critical once two
surveys, a minute or more apart, saw the last stable offset at the same place. A
transaction that its coordinator still waits for is only a notice, and only if two
surveys saw it at the same place, or its last record is a minute old: it ends with
its timeout.
Brokers leave out of their lists the transactions that the caller may not
describe, and those of a partition of __transaction_state without a leader. So
"no coordinator knows it" is said only if all brokers answered, every partition of
__transaction_state has a leader among them, the caller may describe ids that it
cannot have been given one by one, and the transaction was open before and after; on one
survey also only if its last record is a minute old, as coordinators may be moving.
Where brokers cannot describe producers (before 2.8), a last stable offset that
stood still for longer than transaction.max.timeout.ms is as good. Kafka's own
tools print no last stable offset: where one was run last, that of earlier surveys
counts, if it stood still between them. Groups whose offset is behind the last
stable offset read uncommitted records and are not concerned.

What it needs: Kafka 0.11 for the last stable offset, 2.8 to see the producer, 3.0
to see its transaction. The rights Read on the topic (DescribeProducers), Describe
on __transaction_state and Describe on all transactional ids. Without them it is
undetermined whether the transaction hangs; it is a warning, and never advice to
abort, once two surveys show that the offset stood still for longer than
transaction.max.timeout.ms. Two surveys a minute apart, of which the store keeps
the first, for everything that is critical and for the command that aborts.

What to do: start the producer again with its transactional id: that ends what it
left open, if the coordinator knows of it. Otherwise abort the transaction; the
finding has the command with its numbers once two surveys saw the transaction and
it is older than transaction.max.timeout.ms.

When it is wrong: a group that reads uncommitted records and has just stopped at
the last stable offset by chance. A caller who may describe all transactional ids
but for some that are denied one by one.

Reproduce: kelpie lab run hanging-transaction
"""

from typing import NamedTuple

from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, evidence_of, records, some
from kelpie.doctor.positions import NOISE, Track
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.doctor.transactions import Fate, ending, fate_of, longest_ms, open_in, transaction_evidence
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import LogEnds, OpenTransaction
from kelpie.observations.positions import NO_OFFSET


class _Held(NamedTuple):
    track: Track
    end: LogEnds
    transaction: OpenTransaction | None
    fate: Fate
    stands_since: Instant | None
    """When the last stable offset was first seen where it is, if more than one survey saw it."""

    stood_ms: int = 0
    """For how long it was seen there; 0 if only one survey saw it."""

    @property
    def severity(self) -> Severity:
        return self.fate.severity(self.stood_ms)

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
        if judged is None or _cannot_tell(case, judged):
            unclear.append(name)
        elif judged.fate is not Fate.WELL:
            held.append(judged)
    if held:
        return _found(case, held)
    if unclear:
        return undetermined(_lacking(case, unclear), SECOND_LOOK)
    return undetermined(f"the last stable offset of {some(unknown)}") if unknown else ABSENT


def _judge(case: Case, track: Track, end: LogEnds) -> _Held | None:
    """What holds the last stable offset. None: nobody can say."""
    since = _stands_since(track, end)
    stood_ms = max(0, (end.at or case.cluster.now) - since) if since is not None else 0
    transactions = open_in(case.cluster, track.name)
    first = next((each for each in transactions if each.started_at_offset <= end.stable + NOISE), None)
    if first is not None:
        fate = fate_of(first, case.cluster.now, stood_ms=stood_ms)
        return _Held(track, end, first, fate, since, stood_ms)
    if track.name in case.cluster.transactions:
        return _Held(track, end, None, Fate.WELL, since)  # It has ended in between.
    if stood_ms > longest_ms(case.cluster):
        return _Held(track, end, None, Fate.OVERDUE, since, stood_ms)
    return None


def _cannot_tell(case: Case, held: _Held) -> bool:
    """Nobody can say who will end it, and it is not older than a transaction may be."""
    return held.fate is Fate.UNTOLD and held.stood_ms <= longest_ms(case.cluster)


def _lacking(case: Case, unclear: list[TopicPartition]) -> str:
    if any(open_in(case.cluster, name) for name in unclear):
        return f"whether a coordinator knows the transaction that is open in {some(unclear)}, and will end it"
    return f"which transaction is open in {some(unclear)}, and since when"


def _stands_since(track: Track, end: LogEnds) -> Instant | None:
    same = [row.at for row in track.ends if row.latest > row.stable == end.stable and row.at is not None]
    return same[0] if len(same) > 1 and same[0] < same[-1] else None


def _found(case: Case, held: list[_Held]) -> Finding:
    held.sort(key=lambda hold: (-hold.severity, -hold.behind))
    worst = held[0]
    track, end, since = worst.track, worst.end, worst.since
    names = [hold.track.name for hold in held]
    hidden = sum(hold.behind for hold in held)
    at_it = track.offset != NO_OFFSET and end.stable - track.offset <= NOISE
    arrived = "waits" if at_it else "will have to wait"
    silent = (
        f", and its producer has been silent for {duration(case.cluster.now - since)}"
        if since is not None
        else ""
    )
    find = Remedy("Find the producer with kafka-transactions.sh find-hanging (brokers since 3.0).")
    transaction = worst.transaction
    return RULE.finding(
        worst.severity,
        case.group,
        f"Group {case.group}, if it reads committed records only, {arrived} in {some(names)}: a transaction "
        f"is open there. The last stable offset of {track.name} is {end.stable}, the log ends at "
        f"{end.latest}{silent}.",
        why=f"{records(hidden)} behind it {'is' if hidden == 1 else 'are'} hidden from consumers with "
        f"isolation.level=read_committed. {worst.fate.value}",
        evidence=_evidence(held),
        remedies=[find]
        if transaction is None
        else ending(case.cluster, transaction, worst.fate, stood_ms=worst.stood_ms),
        cause=str(track.name),
        partitions=names,
        since=since,
        check=checks.producers(case.cluster, track.name),
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
    asked_for=Sign.HELD_BACK | Sign.NO_ENDS | Sign.NOTHING_READ,
)
