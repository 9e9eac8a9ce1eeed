"""KLP202 rebalance-stuck

What it sees: the group is in a rebalance that does not end.

Why it matters: in a group of the classic protocol, members that have rejoined wait,
and read nothing. The coordinator waits for the missing ones as long as the longest
max.poll.interval.ms in the group (5 minutes by default, often much longer), then
throws them out. If it waits for the leader's assignment, all members wait for one.
In a group that its coordinator assigns (KIP-848, the Streams protocol), only the
partitions that change hands stand still: their new member waits until the old one
has given them up.

How it decides: surveys of the group, or the coordinator's log, show that one and
the same rebalance lasts longer than the longest session in the group: by then,
dead members have been removed, and members that poll have rejoined. While brokers
fail over (as in KLP309), it must last a minute: a member may be waiting for a broker
before it polls again. It is the same
one if the group's epoch has not changed, or, in a classic group, if no generation
came in between. New members that keep coming in (a first start, with
group.initial.rebalance.delay.ms) are not stuck until the rebalance timeout has
passed as well. Members that were in the last generation and have not said that they
rejoin are named; with KIP-848 and in Streams groups, those that still hold what is
meant for others.

What it needs: two surveys at least a session (45 s by default) apart, and for
classic groups, whose description has no generation, the right to read
__consumer_offsets; or the log of the group's coordinator. Without them it is
undetermined. Which members have rejoined is known from logs only.

What to do: look at those members: something in their poll loop takes long, or
hangs. A thread dump shows it. Restarting the one that hangs ends the rebalance.

When it is wrong: two rebalances right after each other that look like one,
because the history in between was not read.

Reproduce: kelpie lab run rebalance-stuck
"""

from typing import NamedTuple

from kelpie.cluster import commands
from kelpie.cluster.failovers import FAILOVER_MS
from kelpie.doctor.case import REBALANCING, Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    SESSION_MS,
    describing,
    people,
    person_in,
    person_of,
    state_text,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration, first_of
from kelpie.observations import Event, EventKind, GroupState, Member
from kelpie.observations.groups import CLASSIC

_REBALANCE_MS = 300_000
"""max.poll.interval.ms of the Java client, unless set otherwise."""
_INITIAL_DELAY_MS = 3_000
"""group.initial.rebalance.delay.ms, unless set otherwise."""
_END = (
    EventKind.GENERATION_JOINED,
    EventKind.ASSIGNMENT_RECEIVED,
    EventKind.GROUP_EMPTY,
    EventKind.GROUP_REMOVED,
)


class Wait(NamedTuple):
    state: str
    since: Instant
    until: Instant
    evidence: list[Evidence]
    growing: bool
    """New members came while it lasted."""

    @property
    def ms(self) -> int:
        return self.until - self.since


def judge(case: Case) -> Judgement:
    if case.is_cut_off:
        return ABSENT  # Without a coordinator nothing rebalances; KLP101 tells.
    state = case.described
    by_log = _by_log(case)
    if state is None:
        if by_log is None:
            return undetermined("the state of the group", BROKER_LOGS)
        return _judged(case, by_log, ())
    if state.state not in REBALANCING:
        return ABSENT
    waits = [wait for wait in (_by_states(case), by_log) if wait is not None]
    if not waits:
        return undetermined("since when it rebalances: a second look, or the log of its coordinator")
    judgement = _judged(case, max(waits, key=lambda wait: wait.ms), state.members)
    if judgement is not ABSENT and by_log is None and state.epoch < 0 and not _knows_generations(case):
        return undetermined("whether it is one and the same rebalance: read access to __consumer_offsets")
    return judgement


def _judged(case: Case, wait: Wait, members: tuple[Member, ...]) -> Judgement:
    known = timeouts(case)
    session, rebalance = known.session_ms or SESSION_MS, known.rebalance_ms or _REBALANCE_MS
    delay = case.cluster.number("group.initial.rebalance.delay.ms")
    patience = max(session, 2 * (_INITIAL_DELAY_MS if delay is None else delay))
    if any(map(case.is_failing_over, case.reads.partitions)):
        patience = max(patience, FAILOVER_MS)
    if wait.ms <= patience or (wait.growing and wait.ms <= rebalance):
        return ABSENT
    if case.described is not None and case.described.kind != CLASSIC:
        return _unreconciled(case, case.described, wait, rebalance)
    return _found(case, wait, members, rebalance)


