"""KLP504 timeouts-contradict

What it sees: by its settings, a consumer of Kafka 0.8 (one that coordinates through
ZooKeeper) gives up a rebalance before ZooKeeper expires the session of a member that
died.

Why it matters: the owner nodes of a dead member stay until its session expires. A
member that must claim such a partition tries again, gives up before that (KLP501),
and reads nothing from then on.

How it decides: (rebalance.max.retries − 1) × rebalance.backoff.ms is less than the
session timeout. There is no try after the last back-off, so the time is one back-off
shorter than the usual rule (retries × back-off) says. Settings are taken from
.properties files and from what a consumer logs at its start; the session timeout is
the one that ZooKeeper granted, if a log has it. A setting that the .properties file
leaves out has its default: 4 retries, 2000 ms (zookeeper.sync.time.ms), 6000 ms.

What it needs: the settings of the group's consumers: their .properties files, or their
logs from the start on. Without them it is undetermined. ZooKeeper does not keep them,
so no tool of Kafka or ZooKeeper shows them.

What to do: set more retries, or a longer back-off. Leave a margin: from the last
heartbeat of a dead member, ZooKeeper takes up to one tick more than the session
timeout. The finding says how many retries are enough.

Kafka's defaults are not reported here: both times are 6000 ms. When a rebalance
begins, a dead member's session lasts for at least two thirds of the timeout, and for
at most the timeout plus a tick: 4.5 to 7.3 s were measured, and 4 of 8 conflicts
failed on real 0.8.2.2. So with the defaults it is a matter of chance. KLP507 reports
a group for whose size that chance is too high, and KLP502 a conflict that was seen.
For one group, kelpie simulate zookeeper-rebalance --advise says what to change.

When it is wrong: members that are always closed with shutdown() leave no nodes behind.

Reproduce: kelpie lab run zookeeper-timeouts-contradict
"""

from collections.abc import Sequence
from math import ceil

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.zookeeper.timeouts import Timeouts, timeouts
from kelpie.doctor.zookeeper.words import people
from kelpie.model.words import duration

SETTINGS = "the settings of its consumers: their .properties files, or their logs from the start on"
_MARGIN_MS = 2_000
"""ZooKeeper's usual tick."""
_MOST_QUOTES = 6


def judge(case: Case) -> Judgement:
    known = timeouts(case)
    if not known:
        return undetermined(SETTINGS)
    longest = max(row.session_ms for row in known.values())
    short_of = [row for row in known.values() if row.waits_ms < longest]
    return _finding(case, short_of, longest, len(known)) if short_of else ABSENT


def _finding(case: Case, rows: Sequence[Timeouts], session_ms: int, total: int) -> Finding:
    worst = min(rows, key=lambda row: row.waits_ms)
    needed = ceil((session_ms + _MARGIN_MS) / max(1, worst.backoff_ms)) + 1
    whom = (
        ("both consumers" if total == 2 else f"all {total} consumers")
        if len(rows) == total and total > 1
        else people(case, [row.member for row in rows])
    )
    return RULE.finding(
        Severity.WARNING,
        case.group,
        f"In group {case.group}, {whom} may stop reading when another member dies: retries of a rebalance "
        f"end {duration(worst.waits_ms)} after the first try, and a dead member's nodes stay for "
        f"{duration(session_ms)}.",
        why="A member whose new share has a partition of the dead one gives up, and reads nothing until "
        "it is restarted, or until another member joins or leaves.",
        evidence=_quoted(case, rows),
        remedies=[
            Remedy(
                f"Set rebalance.max.retries={needed} with rebalance.backoff.ms={worst.backoff_ms}, in all "
                f"consumers of {case.group}: so retries outlast the session by a tick of ZooKeeper."
            ),
            Remedy(
                "A shorter session would do as well, but then a long pause of a healthy consumer expires it."
            ),
        ],
        members=[row.member for row in rows],
    )


def _quoted(case: Case, rows: Sequence[Timeouts]) -> list[Evidence]:
    """Consumers with the same settings together."""
    alike: dict[tuple[int, int, int], list[str]] = {}
    for row in rows:
        alike.setdefault((row.retries, row.backoff_ms, row.session_ms), []).append(row.member)
    return [
        Evidence(
            f"{people(case, members)}: rebalance.max.retries={retries}, rebalance.backoff.ms={backoff}, "
            f"zookeeper.session.timeout.ms={session}: ({retries} − 1) × {backoff} ms = "
            f"{(retries - 1) * backoff} ms"
        )
        for (retries, backoff, session), members in list(alike.items())[:_MOST_QUOTES]
    ]


RULE = Rule.of(
    __name__,
    judge,
    Presentation(
        "gives up rebalancing before a dead member's session expires",
        "give up rebalancing before a dead member's session expires",
    ),
    of_zookeeper=True,
)
