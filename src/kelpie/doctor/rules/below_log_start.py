"""KLP303 below-log-start

What it sees: a committed offset that lies before the first record of the log.

Why it matters: the records between them are gone, deleted by retention or by
DeleteRecords, and this group has not read them. The next fetch from there is
refused (OFFSET_OUT_OF_RANGE), and auto.offset.reset decides where to go on:
earliest at the first record that is left, latest at the end, which skips all
that is left as well; none ends the consumer with an exception.

How it decides: the committed offset is smaller than the earliest offset of the
partition, and no later commit is known that is not: an application may delete what it
has read, as Kafka Streams does. The difference is how many offsets are lost; in
compacted topics and with transactions there may be fewer records. A difference of one
proves nothing: the marker of a transaction is an offset that nobody reads. Without a
survey, a client's log that shows an offset out of range and a reset to a higher one.

What it needs: Describe on the group (for its offsets) and Describe on the topics (for
the beginning of each log). Or the logs of the group's consumers. Without its offsets,
or without the beginning of a log, it is undetermined. One survey is enough.

What to do: lose no more: keep records for longer (retention.ms,
retention.bytes) until the group has caught up. Then say where it goes on,
rather than leave that to the reset policy.

When it is wrong: records were deleted on purpose that this group need not
read. If no member of the group subscribes to the topic any more, it is only a
notice; the offset stays until offsets.retention.minutes have passed.

Reproduce: kelpie lab run below-log-start
"""

from typing import NamedTuple

from kelpie.cluster import commands
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.membership import describing
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, keep_longer, records, reset, some
from kelpie.doctor.positions import NOISE
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed, Event, EventKind, LogEnds
from kelpie.observations.positions import NO_OFFSET


class _Lost(NamedTuple):
    row: Committed
    end: LogEnds

    @property
    def number(self) -> int:
        return self.end.earliest - self.row.offset


def judge(case: Case) -> Judgement:
    lost: list[_Lost] = []
    unclear: list[_Lost] = []
    unknown = []
    for row in case.committed_rows:
        end = log_start(case, row.name)
        if end is None:
            unknown.append(row.name)
        elif row.offset < end.earliest and not _has_moved_past(case, row.name, end):
            loss = _Lost(row, end)
            (lost if loss.number > NOISE else unclear).append(loss)
    if lost:
        return _found(case, [*lost, *unclear])
    by_log = _by_log(case)
    if by_log is not None:
        return by_log
    if not case.offsets_are_known:
        return undetermined("its committed offsets")
    if unclear:
        names = some([loss.row.name for loss in unclear])
        return undetermined(
            f"whether the one offset before the beginning of the log of {names} was a record, or a "
            "transaction's marker, which nobody reads"
        )
    return undetermined(f"where the log of {some(unknown)} begins") if unknown else ABSENT


def _has_moved_past(case: Case, name: TopicPartition, end: LogEnds) -> bool:
    """Whether the history, which is read last, has a commit at the beginning of the log, or behind it.

    An application may delete what it has read: Kafka Streams does so in its repartition topics, right after
    each commit. The beginning of a log is asked for after the committed offset.
    """
    history = case.commits.get(name, ())
    return bool(history) and not case.is_of_old_topic(history[-1]) and history[-1].offset >= end.earliest


def log_start(case: Case, name: TopicPartition) -> LogEnds | None:
    """The newest row that tells where the log begins."""
    rows = case.cluster.ends.get(name, ())
    return next((end for end in reversed(rows) if end.earliest != NO_OFFSET and not end.error), None)


def _found(case: Case, lost: list[_Lost]) -> Finding:
    lost.sort(key=lambda loss: -loss.number)
    names = [loss.row.name for loss in lost]
    total = sum(loss.number for loss in lost)
    wanted = [name for name in names if name not in case.reads.abandoned]
    row, end = lost[0]
    where = (
        f"its offset in {row.name} is {row.offset}, and the log begins at {end.earliest}"
        if len(lost) == 1
        else f"in {some(names)} the log begins after its offsets"
    )
    unsubscribed = "" if wanted else "; no member subscribes to the topic any more"
    return RULE.finding(
        case.loss_severity(names),
        case.group,
        f"Group {case.group} has lost {records(total)}: {where}{unsubscribed}.",
        why="They were deleted before the group read them. A consumer that starts there is refused "
        "(OFFSET_OUT_OF_RANGE) and goes where auto.offset.reset says: latest skips what is left, too.",
        evidence=[each for loss in lost[: MOST_EVIDENCE // 2] for each in evidence_of(*loss)],
        remedies=_remedies(case, names, wanted),
        partitions=names,
        check=checks.log_starts(case.cluster, names),
    )


def _remedies(case: Case, names: list[TopicPartition], wanted: list[TopicPartition]) -> list[Remedy]:
    if not wanted:
        words = ("--group", case.group, "--delete-offsets", "--topic", names[0].topic)
        forget = commands.kafka("kafka-consumer-groups", case.cluster, *words)
        return [Remedy("If the group does not read this topic any more, delete its offsets there.", forget)]
    go_on = "Stop the group's consumers and let it go on at the first record that is left."
    return [keep_longer(case.cluster, wanted[0].topic), reset(case, go_on, wanted, "--to-earliest")]


def _by_log(case: Case) -> Judgement | None:
    """A client was refused, and went on at a higher offset."""
    for event in reversed(case.events_of(EventKind.OUT_OF_RANGE)):
        after = _reset_after(case, event)
        if event.offset is None or after is None or after.offset is None or after.offset <= event.offset:
            continue
        name = TopicPartition(event.topic or "?", event.partition if event.partition is not None else -1)
        if log_start(case, name) is not None and case.committed.get(name) is not None:
            continue  # A survey saw both, and it is over.
        skipped = after.offset - event.offset
        return RULE.finding(
            Severity.WARNING,
            case.group,
            f"Group {case.group} jumped over {records(skipped)} of {name}: offset {event.offset} was out of "
            f"range, and it went on at {after.offset}.",
            why="What lies between was deleted before the group read it, or auto.offset.reset skipped it.",
            evidence=quotes([event, after]),
            partitions=[name],
            since=event.at,
            check=describing(case, "--offsets"),
        )
    return None


def _reset_after(case: Case, refused: Event) -> Event | None:
    place = (refused.topic, refused.partition)
    for event in case.events_of(EventKind.POSITION_RESET):
        is_later = (event.at or 0) >= (refused.at or 0)
        if (event.topic, event.partition) == place and is_later and event.offset is not None:
            return event
    return None


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has lost records to retention", "have lost records to retention"),
    asked_for=Sign.LOG_LINES | Sign.OFFSETS_UNKNOWN | Sign.BELOW_START | Sign.NO_ENDS,
)
