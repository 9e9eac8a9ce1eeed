"""KLP305 epoch-diverged

What it sees: a committed offset that was reached in a part of the log that no
longer exists, though the offset itself does.

Why it matters: after an unclean election the log was cut off and has grown
again. The offset points into other records than
those that the group had read up to: what was written in the place of the lost
ones is skipped without a word. Consumers since 2.3 notice it when they start
("Truncation detected"), others do not.

How it decides: commits carry the leader epoch of the last record read. The leader
says that this epoch ends before the committed offset (OffsetForLeaderEpoch):
the records in between are not those that the group has read. An offset after
the end of the log is left to KLP304, a topic that was created again to KLP314.

What it needs: Describe on the group (for its offsets), Describe on the topics (for the
end of an epoch), and commits that carry a leader epoch: consumers and brokers since 2.1
write it. Or the logs of the group's consumers. Without an epoch in the commit, or
without the end of that epoch, it is undetermined.

What to do: set the offset to the end of that epoch, which is where the logs
part: the finding has the numbers. Some records will be read twice only if the
lost ones are sent again.

When it is wrong: commits made by tools and in transactions carry no leader
epoch (-1); for those it stays unknown.

Reproduce: kelpie lab run epoch-diverged
"""

from typing import NamedTuple

from kelpie.doctor.beyond_end import epoch_end_of
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Severity, quotes, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, records, reset, some
from kelpie.doctor.recreated_topics import old_position
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import Committed, EventKind


class _Diverged(NamedTuple):
    row: Committed
    at: int
    """Where the logs part."""
    evidence: tuple[Evidence, ...]


def judge(case: Case) -> Judgement:
    diverged = []
    missing: dict[str, list[TopicPartition]] = {}
    for row in case.committed_rows:
        judged = _judge(case, row)
        if isinstance(judged, _Diverged):
            diverged.append(judged)
        elif judged:
            missing.setdefault(judged, []).append(row.name)
    if diverged:
        return _found(case, diverged)
    by_log = _by_log(case)
    if by_log is not None:
        return by_log
    if not case.offsets_are_known:
        return undetermined("its committed offsets")
    if missing:
        return undetermined(*(f"{what} of {some(names)}" for what, names in missing.items()))
    return ABSENT


def _judge(case: Case, row: Committed) -> _Diverged | str:
    """What is wrong with it, or what is missing; "" if it is well."""
    name = row.name
    newest = case.cluster.newest_end(name)
    if newest is not None and row.offset > newest.latest:
        return ""  # KLP304 says it.
    if old_position(case, row) is not None:
        return ""  # KLP314 says it.
    if row.leader_epoch < 0 and _knows_epochs(case, name):
        points = case.track(name).points
        if points and points[-1].offset == row.offset:
            row = row._replace(leader_epoch=points[-1].leader_epoch)  # Not every tool tells it.
    if row.leader_epoch < 0:
        return "a leader epoch in the commits"
    epoch = case.cluster.newest_epoch(name)
    if epoch < 0:
        return "the leader epoch"
    if row.leader_epoch >= epoch:
        return ""
    end = epoch_end_of(case, row)
    if end is None:
        return f"where leader epoch {row.leader_epoch} ends in the log"
    if 0 <= end.end < row.offset:
        asked = "" if end.leader_epoch == row.leader_epoch else f", and there is no epoch {row.leader_epoch}"
        text = f"{row.name}: leader epoch {end.leader_epoch} ends at {end.end}{asked}"
        return _Diverged(row, end.end, (*evidence_of(row), Evidence.of(end, text)))
    return ""


def _knows_epochs(case: Case, name: TopicPartition) -> bool:
    """Whether any commit in this partition, or what a look saw of one, carries a leader epoch."""
    for rows in (case.commits.get(name, ()), case.committed_over_time.get(name, ())):
        for row in rows:
            if row.leader_epoch >= 0:
                return True
    return False


def _found(case: Case, diverged: list[_Diverged]) -> Finding:
    diverged.sort(key=lambda divergence: divergence.at - divergence.row.offset)
    names = [divergence.row.name for divergence in diverged]
    first = diverged[0]
    skipped = sum(divergence.row.offset - divergence.at for divergence in diverged)
    cause = f"ends at {first.at}: the log was cut off there, and grew again"
    more = f"; the same holds for {counted(len(diverged) - 1, 'more partition')}" if len(diverged) > 1 else ""
    step = "Stop the group's consumers and set the offset of {} to {}, where the log was cut off."
    return RULE.finding(
        case.loss_severity(names),
        case.group,
        f"Group {case.group} will skip records that it has not read: its offset {first.row.offset} in "
        f"{first.row.name} was committed in leader epoch {first.row.leader_epoch}, which {cause}{more}.",
        why=f"Up to {records(skipped)} before its offsets took the place of records that it had read. It has "
        "not read them, and will skip them.",
        evidence=[each for divergence in diverged for each in divergence.evidence][:MOST_EVIDENCE],
        remedies=[
            reset(case, step.format(name, divergence.at), [name], "--to-offset", divergence.at)
            for name, divergence in zip(names, diverged, strict=True)
        ],
        partitions=names,
    )


def _by_log(case: Case) -> Judgement | None:
    lines = case.events_of(EventKind.TRUNCATION_DETECTED)
    if not lines:
        return None
    event = lines[-1]
    name = TopicPartition(event.topic or "?", event.partition if event.partition is not None else -1)
    commits = case.commits.get(name, ())
    if event.at is not None and any((commit.at or 0) > event.at for commit in commits):
        return None  # It has gone on since.
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} has read records of {name} that are gone: its consumer detected that the log "
        "was cut off.",
        why="The consumer goes on where the log was cut off, or where auto.offset.reset says.",
        evidence=quotes([event]),
        partitions=[name],
        since=event.at,
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("will skip records that it has not read", "will skip records that they have not read"),
    asked_for=Sign.LOG_LINES | Sign.OFFSETS_UNKNOWN | Sign.EPOCH_DIFFERS | Sign.NO_EPOCH,
)