def _knows_generations(case: Case) -> bool:
    """Whether a generation in between would have been seen."""
    return bool(case.generations) or case.history_from is not None or case.has_broker_log


def _by_states(case: Case) -> Wait | None:
    """The last descriptions, one after the other, that show the same rebalance."""
    states: list[GroupState] = []
    for state in reversed(case.states):
        if state.error is not ErrorCode.NONE or state.at is None or state.state not in REBALANCING:
            break
        if states and (_moved_on(case, state.at, states[-1].at) or _is_another(state, states[-1])):
            break
        states.append(state)
    if len(states) < 2:
        return None
    first, last = states[-1], states[0]
    assert first.at is not None
    assert last.at is not None
    grown = {member.member_id for member in last.members} - {member.member_id for member in first.members}
    evidence = [Evidence.of(state, state_text(state)) for state in (first, last)]
    return Wait(last.state, first.at, last.at, evidence, bool(grown))


def _is_another(earlier: GroupState, later: GroupState) -> bool:
    """Whether the two show two rebalances: another epoch, or members join again after all had joined."""
    if earlier.epoch >= 0 and later.epoch >= 0:
        return earlier.epoch != later.epoch
    return later.state == "PreparingRebalance" and earlier.state in ("CompletingRebalance", "AwaitingSync")


def _moved_on(case: Case, since: Instant, until: Instant | None) -> bool:
    """Whether a generation began in between."""
    ends = [row.at for row in case.generations if row.generation > 0]
    ends += [event.at for event in case.events_of(EventKind.GENERATION_JOINED, EventKind.GROUP_EMPTY)]
    return any(at is not None and since < at <= (until or since) for at in ends)


def _by_log(case: Case) -> Wait | None:
    """The last rebalance of which the coordinator's log tells the beginning, and no end."""
    began: Event | None = None
    joined: Event | None = None
    newcomers = 0
    for event in case.events:
        if event.kind is EventKind.REBALANCE_STARTED:
            began, joined, newcomers = event, None, 0
        elif event.kind is EventKind.GENERATION_JOINED:
            began, joined = None, event
        elif event.kind in _END:
            began = joined = None
        elif event.kind is EventKind.MEMBER_JOINED and began is not None:
            newcomers += 1
    start = began or joined
    if start is None or start.at is None:
        return None
    name = "PreparingRebalance" if began is not None else "CompletingRebalance"
    return Wait(name, start.at, _log_ends(case, start), quotes([start]), newcomers > 0)


def _log_ends(case: Case, start: Event) -> Instant:
    """A later description of the rebalance tells how long it lasted; else the last line of the log."""
    state = case.described
    if state is not None and state.at is not None and state.state in REBALANCING:
        return max(state.at, start.at or 0)
    file = start.source.rpartition(":")[0]
    times = [
        event.at
        for event in (*case.events, *case.cluster.events)
        if event.at is not None and event.source.rpartition(":")[0] == file
    ]
    return max(times, default=start.at or 0)


def _missing(case: Case, wait: Wait, members: tuple[Member, ...]) -> list[str]:
    """The members of the last generation that have not rejoined since, as far as logs tell."""
    if wait.state == "CompletingRebalance":
        return []
    before = next((row.members for row in reversed(case.generations) if row.members), ())
    ids = {member.member_id for member in members or before}
    rejoining = {
        person_in(event)
        for event in case.events_of(EventKind.JOINING, EventKind.MEMBER_JOINED)
        if event.at is not None and event.at >= wait.since
    }
    names = [person_of(member) for member in before if member.member_id in ids]
    return [name for name in names if name not in rejoining]


