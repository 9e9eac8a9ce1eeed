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
that died in the meantime are not asked and do not count.

What to do: find the broker whose view is old (the lower leader epoch; the
finding names it) and restart it, or restore its connection to the controller.
If the named one refuses although all agree, restart that one: it missed its
election.

When it is wrong: in the second of an election brokers disagree, rightly. Kafka
before 2.0 answers 16 also while it loads the partition. Ask again.

Reproduce: kelpie lab run coordinator-disputed
"""

from collections import defaultdict
from collections.abc import Mapping

from kelpie.cluster.commands import connecting
from kelpie.doctor.case import Case
from kelpie.doctor.coordinator_replies import last_reply, lookup_evidence, lookups
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode
from kelpie.model.quoting import quoted
from kelpie.model.words import listed
from kelpie.observations import PartitionView

NOBODY = -1


def judge(case: Case) -> Judgement:
    partition = case.offsets_partition
    told = _tellers(case)
    named = {told_by: row.node_id for told_by, row in lookups(case).items() if row.error is ErrorCode.NONE}
    reply = last_reply(case)
    refuses = reply is not None and reply.error is ErrorCode.NOT_COORDINATOR
    if refuses:
        return _found(case, told, named, refusing=reply.told_by if reply is not None else None)
    if partition is not None and case.cluster.has_leader(partition) is False:
        return ABSENT  # Whoever still names somebody is behind: KLP101.
    if len({view.leader for view in told.values()}) > 1 or len(set(named.values())) > 1:
        return _found(case, told, named, refusing=None)
    if not told and not named and reply is None:
        return undetermined("two views of who leads the group's partition, or an answer of its coordinator")
    return ABSENT


def _tellers(case: Case) -> dict[int, PartitionView]:
    """The views of living brokers."""
    views = case.cluster.views.get(case.offsets_partition, ()) if case.offsets_partition else ()
    return {
        view.told_by: view
        for view in views
        if view.told_by is not None and case.cluster.is_alive(view.told_by) is not False
    }


def _found(
    case: Case,
    told: Mapping[int, PartitionView],
    named: Mapping[int | None, int],
    refusing: int | None,
) -> Finding:
    partition = case.offsets_partition
    evidence = [
        Evidence(f"{view.name}: leader {view.leader}, leader epoch {view.leader_epoch}", view.source, view.at)
        for view in told.values()
    ]
    evidence += lookup_evidence(lookups(case).values())
    reply = last_reply(case)
    if refusing is not None and reply is not None:
        evidence.append(reply.evidence)
    behind = _behind(told)
    disputed = len({view.leader for view in told.values()}) > 1 or len(set(named.values())) > 1
    summary = (
        f"Group {case.group}: brokers disagree about its coordinator: {_sides(told, named)}."
        if disputed
        else f"Group {case.group}: {case.cluster.broker_name(refusing or 0)} is named as its coordinator, "
        "and answers that it is not."
    )
    return RULE.finding(
        Severity.CRITICAL if refusing is not None else Severity.WARNING,
        case.group,
        summary,
        why="Consumers believe whichever broker they ask. Those that are sent to the wrong one hear "
        "NOT_COORDINATOR, ask again, and neither join nor commit in between.",
        evidence=evidence,
        remedies=_remedies(case, behind, refusing),
        cause=str(partition or case.group),
        brokers=behind or ([refusing] if refusing is not None else sorted(set(named.values()))),
        partitions=[partition] if partition else [],
    )


def _sides(told: Mapping[int, PartitionView], named: Mapping[int | None, int]) -> str:
    """Who says what: "brokers 1 and 2 say broker 2, broker 3 says broker 1"."""
    says: defaultdict[int, list[int]] = defaultdict(list)
    sides: Mapping[int | None, int] = {told_by: view.leader for told_by, view in told.items()}
    if len(set(sides.values())) < 2:
        sides = named
    for teller, leader in sides.items():
        says[leader].append(teller if teller is not None else NOBODY)
    return ", ".join(
        f"{_brokers(sorted(tellers))} {_leader(leader)}"
        for leader, tellers in sorted(says.items(), key=lambda side: (-len(side[1]), side[0]))
    )


def _brokers(nodes: list[int]) -> str:
    if nodes == [NOBODY]:
        return "a tool says"
    return f"broker {nodes[0]} says" if len(nodes) == 1 else f"brokers {listed(nodes)} say"


def _leader(node: int) -> str:
    return f"broker {node}" if node >= 0 else "nobody"


def _behind(told: Mapping[int, PartitionView]) -> list[int]:
    """Who names another leader, of a lower epoch. Kafka before 2.1 tells no epochs."""
    newest = max(told.values(), key=lambda view: view.leader_epoch, default=None)
    return sorted(
        node
        for node, view in told.items()
        if newest is not None
        and 0 <= view.leader_epoch < newest.leader_epoch
        and view.leader != newest.leader
    )


def _remedies(case: Case, behind: list[int], refusing: int | None) -> list[Remedy]:
    remedies = [
        Remedy(
            "Ask again: an election settles such a dispute within seconds.",
            f"kelpie doctor {connecting(case.cluster)}{quoted(case.group)}",
        )
    ]
    if behind:
        remedies.append(
            Remedy(
                f"If it lasts: {listed([case.cluster.broker_name(node) for node in behind])} has not heard "
                "of the newest election. Mend its connection to the controller, or restart it."
            )
        )
    elif refusing is not None:
        remedies.append(
            Remedy(
                f"If it lasts: restart {case.cluster.broker_name(refusing)}; it does not know that it "
                f"leads {case.offsets_partition or 'the partition'}. A follower takes over, nothing is lost."
            )
        )
    return remedies


RULE = Rule.of(
    __name__,
    judge,
    presentation=Presentation(of_one="has a disputed coordinator", of_many="have a disputed coordinator"),
)
