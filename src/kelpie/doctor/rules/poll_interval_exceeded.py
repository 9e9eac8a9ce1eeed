"""KLP203 poll-interval-exceeded

What it sees: a member left the group, or was taken for lost by its own client,
because its application did not call poll() for longer than max.poll.interval.ms.

Why it matters: its partitions stop until the rebalance ends, and what it was
working on is done again, by the member that gets them. If each batch takes that long, it
never ends.

How it decides: the consumer's own log says so (Java: "consumer poll timeout has
expired", librdkafka: MAXPOLL, kafka-python: "Heartbeat poll expired"); or the
coordinator's log gives it as the reason with which the member left (Java clients
since 3.2). A consumer that is closed leaves with another reason.

What to do: hand out fewer records at a time (max.poll.records), process them
faster, or allow for more time (max.poll.interval.ms). Heartbeats come from
another thread: session.timeout.ms does not help.

When it is wrong: a member that was paused on purpose, as in a debugger.

Reproduce: kelpie lab run slow-poll
"""

from collections.abc import Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import (
    BROKER_LOGS,
    CLIENT_LOGS,
    broker_told,
    by_age,
    client_told,
    evidence_of,
    first_time,
    last_time,
    nobody_left,
    people,
    person_in,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, duration, moment
from kelpie.observations import Event, EventKind

_OFTEN = 3
_LEAVING = (EventKind.MEMBER_LEFT, EventKind.LEAVING)


def judge(case: Case) -> Judgement:
    lines = _lines(case)
    if lines:
        return _found(case, lines)
    if client_told(case) or broker_told(case) or nobody_left(case):
        return ABSENT
    return undetermined(CLIENT_LOGS, BROKER_LOGS)


def _lines(case: Case) -> list[Event]:
    """By time: what clients say of themselves, and what the coordinator heard from them."""
    return [
        event
        for event in case.events
        if event.kind is EventKind.POLL_INTERVAL_EXCEEDED
        or (event.kind in _LEAVING and "poll timeout" in event.reason.lower())
    ]


def _times(lines: Sequence[Event]) -> list[Event]:
    """Each time once: the client tells of it in two lines, and the coordinator in a third."""
    by_person: dict[str, dict[EventKind, list[Event]]] = {}
    for event in lines:
        by_person.setdefault(person_in(event), {}).setdefault(event.kind, []).append(event)
    return [event for own in by_person.values() for event in max(own.values(), key=len)]


def _found(case: Case, lines: list[Event]) -> Finding:
    times = _times(lines)
    who = [person_in(event) for event in times]
    limit = _number(lines, "limit_ms") or timeouts(case).rebalance_ms
    pause = _number(lines, "pause_ms")
    paused = f"paused {duration(pause)} between polls; its" if pause else "called poll() too late; its"
    limits = f"{paused} limit is {duration(limit)}" if limit else "called poll() later than its limit allows"
    last = last_time(lines)
    state = case.described
    gone = state is not None and state.state == "Empty"
    severity = Severity.CRITICAL if gone or len(times) > _OFTEN else Severity.WARNING
    after = " Nobody is in the group now." if gone else ""
    return RULE.finding(
        by_age(case, last, severity),
        case.group,
        f"In group {case.group}, {people(set(who))} {limits} (max.poll.interval.ms): "
        f"{counted(len(times), 'time')}, the last at {moment(last)}.{after}",
        why="Each time its partitions stopped until the group had rebalanced, and what it was working on is "
        "done again by others.",
        evidence=evidence_of(lines),
        remedies=_remedies(limit),
        members=sorted(set(who)),
        since=first_time(lines),
        until=None if gone else last,
    )


def _number(lines: Sequence[Event], name: str) -> int | None:
    """The largest that any of them tells."""
    values = [event.details.get(name, "") for event in lines]
    return max((int(float(value)) for value in values if value.replace(".", "", 1).isdecimal()), default=None)


def _remedies(limit: int | None) -> list[Remedy]:
    longer = f"max.poll.interval.ms={2 * limit}" if limit else "a larger max.poll.interval.ms"
    return [
        Remedy("Hand out fewer records per poll: halve max.poll.records (Java; the default is 500)."),
        Remedy(f"Or allow for more time between polls: {longer}. A member that hangs is then noticed later."),
        Remedy("Or process in other threads, and pause() the partitions meanwhile, so that poll() goes on."),
    ]


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(
        of_one="loses members that poll too slowly", of_many="lose members that poll too slowly"
    ),
)
