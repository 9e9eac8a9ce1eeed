"""KLP312 never-commits

What it sees: members are in the group and hold partitions, records come in, and
the group has no committed offset anywhere.

Why it matters: whenever a partition changes hands, its new owner starts where
auto.offset.reset says: it skips records (latest, the default) or reads all of
them again (earliest). No tool can compute its lag.

How it decides: the coordinator answers that nothing is committed, no commit is
in the history of the offsets topic as far as it is kept, and members have been
there for longer than their session timeout (45 s where it is not known), while a
record that came in after them has been waiting for as long, or for 15 s. Clients
commit every 5 s by default.

What it needs: the right Describe on the group and on its topics. Since when members
are there is known from the history of the offsets topic (Read on it), from two
surveys, or from logs of clients; without one of these it is undetermined.

What to do: set enable.auto.commit=true, or commit after processing. If the
application keeps its offsets elsewhere, with its results, all is well: then it
must seek to them whenever partitions are assigned.

When it is wrong: applications that keep offsets elsewhere. A consumer that is
stuck with its first batch looks the same until it commits. Share groups have no
committed offsets, and are not judged.

Reproduce: kelpie lab run never-commits
"""

from collections.abc import Sequence

from kelpie.doctor.case import OFFSET_FETCH, Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import SESSION_MS, describing
from kelpie.doctor.position_words import MOST_EVIDENCE, SECOND_LOOK, evidence_of, some
from kelpie.doctor.positions import AUTO_COMMIT_MS, MISSED
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, moment
from kelpie.observations import EventKind, Member


def judge(case: Case) -> Judgement:
    members = case.members
    if members is None:
        return undetermined("who is in the group")
    held = tuple(sorted({name for member in members for name in member.assigned or ()}))
    if not held or case.is_share:
        return ABSENT
    commits = any(not row.removed for history in case.commits.values() for row in history)
    if commits or any(case.has_offset(name) for name in case.committed):
        return ABSENT
    if case.is_cut_off or not case.offsets_are_known:
        return undetermined("its committed offsets")
    joined = _joined(case, members)
    if joined is None:
        return undetermined("since when its members are there", SECOND_LOOK)
    patience = _patience(case, members)
    came = _record_came(case, held, joined)
    enough = min(patience, MISSED * AUTO_COMMIT_MS)
    if case.cluster.now - joined < patience or came is None or case.cluster.now - came < enough:
        return undetermined(SECOND_LOOK)
    return _found(case, members, held, joined, came)


def _joined(case: Case, members: Sequence[Member]) -> Instant | None:
    """Since when at least one of the present members has been there."""
    ids = {member.member_id for member in members}
    times = [
        row.at
        for row in case.member_rows
        if any(member.member_id in ids and member.assigned for member in row.members)
    ]
    joins = case.events_of(EventKind.JOINED, EventKind.ASSIGNED)
    times += [event.at for event in joins if event.member in ids]
    return min((at for at in times if at is not None), default=None)


def _patience(case: Case, members: Sequence[Member]) -> int:
    """The longest session timeout of the members."""
    rosters = [*(generation.members for generation in case.generations), members]
    timeouts = {
        member.member_id: member.session_timeout_ms
        for roster in rosters
        for member in roster
        if member.session_timeout_ms > 0
    }
    return max((timeouts.get(member.member_id, SESSION_MS) for member in members), default=SESSION_MS)


def _record_came(case: Case, held: Sequence[TopicPartition], joined: Instant) -> Instant | None:
    """The first time at which a record is known to have come in since then."""
    times = []
    for name in held:
        rows = case.cluster.ends_over_time(name)
        since = [end for end in rows if end.at is not None and end.at >= joined]
        times += [end.at for end in since if end.latest > since[0].latest and end.at is not None]
        newest = rows[-1].last_written if rows else None
        if newest is not None and newest > joined:
            times.append(newest)
    return min(times, default=None)


def _found(
    case: Case, members: Sequence[Member], held: Sequence[TopicPartition], joined: Instant, came: Instant
) -> Finding:
    ends = [rows[-1] for name in held if (rows := case.cluster.ends_over_time(name))]
    kept = sum(end.latest - max(end.earliest, 0) for end in ends)
    count = counted(len(members), "member")
    holding = f"{count} since {moment(joined)}, holding {some(held)}"
    state = case.described
    evidence = [Evidence.of(state, holding) if state else Evidence(holding)]
    evidence += [
        Evidence.of(answer, "OffsetFetch: nothing is committed")
        for answer in case.answers
        if answer.asked == OFFSET_FETCH
    ]
    evidence += evidence_of(*ends[:MOST_EVIDENCE])
    evidence.append(Evidence(f"a record came in at {moment(came)} or before"))
    back = f" of the {kept:,} records that are kept" if ends else ""
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group} never commits: {count} held {some(held)} for "
        f"{duration(case.cluster.now - joined)}, records came in, and nothing is committed.",
        why="When a partition changes hands, or all consumers restart, auto.offset.reset decides: latest, "
        f"the default, skips what came meanwhile; earliest reads all{back} again.",
        evidence=evidence,
        remedies=[
            Remedy("Set enable.auto.commit=true in its consumers, or commit after processing."),
            Remedy("If they keep offsets elsewhere: make sure that they seek to them on every assignment."),
        ],
        partitions=held,
        members=[member.member_id for member in members],
        since=joined,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("never commits", "never commit"),
    asked_for=Sign.MEMBERS_UNKNOWN | Sign.NO_OFFSETS,
)
