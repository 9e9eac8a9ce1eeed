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

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_words import HISTORY, SECOND_LOOK, records, some
from kelpie.doctor.positions import AUTO_COMMIT_MS, MISSED, SURE_MS, PositionProgress, Track, progress_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, duration


def judge(case: Case) -> Judgement:
    tracks = case.tracks
    if not tracks:
        return undetermined("its committed offsets")
    unknown = [track.name for track in tracks if track.is_behind is None]
    behind = [track for track in tracks if track.is_behind]
    if not behind:
        return undetermined(f"where the log of {some(unknown)} ends") if unknown else ABSENT
    if case.is_cut_off:
        return undetermined(words.NO_COORDINATOR)
    if case.is_rebalancing:
        return undetermined(words.REBALANCES)
    rhythm = case.commit_rhythm
    if case.silence_ms is None:
        return _by_surveys(case, behind)
    if not case.is_silent:
        return ABSENT
    if case.members:
        waiting = [track for track in behind if progress_of(track, rhythm) is PositionProgress.NONE]
        return _found(case, waiting) if waiting else undetermined(SECOND_LOOK)
    if not rhythm.is_known and not any(generation.members for generation in case.generations):
        return undetermined("whether it ever consumed: fewer than three commits are known, and no members")
    return _found(case, behind)


def _by_surveys(case: Case, behind: list[Track]) -> Judgement:
    """The history was not read: surveys at two times, of a group without members, show the same."""
    if case.members:
        return undetermined(HISTORY)
    stood = min(track.seen_to_stand_ms for track in behind)
    grew = any(track.ends[-1].latest > track.ends[0].latest for track in behind)
    if case.members is None or stood < MISSED * AUTO_COMMIT_MS or not grew:
        return undetermined(HISTORY, SECOND_LOOK)
    return _found(case, behind)


def _found(case: Case, behind: list[Track]) -> Finding:
    behind = sorted(behind, key=lambda track: -(track.lag or 0))
    names = [track.name for track in behind]
    total = sum(track.lag or 0 for track in behind)
    members, rhythm = case.members, case.commit_rhythm
    since = rhythm.last
    if since is not None:
        usual = f", and before that it committed every {duration(rhythm.usual_ms)}" if rhythm.is_known else ""
        silence = f"its last commit was {duration(case.cluster.now - since)} ago{usual}"
    else:
        stood = min(track.seen_to_stand_ms for track in behind)
        silence = f"nothing was committed for {duration(stood)} at least"
    if members:
        who = f"{counted(len(members), 'member is', 'members are')} there, and silent"
    else:
        who = "nobody is in it" if members is not None else "who is in it is not known"
    severity = Severity.CRITICAL if members else Severity.WARNING
    if since is not None and case.cluster.now - since < SURE_MS:
        severity = Severity(severity - 1)
    return RULE.finding(
        severity,
        case.group,
        f"Group {case.group} has stopped: {silence}; {who}; {records(total)} wait in {some(names)}.",
        why="Nobody reads these records. While the group is empty, its offsets expire, and the records, too."
        if not members
        else "Its members keep their partitions as long as they send heartbeats; nobody else takes over.",
        evidence=_evidence(case, behind),
        remedies=_remedies(case),
        partitions=names,
        members=[member.member_id for member in members or ()],
        since=since,
    )


def _evidence(case: Case, behind: list[Track]) -> list[Evidence]:
    evidence = []
    for track in behind[: words.MOST_EVIDENCE // 3]:
        evidence += words.evidence_of(*track.points[-1:], track.end, name=track.name)
    return evidence + words.state_evidence(case)


def _remedies(case: Case) -> list[Remedy]:
    if case.members:
        hosts = some(sorted({member.host.lstrip("/") for member in case.members if member.host}))
        return [Remedy(f"Look into the logs of its members on {hosts or 'their hosts'}, then restart them.")]
    delete = commands.kafka("kafka-consumer-groups", case.cluster, "--group", case.group, "--delete")
    return [
        Remedy("Start its consumers."),
        Remedy("If nobody needs it any more, delete it, offsets and all.", delete),
    ]


RULE = Rule.of(__name__, judge, Presentation("has stopped", "have stopped"))
