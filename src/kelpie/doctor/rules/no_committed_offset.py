"""KLP301 no-committed-offset

What it sees: a partition that the group reads, or should read, holds records,
and the group has no committed offset in it.

Why it matters: a consumer that takes it over starts where auto.offset.reset
says. latest, the default of Java's, librdkafka's and kafka-python's consumers,
skips all that is there; earliest reads it all; none ends the consumer. So
partitions that are added to a topic lose their first records, and a group that
was renamed or whose offsets are gone loses its place.

How it decides: the coordinator answered what is committed, and the partition is
not among it, though it is assigned, or of a topic that members subscribe to. It
is a warning when the group commits in other partitions of the topic, and for
longer than a few commits: then this one was added, or is not read. It is a
notice while a group is new, where the records are older than the group, and
where the group has no members.

What to do: before the consumers start, set the offset in the partition: to the
beginning to read what is there. For topics that grow, choose
auto.offset.reset=earliest.

When it is wrong: consumers that keep their offsets elsewhere. Consumers of
librdkafka commit nothing in a partition from which they have read nothing.

Reproduce: kelpie lab run no-committed-offset
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Severity, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, records, reset, some
from kelpie.doctor.positions import ends_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, LogEnds


class _Open(NamedTuple):
    end: LogEnds
    severity: Severity

    @property
    def number(self) -> int:
        return self.end.latest - max(self.end.earliest, 0)


def judge(case: Case) -> Judgement:
    if not case.offsets_are_known:
        told = _last_events(case)
        if told:
            return _by_log(case, told)
        return undetermined("its committed offsets")
    wanted = _wanted(case)
    if wanted is None:
        return undetermined("which partitions it reads: it has neither members nor committed offsets")
    without = [name for name in wanted if not case.has_offset(name)]
    unknown, uncommitted = [], []
    for name in without:
        ends = ends_of(case.cluster, name)
        if not ends:
            unknown.append(name)
        elif (end := ends[-1]).latest > max(end.earliest, 0):
            uncommitted.append(_Open(end, _severity(case, name, end)))
    if uncommitted:
        return _found(case, uncommitted)
    return undetermined(f"whether {some(unknown)} holds records") if unknown else ABSENT


def _wanted(case: Case) -> tuple[TopicPartition, ...] | None:
    """With nobody there, all partitions of the topics in which it has offsets."""
    read = case.reads
    if case.members:
        return read.partitions
    if not read.partitions:
        return None
    topics = {name.topic for name in read.partitions}
    return tuple(name for topic in sorted(topics) for name in case.cluster.topics.get(topic, ()))


def _severity(case: Case, name: TopicPartition, end: LogEnds) -> Severity:
    siblings = [other for other in case.committed if other.topic == name.topic and case.has_offset(other)]
    if not case.members or not siblings or case.is_cut_off:
        return Severity.NOTICE
    began = _began(case)
    if began is not None:
        is_new = case.cluster.now - began < case.commit_rhythm.patience_ms
        is_older = end.last_written is not None and end.last_written < began
        if is_new or is_older:
            return Severity.NOTICE
    return Severity.WARNING


def _began(case: Case) -> Instant | None:
    """The group's first commit that is known."""
    times = [row.at for history in case.commits.values() for row in history[:1] if row.at is not None]
    return min(times, default=None)


def _found(case: Case, found: list[_Open]) -> Finding:
    found.sort(key=lambda row: (-row.severity, -row.number))
    severity = found[0].severity
    names = [row.end.name for row in found]
    total = sum(row.number for row in found)
    events = [event for event in _last_events(case) if (event.topic, event.partition) in names]
    verb = "holds" if len(names) == 1 else "hold"
    rows = [row for row in (case.committed.get(name) for name in names) if row is not None]
    return RULE.finding(
        severity,
        case.group,
        f"Group {case.group} has no committed offset in {some(names)}, which {verb} {records(total)}.",
        why="A consumer that takes over there starts where auto.offset.reset says: "
        f"latest, the default, skips these {total:,}; earliest reads them all; none ends it with "
        "NoOffsetForPartitionException.",
        evidence=[
            *evidence_of(*rows[:MOST_EVIDENCE]),
            *evidence_of(*(row.end for row in found[:MOST_EVIDENCE])),
            *(Evidence(event.text, event.source, event.at) for event in events[:MOST_EVIDENCE]),
        ],
        remedies=[
            reset(
                case,
                "To read what is there: while nobody is in the group, set its offsets to the beginning.",
                names,
                "--to-earliest",
            ),
            reset(
                case,
                "To leave it: set them to the end, so that nothing is skipped later.",
                names,
                "--to-latest",
            ),
        ],
        partitions=names,
    )


def _last_events(case: Case) -> list[Event]:
    """What logs say of partitions without a committed offset, unless the group has committed there since."""
    newest: dict[TopicPartition, Event] = {}
    for event in case.events:
        if event.kind is EventKind.NO_COMMITTED_OFFSET and event.topic and event.partition is not None:
            newest[TopicPartition(event.topic, event.partition)] = event
    return [
        event
        for name, event in sorted(newest.items())
        if not any((row.at or 0) >= (event.at or 0) and not row.removed for row in case.commits.get(name, ()))
    ]


def _by_log(case: Case, told: list[Event]) -> Finding:
    names = [TopicPartition(event.topic or "", event.partition or 0) for event in told]
    resets = [
        event
        for event in case.events
        if event.kind is EventKind.POSITION_RESET and (event.topic, event.partition) in names
    ]
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} had no committed offset in {some(names)} when its consumer started.",
        why="It started where auto.offset.reset says: latest, the default, skips what was there; earliest "
        "reads it all; none ends the consumer.",
        evidence=[Evidence(event.text, event.source, event.at) for event in (told + resets)[:MOST_EVIDENCE]],
        partitions=names,
        since=min((event.at for event in told if event.at is not None), default=None),
    )


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(
        of_one="has partitions without a committed offset",
        of_many="have partitions without a committed offset",
    ),
)
