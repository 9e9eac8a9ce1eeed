"""KLP304 beyond-log-end

What it sees: a committed offset that lies after the end of the log.

Why it matters: a consumer that starts there is refused (OFFSET_OUT_OF_RANGE) and goes
where auto.offset.reset says. Worse, if no consumer starts: once the log has
grown past the offset, the group goes on there, and what was written in between is
never read.

How it decides: the committed offset is larger than the end of the log (the high
watermark), which was asked for after it. Then it looks for the cause.
- The log was cut off, by an unclean election or a lost disk: the leader says that the
  leader epoch of the commit ends before the offset, or an earlier look saw the log
  reach it.
- A wrong offset was committed, by a tool or by an application: the commit carries no
  leader epoch, the one before it does and lies in the log, and no leader was
  elected since.
- MirrorMaker writes to this cluster (its topics of checkpoints or heartbeats are
  there), and the group has no members: offsets that it translates may be ahead of
  the records that it copies. That is ordinary for a while: a notice, and a
  warning after ten minutes.
- Otherwise the cause is unknown, and the finding says so.
A topic that was created again is KLP314.

What it needs: Describe on the group and the topic. Without the committed offsets, or
without the end of a log that was asked after them, it is undetermined. For the
cause: leader epochs in commits (Kafka 2.1 and later), read access to
__consumer_offsets, or an earlier look; without them the finding says that the cause
is unknown.

What to do: set the offset yourself before the log grows past it. After a truncation,
to the end of the epoch in which the logs part; where that is unknown, to the
beginning, and never to the end: records that were written in the place of the lost ones
would be skipped. After a wrong commit, to the commit before it. Find out who
elected an unclean leader.

When it is wrong: an offset was set by hand to a place that does not exist yet.
While a new leader does not yet know its high watermark, brokers say so (error
78), and the rule waits.

Reproduce: kelpie lab run beyond-log-end
"""

from collections import defaultdict

from kelpie.cluster import commands
from kelpie.doctor.beyond_end import Beyond, Cause, explained
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, records, reset, some
from kelpie.doctor.recreated_topics import old_position
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import duration
from kelpie.observations import Committed, LogEnds

_COPY_LIMIT_MS = 600_000
"""MirrorMaker writes offsets once a minute by default; ten times that is no longer ordinary."""
_CAUSES = {
    Cause.CUT_OFF: "the log has been cut off",
    Cause.NEVER_THERE: "the log never held it: a wrong offset was committed",
    Cause.AHEAD_OF_COPY: "MirrorMaker writes offsets ahead of the records that it copies",
    Cause.UNKNOWN: "the log was cut off, or a wrong offset was committed; which of the two is not known",
}


def judge(case: Case) -> Judgement:
    beyond: list[Beyond] = []
    unknown = []
    for row in case.committed_rows:
        ends = case.cluster.ends_over_time(row.name)
        if not ends:
            unknown.append(row.name)
        elif row.offset > (end := ends[-1]).latest and old_position(case, row) is None:
            if _asked_before(end, row):
                unknown.append(row.name)
            else:
                beyond.append(explained(case, row, end))
    if beyond:
        return _found(case, beyond)
    if not case.offsets_are_known:
        return undetermined("its committed offsets")
    return undetermined(f"where the log of {some(unknown)} ends") if unknown else ABSENT


def _asked_before(end: LogEnds, row: Committed) -> bool:
    """The log may have grown since, and the group with it."""
    return end.at is not None and row.at is not None and end.at < row.at


def _found(case: Case, beyond: list[Beyond]) -> Finding:
    beyond.sort(key=lambda each: (list(_CAUSES).index(each.cause), -each.missing))
    names = [each.row.name for each in beyond]
    row, end, cause = beyond[0].row, beyond[0].end, beyond[0].cause
    if len(beyond) == 1:
        where = f"its offset in {row.name} is {row.offset}, and the log ends at {end.latest}"
    else:
        short = records(row.offset - end.latest)
        where = f"in {some(names)} the log ends before its offsets, in {row.name} {short} before"
    since = min((each.since for each in beyond if each.since is not None), default=None)
    lasts = f" It has been so for {duration(case.cluster.now - since)}." if since is not None else ""
    return RULE.finding(
        _severity(case, beyond, since),
        case.group,
        f"Group {case.group} stands beyond the end of the log: {where}; {_CAUSES[cause]}.{lasts}",
        why="A consumer that starts there is refused (OFFSET_OUT_OF_RANGE) and goes where auto.offset.reset "
        "says. If no consumer starts before the log has grown past the offset, what is written until then is "
        "never read.",
        evidence=[each for found in beyond for each in found.evidence][:MOST_EVIDENCE],
        remedies=_remedies(case, beyond),
        partitions=names,
        since=since,
        check=commands.kafka("kafka-consumer-groups", case.cluster, "--describe", "--group", case.group),
    )


def _severity(case: Case, beyond: list[Beyond], since: int | None) -> Severity:
    if any(each.cause is not Cause.AHEAD_OF_COPY for each in beyond):
        return case.loss_severity([each.row.name for each in beyond])
    lasted = case.cluster.now - since if since is not None else 0
    return Severity.WARNING if lasted >= _COPY_LIMIT_MS else Severity.NOTICE


def _remedies(case: Case, beyond: list[Beyond]) -> list[Remedy]:
    by_target: defaultdict[tuple[Cause, int | None], list[Committed]] = defaultdict(list)
    for each in beyond:
        by_target[each.cause, each.goes_to].append(each.row)
    remedies = []
    for (cause, to), rows in list(by_target.items())[:MOST_EVIDENCE]:
        names = [row.name for row in rows]
        if cause is Cause.AHEAD_OF_COPY:
            remedies.append(
                Remedy(
                    f"Start no consumer of the group here before the log of {some(names)} has reached its "
                    "offset. If it does not come nearer, look at MirrorMaker's source connector."
                )
            )
        elif to is None:
            text = (
                f"Stop the group's consumers and read {some(names)} from the beginning. From which "
                "offset on its records are others is not known: any later offset could skip records."
            )
            remedies.append(reset(case, text, names, "--to-earliest"))
        else:
            what = (
                "where the log was cut off" if cause is Cause.CUT_OFF else "the commit before the wrong one"
            )
            text = f"Stop the group's consumers and set {some(names)} to {to}, {what}."
            remedies.append(reset(case, text, names, "--to-offset", to))
    return remedies


RULE = Rule.of(
    __name__,
    judge,
    Presentation("stands beyond the end of a log", "stand beyond the end of a log"),
    asked_for=Sign.OFFSETS_UNKNOWN | Sign.BEYOND_END | Sign.NO_ENDS,
)
