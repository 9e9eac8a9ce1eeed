"""KLP310 stopped

What it sees: the group used to commit, has not for longer than usual, and
records wait for it. It has no members, or its members are silent.

Why it matters: its records are not read. Offsets of a group that stays empty expire after
offsets.retention.minutes (7 days by default), and records after the retention of
their topic, whichever comes first.

How it decides: its last commit is older than three usual pauses between commits of
the member that holds the partition (never less than 15 s; 2 min if that member has
made fewer than three, a minute while brokers of the partition or of the group's
coordinator fail over, as in KLP309), and at least two records wait. With members in
the group, they must have been waiting for as long, too. A single commit proves no
rhythm: then members that were there must show that it ever ran. Without the history
of commits, two surveys show the same if the group has no members. Its severity
depends on how long records have been waiting: critical from a minute on if members
are there, else a warning; lower before that, and where it is not known. Of members
that have made fewer than three commits it is not known how often they commit: then
it is a notice until 5 min after the last commit (max.poll.interval.ms by default:
within that time a member commits that does so after each poll), a warning until
15 min after it, and critical from then on. Once a look
has found it as a warning, it stays one until the group commits again, whether its
members leave meanwhile or leaders are elected. If the group
has paused for as long more than once before, and no look found it ill then, a job
that runs now and then looks the same: then it is a notice, or a warning if silent
members are there. A group that commits without members (Spark, Flink, assign()) is
judged by its commits alone. A share group commits nothing: without members, two
surveys must show the same start, and records that wait. Workers of Kafka Connect
commit nothing, and are not judged. Where the coordinator's clock cannot be compared
with the clock here (KLP316), and nothing newer than the last commit was seen there,
it waits for a second look.

What it needs: the rights to describe the group, to see the topics and to read
__consumer_offsets. Without the last, two surveys 15 s apart, for groups without
members. Where a broker lists a group and does not describe it (share and Streams
groups of early releases), its members are not known. All else is undetermined.

What to do: start its consumers; or delete the group if it is not needed any
more. If members are there, look into their logs.

When it is wrong: a job that runs once a day and of which no earlier pause is
known. A group that was shut down on purpose. Producers that write records with
old timestamps make records look as if they had waited for long.

Reproduce: kelpie lab run stopped
"""

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import describing
from kelpie.doctor.position_words import CLOCK, HISTORY, SECOND_LOOK, records, some
from kelpie.doctor.positions import (
    AUTO_COMMIT_MS,
    MISSED,
    POLL_INTERVAL_MS,
    SURE_MS,
    PositionProgress,
    Track,
    lag_ms,
    progress_of,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.share_positions import share_patience_ms, share_tracks, stands_since
from kelpie.doctor.signs import POSITION_OPEN
from kelpie.model.words import counted, duration


def judge(case: Case) -> Judgement:
    if case.is_connect:
        return ABSENT
    if case.is_share:
        return _judge_share(case)
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
    if case.silence_ms is None:
        return _by_surveys(case, behind)
    if not case.is_silent([track.name for track in behind]):
        return ABSENT
    proven = case.proven_silence_ms or 0
    if proven < min(case.patience_ms(track.name) for track in behind):
        return undetermined(CLOCK)
    if case.members:
        waiting = [
            track
            for track in behind
            if progress_of(track, case.patience_ms(track.name)) is PositionProgress.NONE
        ]
        return _found(case, waiting) if waiting else undetermined(SECOND_LOOK)
    if not case.commit_rhythm.is_known and not any(case.rosters):
        return undetermined("whether it ever consumed: fewer than three commits are known, and no members")
    return _found(case, behind)


def _judge_share(case: Case) -> Judgement:
    """With members it is KLP309's case."""
    if case.members is None:
        return undetermined("who is in the group")
    waiting = [track for track in share_tracks(case) if track.waiting]
    if case.members or not waiting:
        return ABSENT
    patience = share_patience_ms(case)
    known = (stands_since(case, track) for track in waiting)
    since = [at for at in known if at is not None]
    if not since or case.cluster.now - min(since) < patience or len(waiting[0].standing) < 2:
        return undetermined(SECOND_LOOK)
    names = [track.name for track in waiting]
    total = sum(track.waiting or 0 for track in waiting)
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Share group {case.group} has stopped: it has no members; {records(total)} wait in {some(names)}, "
        f"and none was acknowledged for {duration(case.cluster.now - min(since))} at least.",
        why="Nobody reads these records, and they are deleted when the retention of their topic is over.",
        evidence=[each for track in waiting[:4] for each in track.evidence] + words.state_evidence(case),
        remedies=[
            Remedy("Start its consumers."),
            Remedy(
                "If nobody needs it any more, delete it.",
                commands.kafka("kafka-share-groups", case.cluster, "--group", case.group, "--delete"),
            ),
        ],
        partitions=names,
        since=min(since),
        check=describing(case, "--offsets"),
    )


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
    elif case.commits_without_joining:
        who = "its consumers commit without being in the group, so Kafka does not know whether they are alive"
    else:
        who = "it has no members" if members is not None else "its members are not known"
    pauses = _usual_pauses(case)
    before = f" It has paused for as long {pauses} times before: that may be how it works." if pauses else ""
    severity = _severity(case, behind, is_usual=bool(pauses))
    if severity < Severity.CRITICAL and not pauses and _may_commit_rarely(case, behind):
        before = " How often it commits is not known yet: it may commit rarely."
    return RULE.finding(
        severity,
        case.group,
        f"Group {case.group} has stopped: {silence}; {who}; {records(total)} wait in {some(names)}.{before}",
        why="Nobody reads these records. While the group is empty, its offsets expire, and the records, too."
        if not members
        else "Its members keep their partitions as long as they send heartbeats; nobody else takes over.",
        evidence=_evidence(case, behind),
        remedies=_remedies(case),
        partitions=names,
        members=[member.member_id for member in members or ()],
        since=since,
        check=describing(case, "--offsets"),
    )


