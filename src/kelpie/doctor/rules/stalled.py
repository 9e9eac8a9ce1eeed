"""KLP309 stalled

What it sees: the group is at work, there are records to read, and it does not move
in a partition: consumers are in the group and hold the partition, or consumers that
are in no group (Spark, Flink, assign()) go on committing.

Why it matters: it looks alive: heartbeats come, commits may go on at the same
offset. But a record that fails again and again, a call that never comes back or
a paused partition keeps it where it is, and lag grows.

How it decides: the position has not changed and records have been waiting for longer
than three usual pauses between commits of the member that holds the partition (never
less than 15 s; 2 min if fewer than three of its commits are known, since Kafka
Connect commits once a minute), though members are there and no rebalance is under
way. While brokers fail over, it is never less than a minute: a broker with a replica
of the partition or of the group's offsets partition is away, or came back less than a
minute ago; their leader was elected after the group last read, or less than a minute
ago. If the group commits in transactions, any broker counts, as each may be the
coordinator of a transaction. A minute it is, too, for consumers that are in no group,
and the session of a static member: nobody takes over while these restart. A pause in
which an earlier look found the group ill does not count as usual. How long records
have been waiting is known from log ends at two times, or from the time of the newest
record; how large the lag is does not matter, unless it is a single record: a
transaction's marker looks the same. A member that works off a backlog reads one
partition after the other, chunk by chunk: while it moves in another one, where records
have been waiting for longer than three usual pauses, 5 min must have passed. Critical
from one minute on, else a warning. If nothing at all is committed any more, it is KLP310.
Groups of the Streams protocol are judged in the same way. A share group has no
commits: there, the start of the partition must not have moved between two surveys for
as long as a record may be locked, times the number of deliveries (2.5 min by default), while records wait.
Workers of Kafka Connect commit nothing, and are not judged; the groups of its sink
connectors are.

What it needs: the rights to describe the group and to see the topics; to read
__consumer_offsets, or else a second survey. For share groups two surveys, and a
position: brokers tell one only after a member has acquired a record (the lag since
4.2). Without them it is undetermined. A share group with members that is undetermined
counts as not judged.

What to do: look at the member that holds the partition: its log, a thread dump.
If one record cannot be processed, the log names it: it may be any record of the
batch that begins at the committed offset. Look at that record before you step
over it; nothing brings it back to the group. If the group reads committed records
only, compare KLP306.

When it is wrong: producers that write records with old timestamps; a consumer
that takes longer for one batch than it usually takes between commits.

Reproduce: kelpie lab run stalled
"""

from collections import defaultdict

from kelpie.cluster import commands
from kelpie.doctor import position_words as words
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import describing, people, person_of
from kelpie.doctor.position_words import records, some
from kelpie.doctor.positions import POLL_INTERVAL_MS, SURE_MS, PositionProgress, Track, keeps_up, progress_of
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.share_positions import ShareTrack, share_patience_ms, share_tracks, stands_since
from kelpie.doctor.signs import POSITION_OPEN, Sign
from kelpie.model.words import counted, duration, moment
from kelpie.observations import Member


def judge(case: Case) -> Judgement:
    if case.members is None:
        return undetermined("who is in the group")
    if case.is_connect or not (case.members or case.commits_without_joining):
        return ABSENT
    if case.is_share:
        return _judge_share(case)
    if case.is_cut_off:
        return undetermined(words.NO_COORDINATOR)
    if case.is_rebalancing:
        return undetermined(words.REBALANCES)
    tracks: defaultdict[PositionProgress, list[Track]] = defaultdict(list)
    for track in case.tracks:
        tracks[progress_of(track, case.patience_ms(track.name))].append(track)
    if not tracks:
        return undetermined("its committed offsets")
    standing, moving = tracks[PositionProgress.NONE], tracks[PositionProgress.MOVES]
    waiting = [track for track in standing if _is_next(case, track, moving)]
    stalled = [track for track in standing if track not in waiting]
    if stalled:
        return ABSENT if case.is_silent([track.name for track in stalled]) else _found(case, stalled)
    if waiting:
        names = [track.name for track in waiting]
        return undetermined(f"whether its turn comes to {some(names)}: it is busy with other partitions")
    if tracks[PositionProgress.NO_ENDS]:
        names = [track.name for track in tracks[PositionProgress.NO_ENDS]]
        return undetermined(f"where the log of {some(names)} ends")
    if tracks[PositionProgress.UNKNOWN]:
        return undetermined(words.SECOND_LOOK, *([words.HISTORY] if case.history_from is None else []))
    return ABSENT


def _judge_share(case: Case) -> Judgement:
    tracks = share_tracks(case)
    unknown = [track.name for track in tracks if track.waiting is None]
    waiting = [track for track in tracks if track.waiting]
    patience = share_patience_ms(case)
    stalled = [track for track in waiting if _stood_ms(case, track) >= patience]
    if stalled:
        return _share_found(case, stalled, patience)
    if waiting and any(len(track.looks) == len(track.standing) for track in waiting):
        return undetermined(words.SECOND_LOOK)
    if unknown or not tracks:
        some_names = some(unknown) if unknown else "its partitions"
        return undetermined(f"where it stands in {some_names}: brokers tell no position of this share group")
    return ABSENT


