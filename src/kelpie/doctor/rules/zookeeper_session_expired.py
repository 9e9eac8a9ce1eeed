"""KLP506 zookeeper-session-expired

What it sees: ZooKeeper expired the session of a consumer of Kafka 0.8's kind that was
still running: stopped, in a long garbage collection, or cut off.

Why it matters: others took its partitions, and it did not know: what it read until
it noticed was read twice. Then it registers itself anew and rebalances, which may
fail (KLP501); that exception ends in ZooKeeper's event thread.

How it decides: its log says "ZK expired", or ZooKeeper's log refuses an expired
session that returns, or the same consumer id stands in the tree with one session and
later with another. A session that expires because its process has died is no
finding here (KLP505).

What it needs: the logs of the group's consumers, or ZooKeeper's own log; or two looks
at its tree (read access to /consumers in ZooKeeper) with the session before and after.
Without logs and with fewer than two looks it is undetermined.

What to do: find the pause (garbage collection, swapping, a stopped process or
machine), or give the session more time than it lasts.

When it is wrong: a process that is started again with the same consumer.id, before or
after its old session has expired, looks the same in the tree; it is not told if its
log has an end.

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
    period = Period.of(rows)
    times = f", {counted(len(rows), 'time')}" if len(rows) > 1 else ""
    longer = f"zookeeper.session.timeout.ms={2 * max(lengths)}" if lengths else "a longer session timeout"
    return RULE.finding(
        Severity.WARNING if period.is_over else Severity.CRITICAL,
        case.group,
        f"In group {case.group}, ZooKeeper expired the session{length} of {people(case, members)}{times}; "
        f"{'it was' if len(members) == 1 else 'they were'} still running.",
        why="Others took its partitions while it still read them: records were handed out twice. It had to "
        "register itself anew and to rebalance.",
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
