"""KLP202 rebalance-stuck

What it sees: the group is in a rebalance that does not end.

Why it matters: members that have rejoined wait, and read nothing. The coordinator
waits for the missing ones as long as the longest max.poll.interval.ms in the
group (5 minutes by default, often much longer), then throws them out. If it waits
for the leader's assignment, all members wait for one.

How it decides: surveys of the group, or the coordinator's log, show that one and
the same rebalance lasts longer than the longest session in the group: by then,
dead members have been removed, and members that poll have rejoined. New members that
keep coming in (a first start, with group.initial.rebalance.delay.ms) are not
stuck until the rebalance timeout has passed as well. Members that were in the
last generation and have not said that they rejoin are named.

What to do: look at those members: something in their poll loop takes long, or
hangs. A thread dump shows it. Restarting the one that hangs ends the rebalance.

When it is wrong: two rebalances right after each other that look like one,
because the history in between was not read.

Reproduce: kelpie lab run rebalance-stuck
"""

from typing import NamedTuple

from kelpie.cluster import commands
from kelpie.doctor.case import REBALANCING, Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, quotes, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    SESSION_MS,
    people,
    person_in,
    person_of,
    state_text,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import Event, EventKind, GroupState, Member

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
    return _judged(case, max(waits, key=lambda wait: wait.ms), state.members)


def _judged(case: Case, wait: Wait, members: tuple[Member, ...]) -> Judgement:
    known = timeouts(case)
    session, rebalance = known.session_ms or SESSION_MS, known.rebalance_ms or _REBALANCE_MS
    delay = case.cluster.number("group.initial.rebalance.delay.ms")
    patience = max(session, 2 * (_INITIAL_DELAY_MS if delay is None else delay))
    if wait.ms <= patience or (wait.growing and wait.ms <= rebalance):
        return ABSENT
    return _found(case, wait, members, rebalance)


def _by_states(case: Case) -> Wait | None:
    """The last descriptions, one after the other, that show the same rebalance."""
    states: list[GroupState] = []
    for state in reversed(case.states):
        if state.error is not ErrorCode.NONE or state.at is None or state.state not in REBALANCING:
            break
        if states and _moved_on(case, state.at, states[-1].at):
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
        why="Whoever has rejoined reads nothing until the last one comes, or the coordinator throws it out.",
        evidence=wait.evidence,
        remedies=[
            Remedy(f"Look at {who}: a thread dump shows what keeps it from poll(). Restart it if it hangs."),
            Remedy(
                "Watch who is in the group.",
                commands.kelpie("doctor", case.cluster, "--watch", name=case.group),
            ),
            Remedy(
                "A shorter max.poll.interval.ms makes the coordinator wait less for a member that hangs; "
                "session.timeout.ms has no say in this."
            ),
        ],
        members=missing,
        since=wait.since,
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("is stuck in a rebalance", "are stuck in a rebalance", stops_group=True),
)
