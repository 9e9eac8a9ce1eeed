"""KLP601 client-version-unsupported

What it sees: a consumer and its brokers have no version of a request in common.

Why it matters: the consumer reads nothing, and often never becomes a member. Kafka 4.0 removed
the old versions of most requests, so clients before 2.1 stop with the upgrade of the
brokers; a client that wants something newer than its brokers stops as well.

How it decides: a consumer's log has an UnsupportedVersionException that names both ranges
("… does not support FETCH with version in range [0,2]. The supported range is [4,17]"):
the smaller one is the older. An exception without ranges does not count: it is mostly about
a feature that one may do without.

What it needs: the logs of the group's consumers. Brokers do not tell whom they refused, so
without such logs it is undetermined. Clients of other languages do not log the ranges.

What to do: upgrade the side that is older. Clients of 2.1 and later work with all brokers
up to 4.x; brokers of 3.9 are the last that clients of 0.10 can use.

When it is wrong: a log from before the upgrade.

Reproduce: kelpie lab run client-version-unsupported
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.observations import Event, EventKind


def judge(case: Case) -> Judgement:
    refusals = case.events_of(EventKind.VERSION_UNSUPPORTED) if case.events else []
    if refusals:
        return _found(case, LogLines(case, refusals, refusals))
    return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS)


def _found(case: Case, lines: LogLines) -> Finding:
    event = lines.events[-1]
    older = "consumer" if _client_is_older(event) else "broker"
    details = event.details
    return RULE.finding(
        lines.severity(Severity.WARNING if case.members else Severity.CRITICAL),
        case.group,
        f"In group {case.group}, {lines.who} cannot talk to the brokers: the {older} is too old. The "
        f"consumer has versions {details['client']} of {details['request']}, the broker {details['broker']}; "
        f"{lines.how_often}.",
        why="Without a version of the request in common the consumer reads nothing.",
        evidence=lines.evidence,
        remedies=[
            Remedy(
                "Upgrade the client library of the consumer: 2.1 or later works with all brokers up to 4.x."
            )
            if older == "consumer"
            else Remedy("Upgrade the brokers, or use a client library that is not newer than they are.")
        ],
        members=lines.names,
        since=lines.first,
        check=describing(case, "--members"),
    )


def _client_is_older(event: Event) -> bool:
    _, _, newest = event.details["client"].partition(" to ")
    oldest, _, _ = event.details["broker"].partition(" to ")
    return int(newest) < int(oldest)


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has a client that is too old or too new for its brokers",
        "have clients that are too old or too new for their brokers",
    ),
    asked_for=Sign.LOG_LINES,
    otherwise=undetermined(CLIENT_LOGS),
)