def _usual_pauses(case: Case) -> int:
    """How often it has paused for as long before. Once proves nothing: that is 0."""
    pauses = case.commit_rhythm.pauses_of(case.silence_ms) if case.silence_ms is not None else 0
    return pauses if pauses > 1 else 0


def _severity(case: Case, behind: list[Track], *, is_usual: bool) -> Severity:
    """By how long records have been waiting, and not by how long there were none."""
    severity = _by_waiting(case, behind, is_usual=is_usual)
    # An earlier look has found it as bad. That its members went meanwhile is no improvement.
    return max(severity, Severity.WARNING) if case.is_still_stopped else severity


def _by_waiting(case: Case, behind: list[Track], *, is_usual: bool) -> Severity:
    worst = Severity.CRITICAL if case.members else Severity.WARNING
    if is_usual:
        return Severity(worst - 1)
    waits = [lag_ms(track) or (0, True) for track in behind]
    waited, may_be_longer = max(ms for ms, _ in waits), any(is_older for _, is_older in waits)
    if _may_commit_rarely(case, behind):
        return _before_rhythm(case.silence_ms or 0, waited, may_be_longer=may_be_longer)
    if waited >= SURE_MS:
        return worst
    is_long_silent = case.silence_ms is None or case.silence_ms >= SURE_MS
    return Severity.WARNING if may_be_longer and is_long_silent else Severity(worst - 1)


def _may_commit_rarely(case: Case, behind: list[Track]) -> bool:
    """Whether members are there of which it is not known how often they commit."""
    return bool(case.members) and not any(case.has_rhythm(track.name) for track in behind)


def _before_rhythm(silence_ms: int, waited_ms: int, *, may_be_longer: bool) -> Severity:
    """A backlog may be older than the member: it counts from the last commit on at most."""
    if min(silence_ms, waited_ms) >= MISSED * POLL_INTERVAL_MS:
        return Severity.CRITICAL
    lasted = silence_ms if may_be_longer else min(silence_ms, waited_ms)
    return Severity.WARNING if lasted >= POLL_INTERVAL_MS else Severity.NOTICE


def _evidence(case: Case, behind: list[Track]) -> list[Evidence]:
    evidence = []
    for track in behind[: words.MOST_EVIDENCE // 3]:
        evidence += words.evidence_of(*track.points[-1:], track.end, name=track.name)
    return evidence + words.state_evidence(case)


def _remedies(case: Case) -> list[Remedy]:
    if case.members:
        hosts = some(sorted({member.host.lstrip("/") for member in case.members if member.host}))
        return [Remedy(f"Look into the logs of its members on {hosts or 'their hosts'}, then restart them.")]
    if case.commits_without_joining:
        return [Remedy("Look at the job that reads with this group id (Spark, Flink, or assign()): its log.")]
    delete = commands.kafka("kafka-consumer-groups", case.cluster, "--group", case.group, "--delete")
    return [
        Remedy("Start its consumers."),
        Remedy("If nobody needs it any more, delete it, offsets and all.", delete),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has stopped", "have stopped", stops_group=True),
    of_share_groups=True,
    asked_for=POSITION_OPEN,
)
