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

What it needs: the logs of the group's consumers, or that of its coordinator (which
names the reason for Java clients since 3.2). Without them it is undetermined, unless
the records of __consumer_offsets show that no member has left.

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
    LogLines,
    describing,
    is_late_poll,
    nobody_left,
    person_in,
    timeouts,
)
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import duration
from kelpie.observations import Event, EventKind

_OFTEN = 3


def judge(case: Case) -> Judgement:
    events = [event for event in case.events if is_late_poll(event)]
    if events:
        return _found(case, LogLines(case, events, _occurrences(events)))
    if case.has_client_logs or case.has_broker_log or nobody_left(case):
        return ABSENT
    return undetermined(CLIENT_LOGS, BROKER_LOGS)


def _occurrences(lines: Sequence[Event]) -> list[Event]:
    """One line each time: the client logs it in two lines, and the coordinator in a third."""
    by_person: dict[str, dict[EventKind, list[Event]]] = {}
    for event in lines:
        by_person.setdefault(person_in(event), {}).setdefault(event.kind, []).append(event)
    return [event for by_kind in by_person.values() for event in max(by_kind.values(), key=len)]


def _found(case: Case, lines: LogLines) -> Finding:
    limit = _number(lines.events, "limit_ms") or timeouts(case).rebalance_ms
    pause = _number(lines.events, "pause_ms")
    paused = f"paused {duration(pause)} between polls; its" if pause else "called poll() too late; its"
    limits = f"{paused} limit is {duration(limit)}" if limit else "called poll() later than its limit allows"
    longer = f"max.poll.interval.ms={2 * limit}" if limit else "a larger max.poll.interval.ms"
    gone = case.is_empty
    after = " Nobody is in the group now." if gone else ""
    often = len(lines.occurrences) > _OFTEN
    return RULE.finding(
        lines.severity(Severity.CRITICAL if gone or often else Severity.WARNING),
        case.group,
        f"In group {case.group}, {lines.who} {limits} (max.poll.interval.ms): {lines.how_often}.{after}",
        why="Each time its partitions stopped until the group had rebalanced, and what it was working on is "
        "done again by others.",
        evidence=lines.evidence,
        remedies=[
            Remedy("Hand out fewer records per poll: halve max.poll.records (Java; the default is 500)."),
            Remedy(
                f"Or allow for more time between polls: {longer}. A member that hangs is then noticed later."
            ),
            Remedy(
                "Or process in other threads, and pause() the partitions meanwhile, so that poll() goes on."
            ),
        ],
        members=lines.names,
        since=lines.first,
        until=None if gone else lines.last,
        check=describing(case, "--members"),
    )


def _number(lines: Sequence[Event], name: str) -> int | None:
    """The largest that any of them tells."""
    values = [event.details.get(name, "") for event in lines]
    return max((int(float(value)) for value in values if value.replace(".", "", 1).isdecimal()), default=None)


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "loses members that poll too slowly",
        "lose members that poll too slowly",
        "members that polled too slowly",
    ),
    asked_for=Sign.LOG_LINES | Sign.MEMBERS,
    otherwise=undetermined(CLIENT_LOGS, BROKER_LOGS),
)