def _stood_ms(case: Case, track: ShareTrack) -> int:
    since = stands_since(case, track)
    return 0 if since is None else case.cluster.now - since


def _share_found(case: Case, stalled: list[ShareTrack], patience: int) -> Finding:
    stalled.sort(key=lambda track: track.standing_since or 0)
    names = [track.name for track in stalled]
    members = case.members or ()
    total = records(sum(track.waiting or 0 for track in stalled))
    there = counted(len(members), "member is", "members are")
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Share group {case.group} has not moved in {some(names)} for "
        f"{duration(_stood_ms(case, stalled[0]))} at least, though {there} there; {total} wait.",
        why="Records wait, and no member acknowledges any. One record that fails would hold it up for no "
        f"longer than {duration(patience)}: then the broker gives the record up.",
        evidence=[each for track in stalled[:4] for each in track.evidence] + words.state_evidence(case),
        remedies=[
            Remedy(f"Look at {people([person_of(member) for member in members])}: its log, a thread dump."),
        ],
        partitions=names,
        members=[member.member_id for member in members],
        since=stalled[0].standing_since,
        check=describing(case, "--offsets"),
    )


def _is_next(case: Case, track: Track, moving: list[Track]) -> bool:
    """Whether the member that has the partition works off a backlog in another one meanwhile."""
    if track.now - (track.unread_since or 0) >= POLL_INTERVAL_MS:
        return False
    holders = _holders(case, [track]) or case.members or ()
    assigned = {name for member in holders for name in member.assigned or ()}
    return any(
        (not assigned or other.name in assigned) and not keeps_up(other, case.patience_ms(other.name))
        for other in moving
    )


def _found(case: Case, stalled: list[Track]) -> Finding:
    stalled.sort(key=lambda track: track.unread_since or 0)
    names = [track.name for track in stalled]
    worst = stalled[0]
    since = worst.unread_since or 0
    lasted = case.cluster.now - since
    total = sum(track.lag or 0 for track in stalled)
    again = [track for track in stalled if sum(point.is_commit for point in track.standing) > 1]
    holders = _holders(case, stalled)
    if again:
        goes_on = f"though it commits offset {again[0].offset} again and again"
    elif case.members:
        goes_on = "though members are there"
    else:
        goes_on = "though its consumers, which assign partitions themselves, commit in others"
    return RULE.finding(
        Severity.CRITICAL if lasted >= SURE_MS else Severity.WARNING,
        case.group,
        f"Group {case.group} has not moved in {some(names)} for {duration(lasted)} at "
        f"least, {goes_on}; {records(total)} wait.",
        why=f"{_nobody_takes_over(case)} A standstill of less than "
        f"{duration(case.patience_ms(worst.name))} would be usual here.",
        evidence=_evidence(case, stalled),
        remedies=_remedies(case, worst, holders, lasted),
        partitions=names,
        members=[member.member_id for member in holders],
        since=since,
        check=describing(case, "--offsets"),
    )


def _nobody_takes_over(case: Case) -> str:
    if case.members:
        return "Its members send heartbeats, so Kafka gives their partitions to no other member."
    return "Its consumers are in no group: Kafka does not know them, and nobody takes over."


def _holders(case: Case, stalled: list[Track]) -> list[Member]:
    names = {track.name for track in stalled}
    return [member for member in case.members or () if names & set(member.assigned or ())]


def _evidence(case: Case, stalled: list[Track]) -> list[Evidence]:
    evidence = []
    for track in stalled[: words.MOST_EVIDENCE // 3]:
        run, end = track.standing, track.end
        evidence += words.evidence_of(run[0], *run[1:][-1:], end, name=track.name)
        if end is not None and end.last_written is not None:
            written = f"{track.name}: the newest record is of {moment(end.last_written)}"
            evidence.append(Evidence.of(end, written))
    return evidence + words.state_evidence(case)


def _remedies(case: Case, worst: Track, holders: list[Member], lasted: int) -> list[Remedy]:
    remedies = []
    if not case.members:
        remedies.append(
            Remedy("Look at the job that reads with this group id: its log, its last checkpoint.")
        )
    for member in holders[:1]:
        host = f" on {member.host.lstrip('/')}" if member.host else ""
        who = f"member {member.member_id}{host}, client {member.client_id}"
        remedies.append(Remedy(f"Look at {who}: its log, a thread dump."))
    if lasted < POLL_INTERVAL_MS:
        return remedies  # It may come through yet. Whoever steps over a record now loses it for nothing.
    name = worst.name
    show = commands.peek(case.cluster, name, worst.offset)
    return [
        *remedies,
        Remedy(
            f"See the record at {worst.offset}. If one cannot be processed, it may also be a later one of "
            "the same batch: the member's log names it. Step over no record that you have not seen fail.",
            show,
        ),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation("stands still", "stand still", stops_group=True),
    of_share_groups=True,
    asked_for=POSITION_OPEN
    | Sign.MEMBERS_UNKNOWN
    | Sign.HOME_IN_DOUBT
    | Sign.HOME_LEADERLESS
    | Sign.REBALANCING,
)
