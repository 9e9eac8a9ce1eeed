"""KLP503 partition-unowned

What it sees: members of a group of Kafka 0.8 (one that coordinates through ZooKeeper)
are registered, and a partition of a topic that they read has no owner.

Why it matters: no member reads the partition, and no log or metric says so. When a
member dies, the other members still count it until its session expires, and leave
partitions to it.

How it decides: two looks at the tree in ZooKeeper, two seconds or more apart and with
no rebalance between them, show no owner node for a partition that the assignment
gives to a registered member. Or the logs of all members show no owner for three
seconds or more. In a rebalance, partitions have no owner for a shorter time.

What it needs: two looks at the group's tree, two seconds or more apart (read access to
/consumers and /brokers in ZooKeeper); or the logs of all its consumers. With the logs
of some consumers only, or where only one look shows a partition without an owner, it is
undetermined. How many records wait is told if the ends of the logs are known (Describe
on the topics).

What to do: find the member that must own the partition. If it gave up (KLP501),
restart it. If it is dead and still registered (KLP505), wait until its session
expires.

When it is wrong: a member that was killed has no log line that says so. Without
ZooKeeper's own log, its partitions count as owned until another claims them.

Reproduce: kelpie lab run zookeeper-partition-unowned
"""

from collections.abc import Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.gaps import Gap, gaps, has_all_logs
from kelpie.doctor.zookeeper.looks import Standing, looks, standing
from kelpie.doctor.zookeeper.words import (
    OUTLAST,
    PARTITIONS,
    RESTART,
    SECOND_LOOK,
    TREE,
    look_again,
    places,
    quoted_look,
    seen_twice,
    show_node,
    waiting,
)
from kelpie.model.words import duration

_ALL_LOGS = "the logs of all its consumers"
_LONG_MS = 10_000
_MOST_QUOTES = 6


def judge(case: Case) -> Judgement:
    logged = gaps(case)
    stretches = [stretch for stretch in standing(case) if _in_both(stretch)]
    if logged or stretches:
        return _finding(case, [*logged, *_of_tree(stretches)], stretches, has_logs=bool(logged))
    all_looks, complete = looks(case), has_all_logs(case)
    if not all_looks:
        return ABSENT if complete else undetermined(_ALL_LOGS, TREE)
    newest = all_looks[-1]
    if newest.expected is None:
        return ABSENT if complete else undetermined(PARTITIONS)
    return undetermined(SECOND_LOOK) if newest.unowned and not complete else ABSENT


def _in_both(stretch: Standing) -> list[Gap]:
    missing = set(stretch.first.unowned) & set(stretch.last.unowned)
    return [Gap(name, stretch.since, stretch.until) for name in sorted(missing)]


def _of_tree(stretches: Sequence[Standing]) -> list[Gap]:
    return [gap for stretch in stretches for gap in _in_both(stretch)]


def _finding(case: Case, rows: Sequence[Gap], stretches: Sequence[Standing], *, has_logs: bool) -> Finding:
    is_open = any(gap.until is None for gap in rows) and not _all_owned_now(case)
    names = sorted({gap.name for gap in rows if gap.until is None or not is_open})
    since = min(gap.since for gap in rows if gap.name in names)
    until = max(gap.until if gap.until is not None else case.cluster.now for gap in rows)
    longest = max((gap.until if gap.until is not None else case.cluster.now) - gap.since for gap in rows)
    has = "has" if len(names) == 1 else "have"
    if is_open:
        severity = Severity.CRITICAL
        summary = f"In group {case.group}, {places(names)} {has} no owner{waiting(case, names)}."
    else:
        severity = Severity.WARNING if longest >= _LONG_MS else Severity.NOTICE
        summary = f"In group {case.group}, {places(names)} had no owner for up to {duration(longest)}."
    quotes = [quoted for stretch in stretches[-2:] for quoted in _quoted(stretch)]
    if has_logs:
        quotes += [_quoted_gap(case, gap) for gap in rows[:_MOST_QUOTES]]
    return RULE.finding(
        severity,
        case.group,
        summary,
        why="Members are registered, and each of them takes these partitions for another member's.",
        evidence=quotes[:_MOST_QUOTES],
        remedies=[RESTART, look_again(case.cluster)] if is_open else [OUTLAST],
        partitions=names,
        since=since,
        until=None if is_open else until,
        check=show_node(case, "ls", "owners", names[0].topic),
    )


def _quoted(stretch: Standing) -> tuple[Evidence, Evidence]:
    return quoted_look(stretch.last), seen_twice(stretch)


def _quoted_gap(case: Case, gap: Gap) -> Evidence:
    length = duration((case.cluster.now if gap.until is None else gap.until) - gap.since)
    return Evidence(f"{gap.name}: no member claims it for {length}", "the logs of all members", gap.since)


def _all_owned_now(case: Case) -> bool:
    """Whether the last look says so, which may be newer than logs."""
    all_looks = looks(case)
    return bool(all_looks) and all_looks[-1].expected is not None and not all_looks[-1].unowned


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has partitions that no member owns",
        "have partitions that no member owns",
        "partitions without an owner",
    ),
    of_zookeeper=True,
)
