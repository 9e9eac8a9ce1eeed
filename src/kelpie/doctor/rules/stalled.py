"""KLP309 stalled

What it sees: consumers are in the group and hold the partition, there are
records to read, and the group does not move.

Why it matters: it looks alive: heartbeats come, commits may go on at the same
offset. But a record that fails again and again, a call that never comes back or
a paused partition keeps it where it is, and lag grows.

How it decides: the position has not changed and records have been waiting for
longer than three of the group's usual pauses between commits (never less than
2 s; 15 s where its rhythm is not known), though members are there and no
rebalance is under way. How long records have been waiting is known from log ends
at two times, or from the time of the newest record; how large the lag is does
not matter, unless it is a single record: a transaction's marker looks the same.
A member that works off a backlog reads one partition after the other, chunk by
chunk: while it moves in another one that is behind, 5 min must have passed.
Critical from one minute on, else a warning. If nothing at all is committed any
more, it is KLP310.

What to do: look at the member that holds the partition: its log, a thread dump.
If one record cannot be processed, step over it. If the group reads committed
records only, compare KLP306.

When it is wrong: producers that write records with old timestamps; a consumer
that takes longer for one batch than it usually takes between commits.

Reproduce: kelpie lab run stalled
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.position_progress import SURE_MS, PositionProgress, is_silent, progress_of, tracks_of
from kelpie.doctor.position_words import (
    HISTORY,
    MOST_EVIDENCE,
    SECOND_LOOK,
    evidence_of,
    records,
    reset,
    some,
)
from kelpie.doctor.positions import Rhythm, Track
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, duration, moment
from kelpie.observations import Member

_TURN_MS = 300_000
"""As long as a consumer may work between two polls if nobody says otherwise (max.poll.interval.ms)."""


def judge(case: Case) -> Judgement:
    there = case.members
    if there is None:
        return undetermined("who is in the group")
    if not there:
        return ABSENT
    if case.is_cut_off:
        return undetermined("whether it would go on if it had a coordinator (KLP101, KLP105)")
    if case.is_rebalancing:
        return undetermined("whether it goes on after the rebalance that is under way")
    pace = case.commit_rhythm
    judged = [(way, progress_of(way, pace)) for way in tracks_of(case)]
    if not judged:
        return undetermined("its committed offsets")
    stalled = [way for way, progress in judged if progress is PositionProgress.NONE]
    waiting = [way for way in stalled if _has_its_turn_to_come(case, way, judged)]
    stalled = [way for way in stalled if way not in waiting]
    if stalled:
        return ABSENT if is_silent(case, pace) else _found(case, stalled, pace)
    if waiting:
        names = [way.name for way in waiting]
        return undetermined(f"whether its turn comes to {some(names)}: it is busy with other partitions")
    if any(progress is PositionProgress.NO_ENDS for _, progress in judged):
        names = [way.name for way, progress in judged if progress is PositionProgress.NO_ENDS]
        return undetermined(f"where the log of {some(names)} ends")
    if any(progress is PositionProgress.UNKNOWN for _, progress in judged):
        return undetermined(SECOND_LOOK, *([HISTORY] if case.history_from is None else []))
    return ABSENT


def _has_its_turn_to_come(case: Case, way: Track, judged: list[tuple[Track, PositionProgress]]) -> bool:
    """Whether its holder works off another partition meanwhile."""
    if way.now - (way.unread_since or 0) >= _TURN_MS:
        return False
    holders = _holders(case, [way]) or case.members or ()
    known = {name for member in holders for name in member.assigned or ()}
    return any(
        progress is PositionProgress.MOVES and (not known or other.name in known)
        for other, progress in judged
    )


def _found(case: Case, stalled: list[Track], pace: Rhythm) -> Finding:
    stalled.sort(key=lambda way: way.unread_since or 0)
    names = [way.name for way in stalled]
    worst = stalled[0]
    since = worst.unread_since or 0
    total = sum(way.lag or 0 for way in stalled)
    again = [way for way in stalled if len([point for point in way.standing if point.is_commit]) > 1]
    holders = _holders(case, stalled)
    goes_on = (
        f"though it commits offset {again[0].offset} again and again" if again else "though members are there"
    )
    return RULE.finding(
        Severity.CRITICAL if case.cluster.now - since >= SURE_MS else Severity.WARNING,
        case.group,
        f"Group {case.group} has not moved in {some(names)} for {duration(case.cluster.now - since)} at "
        f"least, {goes_on}; {records(total)} wait.",
        why="Its consumers are alive to Kafka and will not be replaced. It usually commits every "
        f"{duration(pace.usual_ms)}.",
        evidence=_evidence(case, stalled),
        remedies=_remedies(case, worst, holders),
        partitions=names,
        members=[member.member_id for member in holders],
        since=since,
    )


def _holders(case: Case, stalled: list[Track]) -> list[Member]:
    names = {way.name for way in stalled}
    return [member for member in case.members or () if names & set(member.assigned or ())]


def _evidence(case: Case, stalled: list[Track]) -> list[Evidence]:
    evidence = []
    for way in stalled[: MOST_EVIDENCE // 3]:
        run = way.standing
        evidence += evidence_of(run[0], *(run[-1:] if len(run) > 1 else ()), way.end, name=way.name)
        if way.end is not None and way.end.last_written is not None:
            written = f"{way.name}: the newest record is of {moment(way.end.last_written)}"
            evidence.append(Evidence(written, way.end.source, way.end.at))
    state = case.described
    if state is not None:
        text = f"group is {state.state} with {counted(len(state.members), 'member')}"
        evidence.append(Evidence(text, state.source, state.at))
    return evidence


def _remedies(case: Case, worst: Track, holders: list[Member]) -> list[Remedy]:
    remedies = []
    if holders:
        who = holders[0]
        host = f" on {who.host.lstrip('/')}" if who.host else ""
        remedies.append(
            Remedy(f"Look at member {who.member_id}{host}, client {who.client_id}: its log, a thread dump.")
        )
    remedies.append(
        reset(
            case,
            f"If the record at {worst.offset} cannot be processed: stop the consumers and step over it.",
            [worst.name],
            f"--to-offset {worst.offset + 1}",
        )
    )
    return remedies


RULE = Rule.of(__name__, judge, presentation=Presentation(of_one="stands still", of_many="stand still"))
