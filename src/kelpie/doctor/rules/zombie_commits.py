"""KLP210 zombie-commits

What it sees: consumers whose commits are refused because they are not members of
the group any more, or are of an old generation.

Why it matters: a zombie has gone on working after it was thrown out. What it read
meanwhile is not committed and is done again by the member that has its partitions now:
records are processed twice. That the commit is refused is Kafka's protection; the
work that was done twice stays done.

How it decides: a consumer's log shows a commit that failed with UNKNOWN_MEMBER_ID
(25), ILLEGAL_GENERATION (22), FENCED_INSTANCE_ID (82), FENCED_MEMBER_EPOCH (110) or
STALE_MEMBER_EPOCH (113), or that failed because the consumer is "not part of an
active group". REBALANCE_IN_PROGRESS (27) is what members hear that commit at the
wrong moment; it counts only for one that was thrown out before.

What it needs: the logs of the group's consumers. Refused commits leave no trace in
the cluster, so without such logs it is undetermined.

What to do: find out why it was thrown out: mostly poll() came late (KLP203), or its
session ended (KLP204). Commit before the batch grows long, and make processing
idempotent.

When it is wrong: a consumer that is closed in the middle of a rebalance.

Reproduce: kelpie lab run zombie-commits
"""

from collections.abc import Sequence

from kelpie.cluster import commands
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing, person_in
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import counted, listed, moment
from kelpie.observations import Event, EventKind

_OUT = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
_WORDS = ("kicked out", "not part of an active group", "already rebalanced and assigned")
_EXPULSIONS = {
    EventKind.POLL_INTERVAL_EXCEEDED: "its poll() came late (KLP203)",
    EventKind.MEMBER_EXPIRED: "its session had ended (KLP204)",
    EventKind.SESSION_LOST: "its session had ended (KLP204)",
    EventKind.FENCED: "another one had taken its place (KLP205)",
    EventKind.MEMBER_FENCED: "another one had taken its place (KLP205)",
}


def judge(case: Case) -> Judgement:
    refusals = [event for event in case.events_of(EventKind.COMMIT_FAILED) if _is_zombie(case, event)]
    if refusals:
        return _found(case, LogLines(case, refusals, refusals))
    return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS)


def _is_zombie(case: Case, event: Event) -> bool:
    if event.error in _OUT:
        return True
    text = f"{event.reason} {event.text}"
    if event.error is None and any(words in text for words in _WORDS):
        return True
    return event.error == ErrorCode.REBALANCE_IN_PROGRESS and bool(_expulsions(case, [event], event.at))


def _expulsions(case: Case, refusals: Sequence[Event], last: Instant | None) -> list[str]:
    """Why those whose commits were refused had been thrown out, as far as logs tell."""
    who = {person_in(event) for event in refusals}
    causes = [
        _EXPULSIONS[event.kind]
        for event in case.events_of(*_EXPULSIONS)
        if person_in(event) in who and (event.at is None or last is None or event.at <= last)
    ]
    return list(dict.fromkeys(causes))


def _found(case: Case, lines: LogLines) -> Finding:
    codes = sorted({event.error for event in lines.events if event.error is not None})
    errors = listed([f"{ErrorCode(code).name} ({code})" for code in codes])
    causes = _expulsions(case, lines.events, lines.last)
    because = f" Before that, {listed(causes)}." if causes else ""
    return RULE.finding(
        lines.severity(Severity.WARNING),
        case.group,
        f"Group {case.group} refused commits of {lines.who}, which had been thrown out"
        f"{f': {errors}' if errors else ''}; {counted(len(lines.events), 'log line')}, the last at "
        f"{moment(lines.last)}.{because}",
        why="What it read since its last accepted commit is read and processed again by another member.",
        evidence=lines.evidence,
        remedies=[
            Remedy(
                "Find out why it was thrown out.",
                commands.kelpie("doctor", case.cluster, "--evidence", "LOGS", name=case.group),
            ),
            Remedy("Commit in smaller steps, and stop working on a partition when it is revoked or lost."),
        ],
        members=lines.names,
        since=lines.first,
        check=describing(case, "--members"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has consumers whose commits are refused", "have consumers whose commits are refused"),
    asked_for=Sign.LOG_LINES,
    otherwise=undetermined(CLIENT_LOGS),
)
