"""KLP601 client-version-unsupported

What it sees: a consumer and its brokers have no version of a request in common.

Why it matters: the consumer reads nothing. It may still join the group, get partitions and
send heartbeats, so that nobody else reads them: a Java consumer of 0.10.2 does so on brokers
of 4.3, and logs nothing of it at its usual level. Kafka 4.0 removed the old versions of most
requests; a client that wants something newer than its brokers stops as well.

How it decides: a consumer's log has an UnsupportedVersionException that names both ranges
("… does not support FETCH with version in range [0,2]. The supported range is [4,17]"):
the smaller one is the older. Clients of 0.10.2 name their own version only ("The broker is too
new to support FETCH version 3"). An exception without versions does not count: it is mostly
about a feature that one may do without.

What it needs: the logs of the group's consumers; those of Java's 0.10.2 at DEBUG
(org.apache.kafka.clients.NetworkClient). Brokers do not tell whom they refused, so without
such logs it is undetermined. Clients of other languages do not log the versions.

What to do: upgrade the side that is older. Clients of 2.1 and later work with all brokers
up to 4.x; brokers of 3.9 are the last that clients of 0.10 can use.

When it is wrong: a log from before the upgrade.

Tried on real brokers of 4.3.1: a Java consumer of 0.10.2.2 (found), and one of 1.1.1, which
reads and commits. Not tried: brokers that are older than their consumers.

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
    is_older = _client_is_older(event)
    return RULE.finding(
        lines.severity(Severity.WARNING if case.members else Severity.CRITICAL),
        case.group,
        f"In group {case.group}, {lines.who} cannot talk to the brokers: the "
        f"{'consumer' if is_older else 'broker'} is too old. {_versions(event)}; {lines.how_often}.",
        why="Without a version of the request in common the consumer reads nothing.",
        evidence=lines.evidence,
        remedies=[
            Remedy(
                "Upgrade the client library of the consumer: 2.1 or later works with all brokers up to 4.x."
            )
            if is_older
            else Remedy("Upgrade the brokers, or use a client library that is not newer than they are.")
        ],
        members=lines.names,
        since=lines.first,
        check=describing(case, "--members"),
    )


def _versions(event: Event) -> str:
    known = event.details
    request = known["request"]
    if "newest" in known:
        return f"The consumer has {request} up to version {known['newest']}, the broker later ones only"
    if "oldest" in known:
        return f"The consumer has {request} from version {known['oldest']} on, the broker earlier ones only"
    return f"The consumer has versions {known['client']} of {request}, the broker {known['broker']}"


def _client_is_older(event: Event) -> bool:
    if "client" not in event.details:
        return "newest" in event.details
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