def _unreconciled(case: Case, state: GroupState, wait: Wait, rebalance_ms: int) -> Finding:
    """Of a group that its coordinator assigns: there is no leader, and members that keep all read on."""
    keepers, moving = _not_given_up(state)
    names = [_told_apart(member, state) for member in keepers]
    if state.state == "NotReady":
        topics = sorted({topic for member in state.members for topic in member.subscribed or ()})
        missing = [topic for topic in topics if case.is_gone(TopicPartition(topic, 0))]
        what = f"its topics are not ready: {first_of(missing, 5)} is missing" if missing else _NOT_READY
        first = Remedy("Create the topics that it reads; the log of the application names what does not fit.")
    elif keepers:
        given_up = f"given up {first_of(moving, 5)}" if moving else "confirmed it"
        what = f"{people(names)} has not yet {given_up}"
        first = Remedy(
            f"Look at {people(names, 2)}: a thread dump shows what keeps "
            f"{'it' if len(names) == 1 else 'them'} from poll(), or a rebalance listener from returning. "
            "Restart what hangs."
        )
    else:
        what = "no member is known to hold it up"
        first = Remedy("Look at its members: the log, a thread dump.")
    is_beyond = wait.ms > rebalance_ms or state.state == "NotReady"
    limit = "" if is_beyond else f" The coordinator removes such a member after {duration(rebalance_ms)}."
    return RULE.finding(
        Severity.CRITICAL if is_beyond else Severity.WARNING,
        case.group,
        f"Group {case.group} does not get to its new assignment: {wait.state} in epoch {state.epoch} for "
        f"{duration(wait.ms)} at least; {what}.{limit}",
        why="The application reads nothing until its topics are there and fit together."
        if state.state == "NotReady"
        else "Nobody reads the partitions that change hands until then; members that keep theirs read on.",
        evidence=[*wait.evidence, *(Evidence.of(state, _held_and_meant(member)) for member in keepers[:4])],
        remedies=[first],
        partitions=moving,
        members=names,
        since=wait.since,
        check=describing(case, "--members"),
    )


_NOT_READY = "the coordinator says that its topics are missing or do not fit together"


def _not_given_up(state: GroupState) -> tuple[list[Member], list[TopicPartition]]:
    """Members that have not yet given up what the coordinator means for others, and these partitions.

    A member stays in its old epoch until it has confirmed that it gave up what it must. Meanwhile its
    description leaves these partitions out: they are those that are meant for a member and that none has.
    """
    held = {name for member in state.members for name in member.assigned or ()}
    meant = {name for member in state.members for name in member.target or ()}
    keepers, moving = [], meant - held
    for member in state.members:
        surplus = (
            set(member.assigned or ()) - set(member.target or ()) if member.target is not None else set()
        )
        moving |= surplus
        if surplus or 0 <= member.epoch < state.epoch:
            keepers.append(member)
    return keepers, sorted(moving)


def _told_apart(member: Member, state: GroupState) -> str:
    """Its name; with its id where members share a client id, as those of one deployment often do."""
    name = person_of(member)
    is_shared = sum(person_of(other) == name for other in state.members) > 1
    return f"{name} (member {member.member_id})" if is_shared else name


def _held_and_meant(member: Member) -> str:
    held, meant = (first_of(names or (), 6) or "nothing" for names in (member.assigned, member.target))
    return f"{member.member_id} (epoch {member.epoch}): holds {held}, is to have {meant}"


def _found(case: Case, wait: Wait, members: tuple[Member, ...], rebalance_ms: int) -> Finding:
    missing = _missing(case, wait, members)
    completing = wait.state != "PreparingRebalance"
    if completing:
        what = "waits for its leader's assignment"
    elif missing:
        what = f"waits for {people(missing)} to rejoin"
    else:
        what = "waits for members that do not rejoin"
    beyond = wait.ms > rebalance_ms
    cooperative = case.state is not None and "cooperative" in case.state.protocol
    mild = cooperative and not beyond and not completing
    left = "" if beyond else f" The coordinator waits up to {duration(rebalance_ms)}."
    who = people(missing, 2) if missing else "the members"
    return RULE.finding(
        Severity.WARNING if mild else Severity.CRITICAL,
        case.group,
        f"Group {case.group} is stuck in a rebalance: {wait.state} for {duration(wait.ms)} at least; "
        f"it {what}.{left}",
        why="Members that have rejoined read nothing until the last one rejoins, or is removed.",
        evidence=wait.evidence,
        remedies=[
            Remedy(
                f"Look at {who}: a thread dump shows what keeps a member from poll(). Restart what hangs."
            ),
            Remedy(
                "Watch who is in the group.",
                commands.kelpie("doctor", case.cluster, "--watch", name=case.group),
            ),
            Remedy(
                "A shorter max.poll.interval.ms makes the coordinator wait less for a member that hangs; "
                "session.timeout.ms does not matter here."
            ),
        ],
        members=missing,
        since=wait.since,
        check=describing(case, "--state"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("is stuck in a rebalance", "are stuck in a rebalance", stops_group=True),
    asked_for=Sign.NOT_DESCRIBED | Sign.REBALANCING,
)
