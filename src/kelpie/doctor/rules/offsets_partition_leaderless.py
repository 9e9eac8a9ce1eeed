"""KLP101 offsets-partition-leaderless

What it sees: the partition of __consumer_offsets that the group lives on has no
leader, or one that is dead.

Why it matters: its leader is the group's coordinator. Without it nobody in the
group can join, fetch committed offsets or commit; consumers wait without an
error in their logs, and Kafka's tools leave the group out of lists. It does not
heal by itself: only when a replica comes back.

How it decides: abs(hash of the group's name) modulo the number of partitions
names the partition; a broker's metadata shows leader −1 for it, or a leader
that is not alive (Kafka 0.9 goes on naming the dead one). Without metadata,
error 15 in answer to FindCoordinator, from every broker that could be asked, is
as good.

What to do: start one of the brokers that hold a replica; that loses nothing. If
they are gone for good, move the group to a name on a healthy partition (kelpie
rehome), or elect an unclean leader and lose the newest commits.

When it is wrong: a leader that the doctor cannot reach but the clients can. The
finding says who said it was dead; compare KLP105.

Reproduce: kelpie lab run coordinator-outage
"""

from kelpie.doctor.case import Case, ClusterView
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Rule
from kelpie.doctor.words import connecting, listed, quoted
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import CoordinatorAnswer, PartitionView


def judge(case: Case) -> Judgement:
    partition = case.offsets_partition
    if partition is None:
        return undetermined("the number of partitions of __consumer_offsets")
    view = case.cluster.view(partition)
    if view is None:
        return _by_answers(case, partition)
    has_leader = case.cluster.has_leader(partition)
    if has_leader is None:
        return undetermined(f"whether broker {view.leader}, the leader of {partition}, is alive")
    return ABSENT if has_leader else _found(case, partition, view)


def _by_answers(case: Case, partition: TopicPartition) -> Judgement:
    """Nobody described the partition; but who was asked for the coordinator may have said it."""
    lookups = [answer for answer in case.answers if answer.asked == "FindCoordinator"]
    if not lookups:
        return undetermined(f"the leader of {partition}")
    newest: dict[int | None, CoordinatorAnswer] = {answer.told_by: answer for answer in lookups}
    if all(answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE for answer in newest.values()):
        return _found(case, partition, None)
    return ABSENT


def _found(case: Case, partition: TopicPartition, view: PartitionView | None) -> Finding:
    cluster = case.cluster
    dead = [node for node in (view.replicas if view else ()) if cluster.is_alive(node) is False]
    return RULE.finding(
        Severity.CRITICAL,
        case.group,
        f"Group {case.group} has no coordinator: {partition} {_state(view)}.",
        why="Until it has a leader, nobody in this group can join, fetch committed offsets or commit.",
        evidence=_evidence(case, view),
        remedies=_remedies(cluster, case.group, partition, dead),
        cause=str(partition),
        brokers=dead,
        partitions=[partition],
    )


def _state(view: PartitionView | None) -> str:
    if view is None:
        return "has no leader, as every broker says that could be asked"
    if view.leader < 0:
        return f"has no leader; its replicas are on brokers {listed(view.replicas)}"
    return (
        f"is led by broker {view.leader}, which is dead; its replicas are on brokers {listed(view.replicas)}"
    )


def _evidence(case: Case, view: PartitionView | None) -> list[Evidence]:
    found = []
    if view is not None:
        in_sync = listed(view.in_sync) or "none"
        seen = f"leader {view.leader}, replicas {listed(view.replicas)}, in sync {in_sync}"
        found.append(Evidence(f"{view.name}: {seen}", view.source, view.at))
        for node in view.replicas:
            broker = case.cluster.brokers.get(node)
            if broker is not None and broker.alive is False:
                found.append(Evidence(f"{broker} is dead: {broker.reason}", broker.source, broker.at))
    found += [
        Evidence(f"{answer.asked} → {answer.error.value} {answer.error.name}", answer.source, answer.at)
        for answer in case.answers
        if answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    ]
    return found


def _remedies(cluster: ClusterView, group: str, partition: TopicPartition, dead: list[int]) -> list[Remedy]:
    remedies = []
    if dead:
        which = listed(tuple(dead), "or")
        remedies.append(Remedy(f"Start broker {which}: it has a replica, and nothing is lost."))
    remedies.append(
        Remedy(
            "If they are gone for good, move the group, offsets and all, to a name on a healthy partition.",
            f"kelpie rehome {connecting(cluster)}{quoted(group)}",
        )
    )
    remedies.append(
        Remedy(
            "Last resort: elect a leader that was not in sync. Commits that only the dead have are lost.",
            f"kelpie elect {connecting(cluster)}{partition} --unclean",
        )
    )
    return remedies


RULE = Rule.of(__name__, judge)
