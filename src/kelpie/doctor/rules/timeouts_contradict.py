"""KLP504 timeouts-contradict

What it sees: a consumer of Kafka 0.8's kind gives up a rebalance before ZooKeeper
can have expired the session of a member that died.

Why it matters: the nodes of a dead member stay until its session expires. A member
whose new share meets one of them tries again until then, or gives up (KLP501) and
reads nothing from then on.

How it decides: (rebalance.max.retries − 1) × rebalance.backoff.ms is less than the
session timeout: nothing is tried after the last sleep, so the usual rule, retries ×
back-off, promises too much. Settings are taken from .properties files and from what
a consumer logs at its start; the session timeout is the one that ZooKeeper granted,
if a log has it. Where the settings of a consumer are known, one that is left out has
its default: 4 retries, 2000 ms (zookeeper.sync.time.ms), 6000 ms.

What it needs: the settings of the group's consumers: their .properties files, or their
logs from the start on. ZooKeeper does not keep them. Without them it is undetermined.

What to do: more retries, or a longer back-off, by a margin: from the last heartbeat
of a dead member to its expiry, ZooKeeper takes up to one tick more than the session
timeout. The finding says how many retries that takes.

Kafka's defaults are the border, and are not told here: 6000 ms against 6000 ms. What
is left of a session when a rebalance begins is two thirds of the timeout at least,
and the timeout plus a tick at most: 4.5 to 7.3 s were measured, and 4 of 8 conflicts
failed on real 0.8.2.2. So the defaults are a matter of chance, and no contradiction.
KLP507 tells a group for whose size that chance is too high. A conflict that was seen
(KLP502) has the margin among its remedies. For one group, kelpie simulate
zookeeper-rebalance --advise says what to change.

When it is wrong: members that are always closed cleanly leave no nodes behind.

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
        f"In group {case.group}, {whom} would give up a rebalance {duration(worst.waits_ms)} after the first "
        f"try, and a dead member's nodes stay for {duration(session_ms)}.",
        why="A member whose new share meets a partition of a dead one then reads nothing, until somebody "
        "restarts it or another member comes or goes.",
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
