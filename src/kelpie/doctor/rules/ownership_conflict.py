"""KLP502 ownership-conflict

What it sees: a consumer of Kafka 0.8 (one that coordinates through ZooKeeper) tries
to claim a partition, and each time finds that another member owns it.

Why it matters: the consumer reads nothing at all until the owner releases the
partition, because after one conflict it releases all partitions that it has
claimed. It gives up after a few tries (KLP501).

How it decides: logs of a consumer have conflicts in two tries or more of one
rebalance. Or ZooKeeper's own log refuses the same owner node to the same session
twice within a minute. Or two looks at the tree, with no rebalance between them, show
a partition with another owner than the assignment that all members compute, and the
member that must own it owns nothing.

What it needs: the logs of the group's consumers, or ZooKeeper's own log; or two looks
at its tree (read access to /consumers and /brokers in ZooKeeper). Without all of them,
or where only one look shows another owner, it is undetermined.

What to do: the finding names the member that owns the partition. If its process is
dead, ZooKeeper deletes its nodes when its session expires (KLP505). If it is stopped
or hangs, end it.

When it is wrong: not known. One conflict that the next try overcomes is ordinary in a
rebalance, and is not reported.

Reproduce: kelpie lab run zookeeper-ownership-conflict
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.looks import looks, standing
from kelpie.doctor.zookeeper.member_logs import member_logs
from kelpie.doctor.zookeeper.period import Period
from kelpie.doctor.zookeeper.sessions import session_in, sessions
from kelpie.doctor.zookeeper.words import (
    LOGS,
    OUTLAST,
    PARTITIONS,
    SECOND_LOOK,
    TREE,
    people,
    places,
    quoted_owner,
    seen_twice,
    short,
    show_owner,
)
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration
from kelpie.observations import Event, EventKind
from kelpie.observations.ordering import time_of

_TRIES = 2
_TOGETHER_MS = 60_000
_MOST_QUOTES = 6


_Refused = defaultdict[TopicPartition, list[Event]]


class _Conflict(NamedTuple):
    member: str
    holders: frozenset[str]
    names: frozenset[TopicPartition]
    since: Instant
    until: Instant | None
    gave_up: bool
    evidence: tuple[Evidence, ...]


def judge(case: Case) -> Judgement:
    conflicts = _logged(case)
    contested = {name for conflict in conflicts for name in conflict.names}
    conflicts += [*_by_server(case, contested), *_seen(case, contested)]
    if conflicts:
        return _finding(case, sorted(conflicts, key=lambda conflict: conflict.since))
    all_looks, has_logs = looks(case), bool(case.events)
    if not all_looks:
        return ABSENT if has_logs else undetermined(LOGS, TREE)
    newest = all_looks[-1]
    if newest.expected is None:
        return ABSENT if has_logs else undetermined(PARTITIONS)
    blocked = any(claimant in newest.idle for _, claimant, _ in newest.contested)
    return undetermined(SECOND_LOOK) if blocked and not has_logs else ABSENT


def _logged(case: Case) -> list[_Conflict]:
    conflicts = []
    for log in member_logs(case).values():
        for rebalance in log.rebalances():
            if rebalance.failed_tries < _TRIES or not rebalance.conflicts:
                continue
            succeeded, exhausted = rebalance.succeeded, rebalance.exhausted
            until = succeeded.at if succeeded is not None else None
            if exhausted is not None:
                until = log.over_at(exhausted)
            conflicts.append(
                _Conflict(
                    log.member,
                    frozenset(rebalance.contested.values()),
                    frozenset(rebalance.contested),
                    rebalance.conflicts[0].at or rebalance.begun,
                    until,
                    exhausted is not None,
                    tuple(Evidence.of(event, event.text) for event in rebalance.conflicts[-2:]),
                )
            )
    return conflicts


def _by_server(case: Case, known: Iterable[TopicPartition]) -> list[_Conflict]:
    """What only ZooKeeper's own log says. It does not say when the conflict ended."""
    known, whose = set(known), sessions(case)
    refused: defaultdict[int, defaultdict[TopicPartition, list[Event]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for event in case.events_of(EventKind.ZK_SERVER_CONFLICT):
        session = session_in(event)
        if None not in (session, event.topic, event.partition, event.at):
            refused[session or 0][TopicPartition(event.topic or "", event.partition or 0)].append(event)
    conflicts = []
    for session, by_name in refused.items():
        again = {
            name: events
            for name, events in by_name.items()
            if name not in known and len(events) >= _TRIES and _span(events) <= _TOGETHER_MS
        }
        if again:
            events = sorted((event for rows in again.values() for event in rows), key=time_of)
            member = whose.get(session, f"the consumer with session {session:#x}")
            quotes = tuple(Evidence.of(event, event.text) for event in events[-2:])
            first, last = time_of(events[0]), time_of(events[-1])
            conflicts.append(_Conflict(member, frozenset(), frozenset(again), first, last, False, quotes))
    return conflicts


def _span(events: Sequence[Event]) -> int:
    return time_of(events[-1]) - time_of(events[0])


def _seen(case: Case, known: Iterable[TopicPartition]) -> list[_Conflict]:
    known = set(known)
    conflicts: dict[TopicPartition, _Conflict] = {}
    for stretch in standing(case):
        for name, claimant, owner in stretch.last.contested:
            if name not in known and claimant in stretch.last.idle:
                quotes = (quoted_owner(stretch.last, owner), seen_twice(stretch))
                conflicts[name] = _Conflict(
                    claimant,
                    frozenset({owner.member}),
                    frozenset({name}),
                    stretch.since,
                    stretch.until,
                    False,
                    quotes,
                )
    return list(conflicts.values())


def _finding(case: Case, conflicts: Sequence[_Conflict]) -> Finding:
    names = {name for conflict in conflicts for name in conflict.names}
    members = {conflict.member for conflict in conflicts}
    holders = {holder for conflict in conflicts for holder in conflict.holders}
    period = Period.of(conflicts)
    gave_up = any(conflict.gave_up for conflict in conflicts)
    owner = people(case, holders) if holders else "another consumer"
    tries = f" in {counted(len(conflicts), 'rebalance')}" if len(conflicts) > 1 else ""
    if not period.is_over:
        text = "read nothing" if len(members) > 1 else "reads nothing"
    elif period.longest_ms:
        text = f"read nothing for {duration(period.longest_ms)} or longer"
    else:
        text = "read nothing for a time"
    return RULE.finding(
        Severity.NOTICE if period.is_over and not gave_up else Severity.WARNING,
        case.group,
        f"In group {case.group}, {people(case, members)} {text}: {owner} owned {places(names)}, so that "
        f"every try to claim {'it' if len(names) == 1 else 'them'} failed{tries}.",
        why="A member that cannot claim one partition releases all of them, and reads nothing until a try "
        "succeeds. It gives up after rebalance.max.retries.",
        evidence=[quote for conflict in conflicts for quote in conflict.evidence][:_MOST_QUOTES],
        remedies=_remedies(case, holders, is_over=period.is_over),
        partitions=sorted(names),
        members=sorted(members),
        since=period.since,
        until=period.until,
        check=show_owner(case, names),
    )


def _remedies(case: Case, holders: Iterable[str], *, is_over: bool) -> list[Remedy]:
    if is_over:
        return [OUTLAST]
    names = ", ".join(short(case, holder) for holder in sorted(holders)) or "the owner"
    return [
        Remedy(
            f"Look at the process of {names}. If it hangs or is stopped, end it. ZooKeeper deletes its nodes "
            "when its session expires; restart the waiting member after that."
        ),
        OUTLAST,
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has members that cannot claim their partitions",
        "have members that cannot claim their partitions",
        "conflicts about partitions",
    ),
    of_zookeeper=True,
)
