"""KLP204 session-expired

What it sees: the coordinator removed a member because it did not hear from it for
a whole session.

Why it matters: until then its partitions were not read: that takes a whole
session.timeout.ms, and a rebalance after it. If it was still alive, it goes on
working on partitions that others have got, and its commits are refused (KLP210).

How it decides: the coordinator's log says that the member failed, or the
consumer's log that its session timed out. A member that leaves, says so: a clean
restart is none, and neither is one whose poll() came late (KLP203). A consumer
that lost its session because the coordinator was away is KLP101's or KLP105's
case. Whether it died or only fell silent shows in whether it came back.

What to do: if it never came back, find out why the process died, and close
consumers cleanly. If it did, its heartbeats did not get through for so long:
pauses of the JVM, a starved container, a blocked network; a longer
session.timeout.ms bridges them.

When it is wrong: a process that was killed on purpose.

Reproduce: kelpie lab run session-expired
"""

from collections.abc import Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    broker_told,
    by_age,
    evidence_of,
    first_time,
    had_coordinator,
    last_time,
    nobody_left,
    people,
    person_in,
    said,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, moment
from kelpie.observations import Event, EventKind

_SESSION_MS = 45_000
_OFTEN = 3
_COMING = (EventKind.MEMBER_JOINED, EventKind.JOINING, EventKind.JOINED)


def judge(case: Case) -> Judgement:
    lines = _lines(case)
    if lines:
        return _found(case, lines)
    if broker_told(case) or nobody_left(case):
        return ABSENT
    return undetermined(BROKER_LOGS)


def _lines(case: Case) -> list[Event]:
    session = timeouts(case).session_ms or _SESSION_MS
    return [
        event
        for event in case.events
        if event.kind is EventKind.MEMBER_EXPIRED
        or (event.kind is EventKind.SESSION_LOST and had_coordinator(case, event.at, session))
    ]


def _found(case: Case, lines: list[Event]) -> Finding:
    expiries = [event for event in lines if event.kind is EventKind.MEMBER_EXPIRED] or lines
    who = [person_in(event) for event in expiries]
    back = sorted({person_in(event) for event in expiries if _came_back(case, event)})
    last = last_time(lines)
    session = timeouts(case).session_ms
    length = f" of {duration(session)}" if session else ""
    state = case.described
    gone = state is not None and state.state == "Empty"
    after = " Nobody is in the group now." if gone else ""
    returned = f" {people(back)} came back: it had only fallen silent." if back else ""
    severity = Severity.CRITICAL if gone or len(expiries) > _OFTEN else Severity.WARNING
    return RULE.finding(
        by_age(case, last, severity),
        case.group,
        f"In group {case.group}, {people(set(who))} was removed without having left: not heard of for a "
        f"whole session{length}; {counted(len(expiries), 'time')}, the last at {moment(last)}."
        f"{returned}{after}",
        why="Its partitions were read by nobody for a whole session and the rebalance after it; what it had "
        "not committed is done again.",
        evidence=evidence_of(lines),
        remedies=_remedies(back, session),
        members=sorted(set(who)),
        since=first_time(lines),
        until=None if gone else last,
    )


def _came_back(case: Case, expiry: Event) -> bool:
    return any(
        _after(event, expiry.at) and person_in(event) == person_in(expiry) for event in said(case, *_COMING)
    )


def _after(event: Event, at: Instant | None) -> bool:
    return event.at is not None and at is not None and event.at > at


def _remedies(back: Sequence[str], session: int | None) -> list[Remedy]:
    longer = f"session.timeout.ms={2 * session}" if session else "a longer session.timeout.ms"
    silent = [
        Remedy(
            "Look for what kept it from sending heartbeats: pauses of the JVM, a starved container, network."
        ),
        Remedy(
            f"Bridge such pauses with {longer} (group.max.session.timeout.ms of the brokers is the limit)."
        ),
    ]
    dead = [
        Remedy("Find out why the process died: its own log, the kernel's (out of memory), the scheduler's."),
        Remedy("On shutdown, close the consumer: then it leaves, and others take over at once."),
    ]
    return silent if back else dead


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(
        of_one="loses members whose session expires", of_many="lose members whose session expires"
    ),
)
