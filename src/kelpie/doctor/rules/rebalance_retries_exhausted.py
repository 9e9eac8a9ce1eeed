"""KLP501 rebalance-retries-exhausted

What it sees: a consumer of Kafka 0.8 (one that coordinates through ZooKeeper) has
given up a rebalance. It is registered in ZooKeeper and owns no partition.

Why it matters: the process goes on running and reads nothing, and only its log
says so: the exception ends in a thread of the library. The other members still
leave its share of the partitions to it, so no member reads them. This lasts until
a member joins or leaves the group. Only at the start of a consumer does the
exception reach the application.

How it decides: a log has ConsumerRebalanceFailedException, and no later success of
that member. Or two looks at the tree in ZooKeeper, with no rebalance between them,
show a member without any partition, though the assignment that all members compute
has some for it, and this has lasted longer than all its retries take
(rebalance.max.retries × rebalance.backoff.ms; 30 s if these are not known).

What it needs: the logs of the group's consumers; or two looks at its tree (read access
to /consumers and /brokers in ZooKeeper; kelpie doctor --zookeeper looks twice). Without
both, where only one look shows a member that owns nothing, or where a member's
subscription or a topic's partitions are unknown, it is undetermined. Its settings
(.properties files, logs) say how long the retries take.

What to do: restart the member that failed. Then make the retries outlast a
session (KLP504), and find the member whose owner node was in the way (KLP502,
KLP505).

When it is wrong: without logs and settings, a consumer that retries for more than
30 s is taken for one that has given up. If the clocks of ZooKeeper and of
Kelpie are far apart, the time since the last rebalance is wrong.

Reproduce: kelpie lab run zookeeper-retries-exhausted
"""

from collections.abc import Sequence
from typing import NamedTuple

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.looks import Standing, looks, standing
from kelpie.doctor.zookeeper.member_logs import MemberLog, member_logs
from kelpie.doctor.zookeeper.period import Period
from kelpie.doctor.zookeeper.timeouts import timeouts
from kelpie.doctor.zookeeper.words import (
    LOGS,
    OUTLAST,
    PARTITIONS,
    RESTART,
    SECOND_LOOK,
    TREE,
    look_again,
    people,
    places,
    seen_twice,
    short,
    show_node,
    waiting,
)
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration

UNKNOWN_RETRIES_MS = 30_000
_TRIES_THEMSELVES_MS = 2_000
_AT_ONCE_MS = 1_000
_MOST_QUOTES = 6


class _Failure(NamedTuple):
    member: str
    since: Instant
    until: Instant | None
    evidence: tuple[Evidence, ...]
    share: tuple[TopicPartition, ...] = ()


def judge(case: Case) -> Judgement:
    logs, all_looks = member_logs(case), looks(case)
    failures = [failure for log in logs.values() for failure in _logged(case, log)]
    failures += _seen(case, {failure.member for failure in failures} | logs.keys())
    if failures:
        return _finding(case, failures)
    if not all_looks:
        return ABSENT if logs else undetermined(LOGS, TREE)
    newest = all_looks[-1]
    if newest.expected is None:
        return ABSENT if logs else undetermined(PARTITIONS)
    return undetermined(SECOND_LOOK) if newest.idle.keys() - logs.keys() else ABSENT


def _logged(case: Case, log: MemberLog) -> list[_Failure]:
    failures = []
    for rebalance in log.rebalances():
        event = rebalance.exhausted
        if event is not None and event.at is not None:
            until = log.over_at(event) or _gone_at(case, log.member, event.at)
            failures.append(_Failure(log.member, event.at, until, (Evidence.of(event, event.text),)))
    return failures


def _gone_at(case: Case, member: str, after: Instant) -> Instant | None:
    """When a look at the tree does not have the member any more, or has it with partitions."""
    for look in looks(case):
        if look.at > after:
            owns = any(owner.member == member for owner in look.owners.values())
            if owns or all(row.member != member for row in look.registrations):
                return look.at
    return None


def _seen(case: Case, but: set[str]) -> list[_Failure]:
    """Members without a log that stand in the tree with nothing."""
    known = timeouts(case)
    failures: dict[str, _Failure] = {}
    for stretch in standing(case):
        for member, share in stretch.last.idle.items():
            patience = (
                known[member].gives_up_after_ms + _TRIES_THEMSELVES_MS
                if member in known
                else UNKNOWN_RETRIES_MS
            )
            if member not in but and stretch.length_ms >= patience:
                failures[member] = _Failure(
                    member, stretch.since, stretch.until, _quoted(case, stretch, member, share), share
                )
    return list(failures.values())


def _quoted(
    case: Case, stretch: Standing, member: str, share: Sequence[TopicPartition]
) -> tuple[Evidence, ...]:
    what = f"{short(case, member)} is registered and owns nothing; {places(share)} must be its own"
    return Evidence.of(stretch.last.row, what), seen_twice(stretch)


def _finding(case: Case, failures: Sequence[_Failure]) -> Finding:
    failures = sorted(failures, key=lambda failure: failure.since)
    members = sorted({failure.member for failure in failures})
    standing_now = [failure for failure in failures if failure.until is None]
    period = Period.of(failures)
    share = [name for failure in standing_now for name in failure.share]
    times = "" if len(failures) == len(members) else f" {counted(len(failures), 'time')}"
    one = len(members) == 1
    gave_up = (
        f"gave up rebalancing{times}, because all retries met partitions that another member still owned"
    )
    if not period.is_over:
        text = (
            f"{'reads' if one else 'read'} nothing{waiting(case, share)}. {'It' if one else 'They'} {gave_up}"
        )
    elif period.longest_ms >= _AT_ONCE_MS:
        text = f"read nothing for {duration(period.longest_ms)}. {'It' if one else 'They'} {gave_up}"
    else:
        text = f"{'was' if one else 'were'} closed: {'it' if one else 'they'} {gave_up}"
    return RULE.finding(
        Severity.WARNING if period.is_over else Severity.CRITICAL,
        case.group,
        f"In group {case.group}, {people(case, members)} {text}.",
        why="A consumer that has given up runs on, reads nothing and says nothing more. The others leave its "
        "share of the partitions to it, so nobody reads them until a member comes or goes.",
        evidence=[quote for failure in failures for quote in failure.evidence][:_MOST_QUOTES],
        remedies=[OUTLAST] if period.is_over else [RESTART, OUTLAST, look_again(case.cluster)],
        partitions=share,
        members=members,
        since=period.since,
        until=period.until,
        check=show_node(case, "ls", "owners", min(share).topic) if share else show_node(case, "ls", "ids"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "has members that gave up rebalancing and read nothing",
        "have members that gave up rebalancing and read nothing",
        "members that gave up rebalancing",
    ),
    of_zookeeper=True,
)
