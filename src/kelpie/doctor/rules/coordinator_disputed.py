"""KLP103 coordinator-disputed

What it sees: brokers disagree about who coordinates the group, or the one they
name says that it is not.

Why it matters: a consumer asks any broker for its coordinator and believes the
answer. Sent to the wrong one it hears error 16 (NOT_COORDINATOR), asks again,
and may be sent there again: it joins late or never, and commits fail in
between. Groups listed by two brokers are the same thing seen from outside.

How it decides: the brokers' own views of the group's partition of
__consumer_offsets name different leaders; or FindCoordinator named different
brokers; or the broker that all of them name answered NOT_COORDINATOR. Brokers
that died in the meantime are not asked and do not count. While a broker restarts
or a leader is elected that is ordinary for a moment, so a survey asks again, for
some seconds. A dispute that is seen once is a notice. One that lasts for 2 s or
more is a warning, and critical if the named broker refuses.

What it needs: answers of two brokers at least twice, which every survey of a live
cluster asks for; the right Describe on __consumer_offsets or on the group. From
files with one description it is a notice at most, and without any answer it is
undetermined.

What to do: find the broker whose view is old (the lower leader epoch; the
finding names it) and restart it, or restore its connection to the controller.
If the named one refuses although all agree, restart that one: it missed its
election.

When it is wrong: an election that takes longer than some seconds. Kafka before 2.0
answers 16 also while it loads the partition.

Reproduce: kelpie lab run coordinator-disputed
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import takewhile

from kelpie.cluster import commands
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import (
    FIND_COORDINATOR,
    answer_evidence,
    last_reply,
    lookups,
    same_since,
)
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.model.words import duration, listed, numbered
from kelpie.observations import PartitionView

_TOOL = -1
_LASTS_MS = 2_000
_APART_MS = 300
"""Answers further apart belong to two rounds of questions."""


def judge(case: Case) -> Judgement:
    views = _views(case)
    named = {told_by: row.node_id for told_by, row in lookups(case).items() if row.error is ErrorCode.NONE}
    reply = last_reply(case)
    is_disputed = len({view.leader for view in views.values()}) > 1 or len(set(named.values())) > 1
    if reply is not None and reply.error is ErrorCode.NOT_COORDINATOR:
        return _found(case, views, named, is_disputed, reply.told_by)
    if case.offsets_partition is not None and case.cluster.has_leader(case.offsets_partition) is False:
        return ABSENT  # A broker that still names a leader is behind: KLP101.
    if is_disputed:
        return _found(case, views, named, is_disputed, None)
    if not views and not named and reply is None:
        return undetermined("two views of who leads the group's partition, or an answer of its coordinator")
    return ABSENT


def _views(case: Case) -> dict[int, PartitionView]:
    """The views of living brokers."""
    views = case.cluster.views.get(case.offsets_partition, ()) if case.offsets_partition else ()
    return {
        view.told_by: view
        for view in views
        if view.told_by is not None and case.cluster.is_alive(view.told_by) is not False
    }


def _found(
    case: Case,
    views: Mapping[int, PartitionView],
    named: Mapping[int | None, int],
    is_disputed: bool,
    refusing: int | None,
) -> Finding:
    partition = case.offsets_partition
    evidence = [
        Evidence.of(view, f"{view.name}: leader {view.leader}, leader epoch {view.leader_epoch}")
        for view in views.values()
    ]
    evidence += answer_evidence(lookups(case).values())
    reply = last_reply(case)
    if refusing is not None and reply is not None:
        evidence += answer_evidence([reply])
    behind = _behind(views)
    summary = (
        f"Group {case.group}: brokers disagree about its coordinator: {_sides(views, named)}."
        if is_disputed
        else f"Group {case.group}: {case.cluster.broker_name(refusing or 0)} is named as its coordinator, "
        "and answers that it is not."
    )
    lasted = max(_refused_ms(case), _disagreed_ms(case))
    lasts = lasted >= _LASTS_MS
    if lasts:
        summary = f"{summary[:-1]}, for at least {duration(lasted)}."
    grave = Severity.CRITICAL if refusing is not None else Severity.WARNING
    return RULE.finding(
        grave if lasts else Severity.NOTICE,
        case.group,
        summary,
        why="Consumers believe whichever broker they ask. Those that are sent to the wrong one hear "
        "NOT_COORDINATOR, ask again, and neither join nor commit in between.",
        evidence=evidence,
        remedies=_remedies(case, behind, refusing),
        cause=str(partition or case.group),
        brokers=behind or ([refusing] if refusing is not None else sorted(set(named.values()))),
        partitions=[partition] if partition else [],
        check=checks.offsets_topic(case.cluster),
    )


def _refused_ms(case: Case) -> int:
    """For how long the coordinator has denied, as far as that was seen."""
    since = same_since(case, ErrorCode.NOT_COORDINATOR)
    reply = last_reply(case)
    return (reply.at or 0) - since if since is not None and reply is not None else 0


def _disagreed_ms(case: Case) -> int:
    """For how long brokers have named different leaders or coordinators, round of questions by round."""
    partition = case.offsets_partition
    told = [
        (view.at, view.told_by, view.leader)
        for views in (case.cluster.views, case.cluster.earlier_views)
        for view in (views.get(partition, ()) if partition is not None else ())
        if view.told_by is not None
    ]
    named = [
        (row.at, row.told_by, row.node_id)
        for row in case.answers
        if row.asked == FIND_COORDINATOR and row.error is ErrorCode.NONE
    ]
    return max(_run_ms(case, told), _run_ms(case, named))


def _run_ms(case: Case, rows: Iterable[tuple[Instant | None, int | None, int]]) -> int:
    """From the first to the last of the newest rounds in which living brokers disagreed."""
    living = sorted(
        (at, leader)
        for at, node, leader in rows
        if at is not None and (node is None or case.cluster.is_alive(node) is not False)
    )
    rounds: list[tuple[Instant, set[int]]] = []
    last = None
    for at, leader in living:
        if last is None or at - last > _APART_MS:
            rounds.append((at, set()))
        rounds[-1][1].add(leader)
        last = at
    disputed = [at for at, _ in takewhile(lambda each: len(each[1]) > 1, reversed(rounds))]
    return disputed[0] - disputed[-1] if disputed else 0


def _sides(views: Mapping[int, PartitionView], named: Mapping[int | None, int]) -> str:
    """Who says what: "brokers 1 and 2 say broker 2, broker 3 says broker 1"."""
    sides: Mapping[int | None, int] = {told_by: view.leader for told_by, view in views.items()}
    if len(set(sides.values())) < 2:
        sides = named
    brokers_by_leader: defaultdict[int, list[int]] = defaultdict(list)
    for told_by, leader in sides.items():
        brokers_by_leader[leader].append(told_by if told_by is not None else _TOOL)
    return ", ".join(
        _say(sorted(brokers), f"broker {leader}" if leader >= 0 else "nobody")
        for leader, brokers in sorted(brokers_by_leader.items(), key=lambda side: (-len(side[1]), side[0]))
    )


def _say(nodes: list[int], leader: str) -> str:
    if nodes == [_TOOL]:
        return f"a tool says {leader}"
    return f"{numbered('broker', nodes)} {'says' if len(nodes) == 1 else 'say'} {leader}"


def _behind(views: Mapping[int, PartitionView]) -> list[int]:
    """The brokers that name another leader, of a lower epoch. Kafka before 2.1 tells no epochs."""
    newest = max(views.values(), key=lambda view: view.leader_epoch, default=None)
    return sorted(
        node
        for node, view in views.items()
        if newest is not None
        and 0 <= view.leader_epoch < newest.leader_epoch
        and view.leader != newest.leader
    )


def _remedies(case: Case, behind: list[int], refusing: int | None) -> list[Remedy]:
    remedies = [
        Remedy(
            "Look again: an election settles such a dispute within seconds.",
            commands.kelpie("doctor", case.cluster, name=case.group),
        )
    ]
    if behind:
        who = listed([case.cluster.broker_name(node) for node in behind])
        advice = (
            f"If it lasts: {who} has not heard of the newest election. Mend its connection to the "
            "controller, or restart it."
        )
        remedies.append(Remedy(advice))
    elif refusing is not None:
        advice = (
            f"If it lasts: restart {case.cluster.broker_name(refusing)}; it does not know that it leads "
            f"{case.offsets_partition or 'the partition'}. A follower takes over, nothing is lost."
        )
        remedies.append(Remedy(advice))
    return remedies


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has a disputed coordinator", "have a disputed coordinator"),
    asked_for=Sign.HOME_IN_DOUBT | Sign.LOOKED_UP | Sign.DISOWNED | Sign.NO_REPLY,
)
