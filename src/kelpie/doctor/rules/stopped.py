"""KLP310 stopped

What it sees: the group used to commit, has not for longer than usual, and
records wait for it. It has no members, or its members are silent.

Why it matters: its records are not read. Offsets of a group that stays empty expire after
offsets.retention.minutes (7 days by default), and records after the retention of
their topic, whichever comes first.

How it decides: its last commit is older than three of its usual pauses between
commits (never less than 2 s; 15 s where fewer than three commits are known),
such a pause has not come up more than once before, and at least two records
wait. With members in the group, they must have been waiting for as long,
too. A single commit proves no rhythm: then members that were there must show
that it ever ran. Without the history of commits, two surveys show the same if
the group has no members. Within the first minute its severity is lower: a
restart looks the same.

What to do: start its consumers; or delete the group if it is not needed any
more. If members are there, look into their logs.

When it is wrong: a job that runs once a day and of which no earlier pause is
known. A group that was shut down on purpose.

Reproduce: kelpie lab run stopped
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_progress import (
    SURE_MS,
    PositionProgress,
    is_silent,
    progress_of,
    silence_ms,
    tracks_of,
)
from kelpie.doctor.position_words import (
    HISTORY,
    MOST_EVIDENCE,
    SECOND_LOOK,
    evidence_of,
    records,
    some,
    tool,
)
from kelpie.doctor.positions import AUTO_COMMIT_MS, MISSED, Rhythm, Track
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.quoting import quoted
from kelpie.model.words import counted, duration
from kelpie.observations import Member


def judge(case: Case) -> Judgement:
    tracks = tracks_of(case)
    if not tracks:
        return undetermined("its committed offsets")
    unknown = [way.name for way in tracks if way.is_behind is None]
    behind = [way for way in tracks if way.is_behind]
    if not behind:
        return undetermined(f"where the log of {some(unknown)} ends") if unknown else ABSENT
    if case.is_cut_off:
        return undetermined("whether it would go on if it had a coordinator (KLP101, KLP105)")
    if case.is_rebalancing:
        return undetermined("whether it goes on after the rebalance that is under way")
    pace = case.commit_rhythm
    silence = silence_ms(case, pace)
    there = case.members
    if silence is None:
        return _by_looks(case, behind, there)
    if not is_silent(case, pace):
        return ABSENT
    if there:
        waiting = [way for way in behind if progress_of(way, pace) is PositionProgress.NONE]
        return _found(case, waiting, pace, there) if waiting else undetermined(SECOND_LOOK)
    if not pace.is_known and not any(generation.members for generation in case.generations):
        return undetermined("whether it ever consumed: fewer than three commits are known, and no members")
    return _found(case, behind, pace, there)


def _by_looks(case: Case, behind: list[Track], there: tuple[Member, ...] | None) -> Judgement:
    """Nobody has read the history: surveys at two times, with nobody there, show the same."""
    if there:
        return undetermined(HISTORY)
    stood = min(way.seen_to_stand_ms for way in behind)
    if there is None or stood < MISSED * AUTO_COMMIT_MS or not _grew(behind):
        return undetermined(HISTORY, SECOND_LOOK)
    return _found(case, behind, case.commit_rhythm, there)


def _grew(behind: list[Track]) -> bool:
    return any(way.ends[-1].latest > way.ends[0].latest for way in behind)


def _found(case: Case, behind: list[Track], pace: Rhythm, there: tuple[Member, ...] | None) -> Finding:
    behind = sorted(behind, key=lambda way: -(way.lag or 0))
    names = [way.name for way in behind]
    total = sum(way.lag or 0 for way in behind)
    now = case.cluster.now
    since = pace.last
    if since is not None:
        usual = f", and before that it committed every {duration(pace.usual_ms)}" if pace.is_known else ""
        told = f"its last commit was {duration(now - since)} ago{usual}"
    else:
        told = f"nothing was committed for {duration(min(way.seen_to_stand_ms for way in behind))} at least"
    if there:
        who = f"{counted(len(there), 'member')} {'is' if len(there) == 1 else 'are'} there, and silent"
    else:
        who = "nobody is in it" if there is not None else "who is in it is not known"
    is_sure = since is None or now - since >= SURE_MS
    return RULE.finding(
        _severity(bool(there), is_sure),
        case.group,
        f"Group {case.group} has stopped: {told}; {who}; {records(total)} wait in {some(names)}.",
        why="Nobody reads these records. While the group is empty, its offsets expire, and the records, too."
        if not there
        else "Its members keep their partitions as long as they send heartbeats; nobody else takes over.",
        evidence=_evidence(case, behind),
        remedies=_remedies(case, there),
        partitions=names,
        members=[member.member_id for member in there or ()],
        since=since,
    )


def _severity(someone_is_there: bool, is_sure: bool) -> Severity:
    if someone_is_there:
        return Severity.CRITICAL if is_sure else Severity.WARNING
    return Severity.WARNING if is_sure else Severity.NOTICE


def _evidence(case: Case, behind: list[Track]) -> list[Evidence]:
    evidence = []
    for way in behind[: MOST_EVIDENCE // 3]:
        evidence += evidence_of(*way.points[-1:], way.end, name=way.name)
    state = case.described
    if state is not None:
        text = f"group is {state.state} with {counted(len(state.members), 'member')}"
        evidence.append(Evidence(text, state.source, state.at))
    return evidence


def _remedies(case: Case, there: tuple[Member, ...] | None) -> list[Remedy]:
    if there:
        hosts = sorted({member.host.lstrip("/") for member in there if member.host})
        return [
            Remedy(f"Look into the logs of its members on {some(hosts) or 'their hosts'}, then restart them.")
        ]
    delete = f"{tool(case.cluster, 'kafka-consumer-groups.sh')} --group {quoted(case.group)} --delete"
    return [
        Remedy("Start its consumers."),
        Remedy("If nobody needs it any more, delete it, offsets and all.", delete),
    ]


RULE = Rule.of(__name__, judge, presentation=Presentation(of_one="has stopped", of_many="have stopped"))
