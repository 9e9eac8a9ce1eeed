"""KLP213 session-timeout-out-of-bounds

What it sees: a coordinator refuses a consumer with INVALID_SESSION_TIMEOUT (26):
session.timeout.ms of the consumer is outside of what the brokers allow.

Why it matters: the refused consumer reads nothing. Java's ends with an error, librdkafka's
tries again and again and logs nothing of it at its usual level. Often it is a whole
application that was given a longer timeout to get over restarts, or brokers whose
bounds were changed.

How it decides: a consumer's log says so; or the configuration in its log has a
session.timeout.ms that is below group.min.session.timeout.ms or above
group.max.session.timeout.ms of the brokers. Groups of KIP-848 and share groups have
their session timeout from the brokers, and cannot have this.

What it needs: the logs of the group's consumers (librdkafka's with debug=cgrp); with
DescribeConfigs on the brokers it can name the bounds. Without logs it is undetermined.

What to do: set session.timeout.ms within the bounds; or widen the bounds on all brokers
(group.max.session.timeout.ms is 30 min by default, group.min.session.timeout.ms 6 s).

When it is wrong: a log from before the change.

Reproduce: kelpie lab run session-timeout-out-of-bounds
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import duration
from kelpie.observations import EventKind
from kelpie.observations.groups import CLASSIC, CONSUMER

_SHORTEST, _LONGEST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
_WANTED = "session.timeout.ms"


def judge(case: Case) -> Judgement:
    refusals = case.events_of(EventKind.SESSION_TIMEOUT_REFUSED) if case.events else []
    if refusals:
        return _refused(case, LogLines(case, refusals, refusals))
    state = case.described
    protocol = case.cluster.setting("group.protocol", f"group {case.group}") or ""
    if (state is not None and state.kind != CLASSIC) or protocol.lower() == CONSUMER:
        return ABSENT
    wanted = case.cluster.number(_WANTED, f"group {case.group}")
    if wanted is not None and _is_outside(case, wanted):
        return _will_be_refused(case, wanted)
    return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS)


def _is_outside(case: Case, wanted: int) -> bool:
    shortest, longest = case.cluster.number(_SHORTEST), case.cluster.number(_LONGEST)
    return (shortest is not None and wanted < shortest) or (longest is not None and wanted > longest)


def _bounds(case: Case) -> str:
    """As in "6 s to 30 min"; empty if the settings of the brokers are not known."""
    shortest, longest = case.cluster.number(_SHORTEST), case.cluster.number(_LONGEST)
    if shortest is None or longest is None:
        return ""
    return f"{duration(shortest)} to {duration(longest)}"


def _evidence(case: Case) -> list[Evidence]:
    known = ((name, case.cluster.number(name)) for name in (_SHORTEST, _LONGEST))
    return [
        Evidence(f"{name}={value}", "settings of the brokers") for name, value in known if value is not None
    ]


def _refused(case: Case, lines: LogLines) -> Finding:
    bounds = _bounds(case)
    allowed = f" The brokers allow {bounds}." if bounds else ""
    return RULE.finding(
        lines.severity(Severity.CRITICAL if not case.members else Severity.WARNING),
        case.group,
        f"Group {case.group}: {lines.who} cannot join and reads nothing. The coordinator refused it, "
        f"{lines.how_often}, because its session.timeout.ms is outside of what the brokers allow.{allowed}",
        why="A consumer that is refused with INVALID_SESSION_TIMEOUT (26) reads nothing until it is changed.",
        evidence=[*lines.evidence, *_evidence(case)],
        remedies=_remedies(bounds),
        members=lines.names,
        since=lines.first,
        check=describing(case, "--members"),
    )


def _will_be_refused(case: Case, wanted: int) -> Finding:
    bounds = _bounds(case)
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"Group {case.group}: its consumers will be refused when they start, because they ask for a session "
        f"of {duration(wanted)} (session.timeout.ms) and the brokers "
        f"{f'allow {bounds}' if bounds else 'do not allow it'}.",
        why="A consumer that is refused with INVALID_SESSION_TIMEOUT (26) reads nothing until it is changed.",
        evidence=[Evidence(f"{_WANTED}={wanted}", "the configuration in a consumer's log"), *_evidence(case)],
        remedies=_remedies(bounds),
        check=describing(case, "--members"),
    )


def _remedies(bounds: str) -> list[Remedy]:
    within = f", within {bounds}" if bounds else ""
    return [
        Remedy(f"Set session.timeout.ms of the consumers as the brokers allow{within}."),
        Remedy(
            f"Or widen {_SHORTEST} or {_LONGEST} on all brokers (server.properties, then a rolling restart)."
        ),
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "refuses consumers for their session timeout", "refuse consumers for their session timeouts"
    ),
    asked_for=Sign.LOG_LINES | Sign.NOT_DESCRIBED | Sign.NOT_CLASSIC | Sign.SETTINGS,
    otherwise=undetermined(CLIENT_LOGS),
)
