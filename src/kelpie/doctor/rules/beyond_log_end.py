"""KLP304 beyond-log-end

What it sees: a committed offset that lies behind the last record of the log.

Why it matters: records that the group has read are gone: an unclean election
cut the log off, a disk was lost, or the topic was deleted and created anew. A
consumer that starts there is refused (OFFSET_OUT_OF_RANGE) and goes where
auto.offset.reset says. Worse, if no consumer starts: once the log has grown past the
offset, the group goes on there, and what was written in between is never read.

How it decides: the committed offset is larger than the end of the log (the high
watermark), which was asked for after it. A leader epoch of the commit that is
higher than the partition's says that the topic was created anew: epochs began
again at 0; otherwise the log was truncated.

What to do: set the offset yourself before the log grows past it: to the end of
the log after a truncation, to the beginning if the topic is a new one. Find out
who elected an unclean leader, or deleted the topic.

When it is wrong: an offset was set by hand to a place that does not exist yet.
While a new leader does not yet know its high watermark, brokers say so (error
78), and the rule waits.

Reproduce: kelpie lab run beyond-log-end
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, undetermined
from kelpie.doctor.position_words import MOST_EVIDENCE, evidence_of, records, reset, some
from kelpie.doctor.positions import ends_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.observations import Committed, LogEnds


def judge(case: Case) -> Judgement:
    beyond: list[tuple[Committed, LogEnds]] = []
    unknown = []
    for row in case.committed_rows:
        ends = ends_of(case.cluster, row.name)
        if not ends:
            unknown.append(row.name)
        elif row.offset > (end := ends[-1]).latest:
            if _asked_before(end, row):
                unknown.append(row.name)
            else:
                beyond.append((row, end))
    if beyond:
        return _found(case, beyond)
    if not case.offsets_are_known:
        return undetermined("its committed offsets")
    return undetermined(f"where the log of {some(unknown)} ends") if unknown else ABSENT


def _asked_before(end: LogEnds, row: Committed) -> bool:
    """The log may have grown since, and the group with it."""
    return end.at is not None and row.at is not None and end.at < row.at


def _found(case: Case, beyond: list[tuple[Committed, LogEnds]]) -> Finding:
    beyond.sort(key=lambda pair: pair[1].latest - pair[0].offset)
    names = [row.name for row, _ in beyond]
    wanted = [name for name in names if name not in case.reads.abandoned]
    row, end = beyond[0]
    if len(beyond) == 1:
        where = f"its offset in {row.name} is {row.offset}, and the log ends at {end.latest}"
    else:
        short = records(row.offset - end.latest)
        where = f"in {some(names)} the log ends before its offsets, in {row.name} {short} before"
    if is_new := any(_is_new_topic(case, row) for row, _ in beyond):
        cause, to = "the topic was created anew", "--to-earliest"
        advice = "Stop the group's consumers and read the new topic from its beginning."
    else:
        cause, to = "the log has been cut off", "--to-latest"
        advice = "Stop the group's consumers and set the offsets to where the log ends now."
    return RULE.finding(
        case.loss_severity(names),
        case.group,
        f"Group {case.group} stands beyond the end of the log: {where}; {cause}.",
        why="A consumer that starts there is refused (OFFSET_OUT_OF_RANGE) and goes where auto.offset.reset "
        "says. If nobody starts before the log has grown past the offset, what is written until then is "
        "never read.",
        evidence=[each for pair in beyond[: MOST_EVIDENCE // 2] for each in evidence_of(*pair)],
        remedies=[reset(case, advice, wanted or names, to)],
        cause=row.topic if is_new else "",
        partitions=names,
    )


def _is_new_topic(case: Case, row: Committed) -> bool:
    view = case.cluster.view(row.name)
    return view is not None and 0 <= view.leader_epoch < row.leader_epoch


RULE = Rule.of(
    __name__, judge, Presentation("stands beyond the end of a log", "stand beyond the end of a log")
)
