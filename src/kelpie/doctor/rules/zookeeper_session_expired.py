"""KLP506 zookeeper-session-expired

What it sees: ZooKeeper expired the session of a consumer of Kafka 0.8 whose process
had not ended: it was stopped, in a long garbage collection, or cut off.

Why it matters: other members claimed its partitions before it noticed, so records
were read twice. Then it registers again and rebalances, which may fail (KLP501); only
its log says so, because the exception ends in ZooKeeper's event thread.

How it decides: its log says "ZK expired"; or ZooKeeper's log says that it refused an
expired session; or the tree has the same consumer id with one session and later with
another. A session that expires because its process has died is KLP505.

What it needs: the logs of the group's consumers, or ZooKeeper's own log; or two looks
at its tree (read access to /consumers in ZooKeeper) with the session before and after.
Without logs and with fewer than two looks it is undetermined.

What to do: find what stopped the process (garbage collection, swapping, a stopped
process or machine), or set a session timeout that is longer than the pause.

When it is wrong: a process that is started again with the same consumer.id, before or
after its old session has expired, looks the same in the tree. It is not reported if
its log shows that it was closed.

Reproduce: kelpie lab run zookeeper-session-expired
"""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.looks import looks
from kelpie.doctor.zookeeper.member_logs import member_logs
from kelpie.doctor.zookeeper.period import Period
from kelpie.doctor.zookeeper.sessions import expiries
from kelpie.doctor.zookeeper.timeouts import timeouts
from kelpie.doctor.zookeeper.words import LOGS, TREE, people, show_node
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration
from kelpie.observations import EventKind

_SAME_MS = 60_000
_MOST_QUOTES = 6


class _Expired(NamedTuple):
    member: str
    since: Instant
    until: Instant | None
    """When it owned partitions again."""
    evidence: tuple[Evidence, ...]


def judge(case: Case) -> Judgement:
    rows = _logged(case)
    rows += [row for row in _returned(case) if not _is_told(row, rows)]
    rows += [row for row in _registered_anew(case) if not _is_told(row, rows)]
    if rows:
        return _finding(case, sorted(rows, key=lambda row: row.since))
    return ABSENT if case.events or len(looks(case)) > 1 else undetermined(LOGS, TREE)


def _is_told(row: _Expired, rows: Sequence[_Expired]) -> bool:
    return any(other.member == row.member and abs(other.since - row.since) < _SAME_MS for other in rows)


def _logged(case: Case) -> list[_Expired]:
    rows = []
    for log in member_logs(case).values():
        for event in log.events:
            if event.kind is EventKind.ZK_SESSION_EXPIRED and event.at is not None:
                after = log.first(event.at, EventKind.ZK_REBALANCED, EventKind.ZK_CLOSED)
                over = after.at if after is not None else None
                rows.append(_Expired(log.member, event.at, over, (Evidence.of(event, event.text),)))
    return rows


def _returned(case: Case) -> list[_Expired]:
    """What only ZooKeeper's own log says."""
    return [
        _Expired(
            expiry.member,
            expiry.at,
            expiry.returned.at,
            (
                Evidence.of(expiry.event, expiry.event.text),
                Evidence.of(expiry.returned, expiry.returned.text),
            ),
        )
        for expiry in expiries(case)
        if expiry.returned is not None
    ]


def _registered_anew(case: Case) -> list[_Expired]:
    logs, rows = member_logs(case), []
    sessions: dict[str, int] = {}
    for look in looks(case):
        for row in look.registrations:
            if not row.session:
                continue
            before = sessions.get(row.member, row.session)
            sessions[row.member] = row.session
            log = logs.get(row.member)
            if before != row.session and (log is None or log.closed_after(0) is None):
                text = f"ids/{row.member}: session {row.session:#x}, and before {before:#x}"
                rows.append(
                    _Expired(row.member, row.created or look.at, look.at, (Evidence.of(look.row, text),))
                )
    return rows


def _finding(case: Case, rows: Sequence[_Expired]) -> Finding:
    members = sorted({row.member for row in rows})
    known = timeouts(case)
    lengths = {known[member].session_ms for member in members if member in known}
    length = f" of {duration(max(lengths))}" if lengths else ""
    one = len(members) == 1
    expired = f"ZooKeeper expired {'its' if one else 'their'} session{length}"
    period = Period.of(rows)
    times = f", {counted(len(rows), 'time')}" if len(rows) > 1 else ""
    running = f"while {'it was' if one else 'they were'} running"
    if period.is_over:
        text = f"may have read records that other members read, too: {expired} {running}{times}"
    else:
        text = f"{'owns' if one else 'own'} nothing: {expired} {running}{times}"
    longer = f"zookeeper.session.timeout.ms={2 * max(lengths)}" if lengths else "a longer session timeout"
    return RULE.finding(
        Severity.WARNING if period.is_over else Severity.CRITICAL,
        case.group,
        f"In group {case.group}, {people(case, members)} {text}.",
        why="Without a session it owns nothing: other members claim its partitions and begin at the last "
        "commit, while it reads on until it notices. Then it must register again and rebalance.",
        evidence=[quote for row in rows for quote in row.evidence][:_MOST_QUOTES],
        remedies=[
            Remedy("Look for what stopped it: a long garbage collection, swapping, a stopped process."),
            Remedy(
                f"If such pauses are usual, set {longer}, and raise rebalance.max.retries with it: the "
                "retries must outlast the session."
            ),
        ],
        members=members,
        since=period.since,
        until=period.until,
        check=show_node(case, "stat", "ids", members[0]),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has members whose session ZooKeeper expired",
        "have members whose session ZooKeeper expired",
        "sessions that ZooKeeper expired",
    ),
    of_zookeeper=True,
)
