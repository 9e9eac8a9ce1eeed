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

What it needs: the log of the group's coordinator, or those of its consumers. Without
them it is undetermined, unless the records of __consumer_offsets show that no member
has left. How long a session is comes from these records, too.

What to do: if it never came back, find out why the process died, and close
consumers cleanly. If it did, its heartbeats did not get through for so long:
pauses of the JVM, a starved container, a blocked network; a longer
session.timeout.ms bridges them.

When it is wrong: a process that was killed on purpose.

Reproduce: kelpie lab run session-expired
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    SESSION_MS,
    LogLines,
    describing,
    had_coordinator,
    nobody_left,
    people,
    person_in,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import duration
from kelpie.observations import Event, EventKind

_OFTEN = 3
_COMING = (EventKind.MEMBER_JOINED, EventKind.JOINING, EventKind.JOINED)


def judge(case: Case) -> Judgement:
    session = timeouts(case).session_ms or SESSION_MS
    events = [
        event
        for event in case.events
        if event.kind is EventKind.MEMBER_EXPIRED
        or (event.kind is EventKind.SESSION_LOST and had_coordinator(case, event.at, session))
    ]
    if events:
        expiries = [event for event in events if event.kind is EventKind.MEMBER_EXPIRED]
        return _found(case, LogLines(case, events, expiries or events))
    return ABSENT if case.has_broker_log or nobody_left(case) else undetermined(BROKER_LOGS)


def _found(case: Case, lines: LogLines) -> Finding:
    back = sorted({person_in(event) for event in lines.occurrences if _came_back(case, event)})
    session = timeouts(case).session_ms
    length = f" of {duration(session)}" if session else ""
    gone = case.is_empty
    after = " Nobody is in the group now." if gone else ""
    returned = f" {people(back)} came back later: the process was alive." if back else ""
    often = len(lines.occurrences) > _OFTEN
    return RULE.finding(
        lines.severity(Severity.CRITICAL if gone or often else Severity.WARNING),
        case.group,
        f"In group {case.group}, {lines.who} was removed, because no heartbeat came for a whole "
        f"session{length}; {lines.how_often}.{returned}{after}",
        why="Its partitions were read by nobody for a whole session and the rebalance after it; what it had "
        "not committed is done again.",
        evidence=lines.evidence,
        remedies=_remedies(bool(back), session),
        members=lines.names,
        since=lines.first,
        until=None if gone else lines.last,
        check=describing(case, "--members"),
    )


def _came_back(case: Case, expiry: Event) -> bool:
    return any(
        event.at is not None
        and expiry.at is not None
        and event.at > expiry.at
        and person_in(event) == person_in(expiry)
        for event in case.events_of(*_COMING)
    )


def _remedies(is_alive: bool, session: int | None) -> list[Remedy]:
    longer = f"session.timeout.ms={2 * session}" if session else "a longer session.timeout.ms"
    if is_alive:
        texts = (
            "Look for what kept it from sending heartbeats: pauses of the JVM, a starved container, network.",
            f"Bridge such pauses with {longer} (group.max.session.timeout.ms of the brokers is the limit).",
        )
    else:
        texts = (
            "Find out why the process died: its own log, the kernel's (out of memory), the scheduler's.",
            "On shutdown, close the consumer: then it leaves, and others take over at once.",
        )
    return [Remedy(text) for text in texts]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "loses members whose session expires",
        "lose members whose session expires",
        "members whose session expired",
    ),
    asked_for=Sign.LOG_LINES | Sign.MEMBERS,
    otherwise=undetermined(BROKER_LOGS),
)
