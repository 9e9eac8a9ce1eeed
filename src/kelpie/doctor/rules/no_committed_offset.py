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
notice while a group is new, where the records are older than the group, where the
group has no members, and while the records are new: if a survey saw the partition
empty, or not yet there, or no member had it, or the topic was created again, the
group has as long to commit as in KLP309. A partition that no member has is a notice
until its records are older than 6 min: consumers see new partitions within 5 min
(metadata.max.age.ms). If that does not end, KLP211 says so.

What it needs: Describe on the group (for its members and its offsets) and Describe on
the topics (for the ends of each log). Or the logs of the group's consumers, from which
only a notice follows. Without the offsets, or where it is unknown which partitions the
group reads or whether they hold records, it is undetermined. The history of commits
(Read on __consumer_offsets) and the time of the newest record (brokers since 3.0) only
decide between warning and notice.

What to do: before the consumers start, set the offset in the partition: to the
beginning to read what is there. For topics that grow, choose
auto.offset.reset=earliest.

When it is wrong: consumers that keep their offsets elsewhere. Consumers of
librdkafka commit nothing in a partition from which they have read nothing.

Reproduce: kelpie lab run no-committed-offset
"""

from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Severity, quotes, undetermined
from kelpie.doctor.membership import NEW_PARTITIONS_MS, describing
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, records, reset, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import Event, EventKind, GroupState, LogEnds
from kelpie.observations.earlier import EARLIER_SURVEY


class _Uncommitted(NamedTuple):
    end: LogEnds
    severity: Severity

    @property
    def number(self) -> int:
        return self.end.latest - max(self.end.earliest, 0)


def judge(case: Case) -> Judgement:
    if not case.offsets_are_known:
        events = _last_events(case)
        return _by_log(case, events) if events else undetermined("its committed offsets")
    wanted = _wanted(case)
    if wanted is None:
        return undetermined("which partitions it reads: it has neither members nor committed offsets")
    unknown, uncommitted = [], []
    for name in wanted:
        if case.has_offset(name):
            continue
        ends = case.cluster.ends_over_time(name)
        if not ends:
            unknown.append(name)
        elif (end := ends[-1]).latest > max(end.earliest, 0):
            uncommitted.append(_Uncommitted(end, _severity(case, name, end)))
    if uncommitted:
        return _found(case, uncommitted)
    return undetermined(f"whether {some(unknown)} holds records") if unknown else ABSENT


def _wanted(case: Case) -> tuple[TopicPartition, ...] | None:
    """Without members, all partitions of the topics in which it has offsets."""
    read = case.reads.partitions
    if case.members:
        return read
    topics = sorted({name.topic for name in read})
    return tuple(name for topic in topics for name in case.cluster.topics.get(topic, ())) if read else None


def _severity(case: Case, name: TopicPartition, end: LogEnds) -> Severity:
    siblings = [other for other in case.committed if other.topic == name.topic and case.has_offset(other)]
    if not case.members or not siblings or case.is_cut_off:
        return Severity.NOTICE
    commits = [row.at for history in case.commits.values() for row in history[:1] if row.at is not None]
    if commits:
        began = min(commits)
        is_new = case.cluster.now - began < case.commit_rhythm.patience_ms
        if is_new or _is_older(case, end, began):
            return Severity.NOTICE
    if case.described is not None and _is_free(case.described, name):
        return Severity.WARNING if _held_records(case, name) else Severity.NOTICE
    free = (state.at for state in case.states if state.at is not None and _is_free(state, name))
    began = max((_last_empty(case, name) or 0, *free))
    is_young = case.cluster.now - began < case.patience_ms(name)
    return Severity.NOTICE if is_young else Severity.WARNING


def _is_free(state: GroupState, name: TopicPartition) -> bool:
    """Whether no member of the group had the partition."""
    held = [member.assigned for member in state.members]
    return bool(held) and all(assigned is not None and name not in assigned for assigned in held)


def _held_records(case: Case, name: TopicPartition) -> bool:
    """Whether records were there when consumers must have seen the partition."""
    then = case.cluster.now - NEW_PARTITIONS_MS
    rows = case.cluster.ends_over_time(name)
    return any(row.latest > max(row.earliest, 0) for row in rows if row.at is not None and row.at <= then)


def _last_empty(case: Case, name: TopicPartition) -> Instant | None:
    """The last time at which a survey saw no record in the partition, or the topic without this partition; of
    a topic that was created again: when the new one was first seen.
    """
    own = case.cluster.ends_over_time(name)
    known_at = {row.at for row in own}
    empty = [row.at for row in own if row.at is not None and row.latest <= max(row.earliest, 0)]
    siblings = (other for other in case.cluster.topics.get(name.topic, ()) if other != name)
    rows = (row for other in siblings for row in case.cluster.ends.get(other, ()))
    surveyed = (row.at for row in rows if row.source == EARLIER_SURVEY and row.at is not None)
    empty += [at for at in surveyed if at not in known_at]
    recreation = case.cluster.known_topics.recreations.get(name.topic)
    if recreation is not None:
        empty.append(recreation.since)
    return max(empty, default=None)


def _is_older(case: Case, end: LogEnds, began: Instant) -> bool:
    """Whether nothing was written there since the group began.

    Brokers tell the time of the newest record since 3.0. Before, where the log ended at earlier times tells.
    """
    if end.last_written is not None:
        return end.last_written < began
    before = [row for row in case.cluster.ends_over_time(end.name) if row.at is not None and row.at <= began]
    return bool(before) and before[-1].latest == end.latest


def _found(case: Case, uncommitted: list[_Uncommitted]) -> Finding:
    uncommitted.sort(key=lambda row: (-row.severity, -row.number))
    names = [row.end.name for row in uncommitted]
    total = sum(row.number for row in uncommitted)
    events = [event for event in _last_events(case) if (event.topic, event.partition) in names]
    verb = "holds" if len(names) == 1 else "hold"
    rows = [row for row in (case.committed.get(name) for name in names) if row is not None]
    read_all = "To read these records: stop the group's consumers, and set its offsets to the beginning."
    skip_all = "To skip them: set its offsets to the end. Records that come later are then read in any case."
    return RULE.finding(
        uncommitted[0].severity,
        case.group,
        f"Group {case.group} has no committed offset in {some(names)}, which {verb} {records(total)}.",
        why="A consumer that takes over there starts where auto.offset.reset says: "
        f"latest, the default, skips these {total:,}; earliest reads them all; none ends it with "
        "NoOffsetForPartitionException.",
        evidence=[
            *evidence_of(*rows[:MOST_EVIDENCE]),
            *evidence_of(*(row.end for row in uncommitted[:MOST_EVIDENCE])),
            *quotes(events[:MOST_EVIDENCE]),
        ],
        remedies=[
            reset(case, read_all, names, "--to-earliest"),
            reset(case, skip_all, names, "--to-latest"),
        ],
        partitions=names,
        check=describing(case, "--offsets"),
    )


def _last_events(case: Case) -> list[Event]:
    """What logs say of partitions without a committed offset, unless the group has committed there since."""
    newest: dict[TopicPartition, Event] = {}
    for event in case.events_of(EventKind.NO_COMMITTED_OFFSET):
        if event.topic and event.partition is not None:
            newest[TopicPartition(event.topic, event.partition)] = event
    return [
        event
        for name, event in sorted(newest.items())
        if not any((row.at or 0) >= (event.at or 0) and not row.removed for row in case.commits.get(name, ()))
    ]


def _by_log(case: Case, events: list[Event]) -> Finding:
    names = [TopicPartition(event.topic or "", event.partition or 0) for event in events]
    resets = case.events_of(EventKind.POSITION_RESET)
    resets = [event for event in resets if (event.topic, event.partition) in names]
    return RULE.finding(
        Severity.NOTICE,
        case.group,
        f"Group {case.group} had no committed offset in {some(names)} when its consumer started.",
        why="It started where auto.offset.reset says: latest, the default, skips what was there; earliest "
        "reads it all; none ends the consumer.",
        evidence=quotes((events + resets)[:MOST_EVIDENCE]),
        partitions=names,
        since=min((event.at for event in events if event.at is not None), default=None),
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has partitions without a committed offset", "have partitions without a committed offset"),
    asked_for=Sign.OFFSETS_UNKNOWN | Sign.UNCOMMITTED | Sign.NOTHING_READ | Sign.OFFSET_REFUSED,
)
