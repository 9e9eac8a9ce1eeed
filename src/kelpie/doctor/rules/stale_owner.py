"""KLP505 stale-owner

What it sees: the owner of a partition is dead, stopped or cut off, in a group of
Kafka 0.8 (one that coordinates through ZooKeeper).

Why it matters: no member reads the partition, and no other member can claim it, until
ZooKeeper expires the session of its owner. A member that must claim it before that may
give up (KLP501).

How it decides: ZooKeeper's log says that the session of a member that owned
partitions expired: ZooKeeper heard nothing of it for the whole timeout. Or another
member's log names it as the owner after its own log has ended without a shutdown. Or
two looks at the tree, with no rebalance between them, show an owner node whose member
is not registered, or is registered in another session: ZooKeeper deletes such a node
when the old session expires, and the member does not notice.

What it needs: ZooKeeper's own log, or the logs of the group's consumers; or two looks
at its tree (read access to /consumers in ZooKeeper). Without all of them, or where only
one look shows the owner node, it is undetermined.

What to do: wait for the session to expire, or, if the process is stopped or hangs,
end it. Then look whether every partition has an owner (KLP503).

When it is wrong: a log that was cut off looks like that of a member that was killed.

Reproduce: kelpie lab run zookeeper-stale-owner
"""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.looks import looks, standing
from kelpie.doctor.zookeeper.member_logs import member_logs
from kelpie.doctor.zookeeper.period import Period
from kelpie.doctor.zookeeper.sessions import Expiry, expiries
from kelpie.doctor.zookeeper.words import (
    LOGS,
    SECOND_LOOK,
    TREE,
    people,
    places,
    quoted_owner,
    seen_twice,
    show_owner,
)
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import EventKind
from kelpie.zookeeper.assignment import consumer_of

_MOST_QUOTES = 6


class _Stale(NamedTuple):
    member: str
    names: frozenset[TopicPartition]
    since: Instant
    until: Instant | None
    evidence: tuple[Evidence, ...]


def judge(case: Case) -> Judgement:
    stale = [row for expiry in expiries(case) if (row := _expired(case, expiry)) is not None]
    told = {row.member for row in stale}
    stale += [row for row in _silent(case) if row.member not in told]
    stale += _orphaned(case)
    if stale:
        return _finding(case, sorted(stale, key=lambda row: row.since))
    all_looks = looks(case)
    if not all_looks and not case.events:
        return undetermined(LOGS, TREE)
    return undetermined(SECOND_LOOK) if all_looks and all_looks[-1].orphans else ABSENT


def _expired(case: Case, expiry: Expiry) -> _Stale | None:
    """What the member owned while nothing was heard of it."""
    names: set[TopicPartition] = set()
    for look in looks(case):
        if expiry.last_heard <= look.at <= expiry.at:
            names |= {name for name, owner in look.owners.items() if owner.member == expiry.member}
    log = member_logs(case).get(expiry.member)
    for name, owning in log.ownings() if log is not None else ():
        if owning.since <= expiry.last_heard and (owning.until is None or owning.until >= expiry.at):
            names.add(name)
    if not names:
        return None
    return _Stale(
        expiry.member,
        frozenset(names),
        expiry.last_heard,
        expiry.at,
        (Evidence.of(expiry.event, expiry.event.text),),
    )


def _silent(case: Case) -> list[_Stale]:
    """Owners that others met after their own log had ended without a word."""
    logs = member_logs(case)
    rows: dict[str, _Stale] = {}
    for event in case.events_of(EventKind.ZK_CONFLICT):
        log = logs.get(consumer_of(event.details["holder"]))
        if log is None or log.is_closed or event.at is None or event.at <= log.last_word:
            continue
        name = TopicPartition(event.topic or "", event.partition or 0)
        before = rows.get(log.member)
        rows[log.member] = _Stale(
            log.member,
            frozenset({name}) | (before.names if before is not None else frozenset()),
            log.last_word,
            _claimed_at(case, name, event.at),
            before.evidence if before is not None else (Evidence.of(event, event.text),),
        )
    return list(rows.values())


def _claimed_at(case: Case, name: TopicPartition, after: Instant) -> Instant | None:
    """When another member has got the partition."""
    times = [
        owning.since
        for log in member_logs(case).values()
        for owned, owning in log.ownings()
        if owned == name and owning.since > after
    ]
    return min(times, default=None)


def _orphaned(case: Case) -> list[_Stale]:
    rows = {}
    for stretch in standing(case):
        for owner in stretch.last.orphans:
            quotes = (quoted_owner(stretch.last, owner), seen_twice(stretch))
            rows[owner.name] = _Stale(
                owner.member, frozenset({owner.name}), stretch.since, stretch.until, quotes
            )
    return list(rows.values())


def _finding(case: Case, stale: Sequence[_Stale]) -> Finding:
    members = {row.member for row in stale}
    names = {name for row in stale for name in row.names}
    period = Period.of(stale)
    are = ("was", "were") if period.is_over else ("is", "are")
    if period.is_over:
        owner = "owner was" if len(members) == 1 else "owners were"
    else:
        owner = "owner is" if len(members) == 1 else "owners are"
    ended = f" for up to {duration(period.longest_ms)}" if period.is_over else ""
    return RULE.finding(
        Severity.NOTICE if period.is_over else Severity.WARNING,
        case.group,
        f"In group {case.group}, {places(names)} {are[len(names) > 1]} read by nobody{ended}: the {owner} "
        f"dead, stopped or cut off ({people(case, members)}).",
        why="Nobody reads these partitions, and no other member can claim them, until ZooKeeper expires the "
        "session of the owner.",
        evidence=[quote for row in stale for quote in row.evidence][:_MOST_QUOTES],
        remedies=[
            Remedy(
                "End the process of the owner, if it is stopped or hangs, so that it does not come back. Its "
                "nodes go when ZooKeeper expires its session: a kill does not end that. Close consumers with "
                "shutdown(), which ends the session at once, and never with kill -9."
            )
        ],
        partitions=sorted(names),
        members=sorted(members),
        since=period.since,
        until=period.until,
        check=show_owner(case, names),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has partitions that belong to a member that is gone",
        "have partitions that belong to members that are gone",
        "partitions of members that were gone",
    ),
    of_zookeeper=True,
)
