"""When partitions had no owner, by the logs of all members.

That takes the logs of every member that any log names. While none of them runs, nothing is missing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.zookeeper.member_logs import MemberLog, Owning, member_logs, named_members
from kelpie.doctor.zookeeper.sessions import expiries
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import EventKind
from kelpie.zookeeper.assignment import consumer_of

LEAST_MS = 3_000
"""An ordinary rebalance is over by then."""

Span = tuple[Instant, Instant]


class Gap(NamedTuple):
    """A partition had no owner. `until` None: it has none at the end of the logs."""

    name: TopicPartition
    since: Instant
    until: Instant | None


def has_all_logs(case: Case) -> bool:
    logs = member_logs(case)
    registered = {member for snapshot in case.zookeeper for member in snapshot.members}
    return bool(logs) and named_members(case) | registered <= logs.keys()


def gaps(case: Case) -> list[Gap]:
    """Stretches without an owner, of some seconds or more, by time. Empty where logs are missing."""
    if not has_all_logs(case):
        return []
    logs = member_logs(case)
    gone = _gone(case, logs)
    still_running = any(not log.is_closed and log.member not in gone for log in logs.values())
    end = max([*(log.last_word for log in logs.values()), *([case.cluster.now] if still_running else [])])
    ownings: defaultdict[TopicPartition, list[Owning]] = defaultdict(list)
    for log in logs.values():
        for name, owning in log.ownings():
            ownings[name].append(owning)
    running = _united(_running(log, gone.get(log.member), end) for log in logs.values())
    found = []
    for name, rows in ownings.items():
        owned = _united((row.since, row.until or _let_go(row, rows, gone, end)) for row in rows)
        first = owned[0][0]
        for since, until in _without(_cut(running, first), owned):
            if until - since >= LEAST_MS:
                found.append(Gap(name, since, None if until == end and still_running else until))
    return sorted(found, key=lambda gap: (gap.since, gap.name))


def _gone(case: Case, logs: Mapping[str, MemberLog]) -> dict[str, Instant]:
    """Members whose log has no end: when ZooKeeper expired them, or another one counts without them."""
    gone: dict[str, Instant] = {}
    for event in case.events_of(EventKind.ZK_COMPUTED):
        counted = {consumer_of(thread) for thread in event.details.get("threads", "").split(",")}
        for member, log in logs.items():
            if member not in counted and not log.is_closed and (event.at or 0) > log.last_word:
                gone.setdefault(member, event.at or 0)
    for expiry in expiries(case):
        log = logs[expiry.member]
        if not log.is_closed and log.last_word < expiry.at:
            gone[expiry.member] = expiry.at
    return gone


def _running(log: MemberLog, gone: Instant | None, end: Instant) -> Span:
    first = log.first(0, EventKind.ZK_REGISTERED) or log.events[0]
    return first.at or 0, log.last_word if log.is_closed else gone or end


def _let_go(row: Owning, rows: Iterable[Owning], gone: Mapping[str, Instant], end: Instant) -> Instant:
    """When the node of a member that never said so was gone: with its session, or as another one claimed."""
    claimed = min((other.since for other in rows if other.since > row.since), default=end)
    at = gone.get(row.member)
    return min(claimed, at) if at is not None and at > row.since else claimed


def _united(spans: Iterable[Span]) -> list[Span]:
    rows: list[Span] = []
    for begin, end in sorted(spans):
        if rows and begin <= rows[-1][1]:
            rows[-1] = rows[-1][0], max(rows[-1][1], end)
        else:
            rows.append((begin, end))
    return rows


def _cut(spans: Iterable[Span], first: Instant) -> list[Span]:
    return [(max(begin, first), end) for begin, end in spans if end > first]


def _without(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """What of the spans is not covered by the holes, which are in order."""
    rest = []
    for begin, end in spans:
        at = begin
        for hole_begin, hole_end in holes:
            if hole_begin >= end:
                break
            if hole_begin > at:
                rest.append((at, min(hole_begin, end)))
            at = max(at, hole_end)
        if at < end:
            rest.append((at, end))
    return rest
