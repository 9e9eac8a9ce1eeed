"""KLP508 zombie-owner

What it sees: a member of a group of Kafka 0.8 (one that coordinates through ZooKeeper)
owns partitions, and does not read them.

Why it matters: the partitions look healthy: they have an owner, and its process runs.
But the application has never got the streams of the connector. The lag grows without
end, and no rebalance helps as long as that process runs.

How it decides: the log of a member has ConsumerRebalanceFailedException at the start
of the consumer, where it reaches the application, no shutdown after it, and later a
rebalance that succeeds: the application has caught the exception without closing the
connector, and the connector's watcher claims partitions later. Or, in the tree, a
member has owned a partition for longer than two commit intervals and has not written
its offset since, records wait after that offset, and other members of the group do
write offsets.

What it needs: the log of the member; or two looks at the group's tree (read access to
/consumers in ZooKeeper) and the ends of the logs (Describe on the topics). Without a
log and a second look it is undetermined, and so it is where an owner writes nothing and
the end of its log is not known.

What to do: restart that process. In the application, call shutdown() on the connector
when createMessageStreams throws, then make a new one.

When it is wrong: a consumer that works on its first record for longer than two
commit intervals looks the same in the tree.

Reproduce: kelpie lab run zookeeper-zombie-owner
"""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.looks import Look, looks, standing
from kelpie.doctor.zookeeper.member_logs import MemberLog, member_logs, selected
from kelpie.doctor.zookeeper.period import Period
from kelpie.doctor.zookeeper.timeouts import COMMIT_MS, timeouts
from kelpie.doctor.zookeeper.words import (
    ENDS,
    LOGS,
    SECOND_LOOK,
    TREE,
    people,
    places,
    seen_twice,
    show_node,
    waiting,
)
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import duration
from kelpie.observations import EventKind

_START = "start-up"
_COMMITS = 2
_MOST_QUOTES = 6


class _Zombie(NamedTuple):
    member: str
    names: frozenset[TopicPartition]
    since: Instant
    until: Instant | None
    evidence: tuple[Evidence, ...]


def judge(case: Case) -> Judgement:
    zombies = [zombie for log in member_logs(case).values() for zombie in _logged(log)]
    known = {zombie.member for zombie in zombies}
    zombies += [zombie for zombie in _seen(case) if zombie.member not in known]
    if zombies:
        return _finding(case, sorted(zombies, key=lambda zombie: zombie.since))
    all_looks = looks(case)
    if not all_looks:
        return ABSENT if case.events else undetermined(LOGS, TREE)
    if not case.events and all_looks[-1].owners and not standing(case):
        return undetermined(SECOND_LOOK)
    return undetermined(ENDS) if _lacks_ends(case) else ABSENT


def _lacks_ends(case: Case) -> bool:
    """Whether a member is idle for long, others are not, and nobody knows if it had anything to read."""
    for stretch in standing(case):
        working = _working(stretch.last)
        for name in _long_unwritten(case, stretch.last):
            member = stretch.last.owners[name].member
            if working - {member} and member not in working and not case.cluster.ends.get(name):
                return True
    return False


def _logged(log: MemberLog) -> list[_Zombie]:
    """After a failure at the start that did not end the connector, each success claims for nobody."""
    zombies = []
    for rebalance in log.rebalances():
        failure = rebalance.exhausted
        if failure is None or failure.at is None or failure.details.get("form") != _START:
            continue
        success = log.first(failure.at, EventKind.ZK_REBALANCED)
        closed = log.closed_after(failure.at)
        if success is None or success.at is None or (closed is not None and closed < success.at):
            continue
        names = frozenset(selected(success))
        if names:
            quotes = Evidence.of(failure, failure.text), Evidence.of(success, success.text)
            zombies.append(_Zombie(log.member, names, success.at, closed, quotes))
    return zombies


def _seen(case: Case) -> list[_Zombie]:
    zombies = {}
    for stretch in standing(case):
        idle: dict[str, list[TopicPartition]] = {}
        working = _working(stretch.last)
        for name in _long_unwritten(case, stretch.last):
            if _has_waited(case, stretch.last, name):
                idle.setdefault(stretch.last.owners[name].member, []).append(name)
        for member, names in idle.items():
            if working - {member} and member not in working:
                since = min(stretch.last.owners[name].created or 0 for name in names)
                quotes = (_quoted(stretch.last, names), seen_twice(stretch))
                zombies[member] = _Zombie(member, frozenset(names), since, stretch.until, quotes)
    return list(zombies.values())


def _working(look: Look) -> set[str]:
    """Members that have written an offset of a partition since they own it."""
    written = {row.name: row.modified for row in look.row.offsets}
    return {
        owner.member
        for name, owner in look.owners.items()
        if (written.get(name) or 0) > (owner.created or 0) > 0
    }


def _long_unwritten(case: Case, look: Look) -> list[TopicPartition]:
    """Partitions whose offset was last written before their owner claimed them, some commits ago."""
    known = timeouts(case)
    written = {row.name: row.modified for row in look.row.offsets}
    names = []
    for name, owner in look.owners.items():
        commit_ms = known[owner.member].commit_ms if owner.member in known else COMMIT_MS
        modified = written.get(name)
        if owner.created is None or modified is None or look.at - owner.created <= _COMMITS * commit_ms:
            continue
        if modified <= owner.created:
            names.append(name)
    return names


def _has_waited(case: Case, look: Look, name: TopicPartition) -> bool:
    """Whether records wait behind its offset."""
    offset = next(row for row in look.row.offsets if row.name == name)
    ends = case.cluster.ends.get(name, ())
    return any(end.latest > offset.offset for end in ends[-1:])


def _quoted(look: Look, names: Sequence[TopicPartition]) -> Evidence:
    offset = next(row for row in look.row.offsets if row.name == names[0])
    text = f"offsets/{offset.topic}/{offset.partition} = {offset.offset}, written before its owner claimed it"
    return Evidence(text, look.row.source, offset.modified)


def _finding(case: Case, zombies: Sequence[_Zombie]) -> Finding:
    members = {zombie.member for zombie in zombies}
    names = {name for zombie in zombies for name in zombie.names}
    period = Period.of(zombies)
    if period.is_over:
        text = f"owned {places(names)} for {duration(period.longest_ms)}, and nobody read them"
    else:
        text = f"owns {places(names)}, and nobody reads them{waiting(case, names)}"
    return RULE.finding(
        Severity.WARNING if period.is_over else Severity.CRITICAL,
        case.group,
        f"In group {case.group}, {people(case, members)} {text}.",
        why="The application does not read from this connector, which claims partitions all the same. No "
        "rebalance helps as long as the process lives.",
        evidence=[quote for zombie in zombies for quote in zombie.evidence][:_MOST_QUOTES],
        remedies=[
            Remedy("Restart that process."),
            Remedy(
                "In the application: when createMessageStreams throws, call shutdown() on the connector, and "
                "make a new one."
            ),
        ],
        partitions=sorted(names),
        members=sorted(members),
        since=period.since,
        until=period.until,
        check=show_node(case, "stat", "offsets", *min(names)),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has an owner that reads nothing",
        "have owners that read nothing",
        "an owner that read nothing",
    ),
    of_zookeeper=True,
)
