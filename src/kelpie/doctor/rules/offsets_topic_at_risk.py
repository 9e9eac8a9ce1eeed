"""KLP106 offsets-topic-at-risk

What it sees: partitions of __consumer_offsets of which a single broker holds
the only copy in sync; or that have fewer copies in sync than they need to take
commits.

Why it matters: when that broker goes, the groups on these partitions have no
coordinator (KLP101), and nothing else in the cluster need be wrong. Below
min.insync.replicas the groups can still read, and every commit fails already.

How it decides: for each living broker, which partitions have it alone in sync;
the group's names are hashed to see which the loss would hit. With one replica by
configuration (offsets.topic.replication.factor=1, the default of many quick
starts) that is so on the best of days: a warning, or a notice if there is only
one broker anyway.

What to do: bring the missing replicas back; with one replica by configuration,
add more (kelpie reassign-offsets-topic writes the plan).

When it is wrong: a broker that has just been started is out of sync for as long
as it catches up.

Reproduce: kelpie lab run offsets-topic-at-risk
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.health import not_dead_in_sync
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, first_of, listed, numbered, ranges
from kelpie.observations import OFFSETS_TOPIC, PartitionView

_SOME_ARE_MISSING = ErrorCode.REPLICA_NOT_AVAILABLE
"""Kafka 0.9 leaves dead replicas out of its lists, and says so with this."""
_NAMES = 5
"""So many groups are named in a sentence; the evidence has more."""
_MOST_NAMES = 200

Groups = Mapping[TopicPartition, list[str]]
"""By the partition of the offsets topic that they live on."""


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    if cluster.offsets_partitions is None:
        return undetermined(f"the partitions of {OFFSETS_TOPIC} and their replicas in sync")
    views = [view for name in cluster.offsets_topic if (view := cluster.view(name)) is not None]
    if cluster.offsets_partitions and not views:
        return undetermined(f"the replicas in sync of {OFFSETS_TOPIC}")
    groups: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for case in cases:
        if case.offsets_partition is not None:
            groups[case.offsets_partition].append(case.group)
    return [*_cannot_commit(cluster, views, groups), *_one_left(cluster, views, groups)] or ABSENT


def _one_left(cluster: ClusterView, views: Sequence[PartitionView], groups: Groups) -> list[Finding]:
    """One finding for each broker whose loss would take partitions with it."""
    alone: defaultdict[int, list[PartitionView]] = defaultdict(list)
    for view in views:
        living = not_dead_in_sync(cluster, view)
        if len(living) == 1 and view.leader >= 0 and cluster.is_alive(view.leader) is not False:
            alone[living[0]].append(view)
    return [_at_risk(cluster, node, of_broker, groups) for node, of_broker in sorted(alone.items())]


def _at_risk(cluster: ClusterView, node: int, views: Sequence[PartitionView], groups: Groups) -> Finding:
    by_choice = all(len(view.replicas) == 1 and view.error != _SOME_ARE_MISSING for view in views)
    hit = sorted(group for view in views for group in groups.get(view.name, ()))
    missing = sorted({other for view in views for other in view.replicas if other != node})
    numbers = [view.partition for view in views]
    first = views[0]
    reason = (
        "they have one replica each, by configuration"
        if by_choice
        else f"the replicas on {numbered('broker', missing)} are not in sync"
        if missing
        else "the other replicas are gone"
    )
    named = f"{counted(len(hit), 'group')}: {first_of(hit, _NAMES)}" if hit else "no group that is known"
    return RULE.finding(
        Severity.NOTICE if by_choice and len(cluster.brokers) == 1 else Severity.WARNING,
        None,
        f"{counted(len(views), 'partition')} of {OFFSETS_TOPIC} hang{'s' * (len(views) == 1)} on "
        f"{cluster.broker_name(node)} alone: {reason}. Its loss would take the coordinator from {named}.",
        why="These groups could not join, commit or fetch committed offsets until it is back; and if its "
        "disk is lost, so are their positions.",
        evidence=[
            Evidence.of(
                first,
                f"with broker {node} alone in sync: partition{'s' * (len(numbers) > 1)} {ranges(numbers)}",
            ),
            Evidence.of(
                first, f"{first.name}: replicas {listed(first.replicas)}, in sync {listed(first.in_sync)}"
            ),
            *([Evidence(f"groups on them: {', '.join(hit[:_MOST_NAMES])}")] if hit else []),
        ],
        remedies=_remedies(cluster, missing, by_choice),
        cause=f"broker {node}",
        brokers=[node],
        partitions=[view.name for view in views],
    )


def _cannot_commit(cluster: ClusterView, views: Sequence[PartitionView], groups: Groups) -> list[Finding]:
    """Below min.insync.replicas: one finding for every group that cannot commit now."""
    needed = cluster.number("min.insync.replicas", f"topic {OFFSETS_TOPIC}")
    if needed is None:
        return []
    findings = []
    for view in views:
        living = len(not_dead_in_sync(cluster, view))
        if 0 < living < min(needed, len(view.replicas)) and cluster.is_alive(view.leader) is not False:
            findings += [
                _refused(cluster, view, group, living, needed) for group in groups.get(view.name, ())
            ]
    return findings


def _refused(cluster: ClusterView, view: PartitionView, group: str, living: int, needed: int) -> Finding:
    missing = [node for node in view.replicas if node not in view.in_sync]
    enough = ("--entity-type", "topics", "--entity-name", OFFSETS_TOPIC, "--add-config")
    return RULE.finding(
        Severity.CRITICAL,
        group,
        f"Group {group} cannot commit: {view.name} has {counted(living, 'replica')} in sync and needs "
        f"{needed} (min.insync.replicas).",
        why="Its members still read, and every commit and every rebalance is refused: after the next restart "
        "they read the same records again.",
        evidence=[
            Evidence.of(
                view,
                f"{view.name}: leader {view.leader}, replicas {listed(view.replicas)}, in sync "
                f"{listed(view.in_sync)}; min.insync.replicas = {needed}",
            )
        ],
        remedies=[
            Remedy(f"Bring {numbered('broker', missing)} back: the replica catches up by itself."),
            Remedy(
                "Until then, if you accept fewer copies: let the topic take commits with what is in sync.",
                commands.kafka("kafka-configs", cluster, "--alter", *enough, f"min.insync.replicas={living}"),
            ),
        ],
        cause=str(view.name),
        brokers=missing,
        partitions=[view.name],
    )


def _remedies(cluster: ClusterView, missing: Sequence[int], by_choice: bool) -> list[Remedy]:
    reassign = "reassign-offsets-topic"
    if not by_choice:
        brokers = numbered("broker", missing) if missing else "the brokers"
        return [
            Remedy(f"Bring {brokers} back; the replicas catch up by themselves."),
            Remedy(
                "If it will not come back, place the replicas elsewhere.", commands.kelpie(reassign, cluster)
            ),
        ]
    alive = len(cluster.brokers) - len(cluster.dead_brokers)
    if alive < 2:
        return [Remedy("With one broker there is nothing to be done; for more than a trial, add brokers.")]
    return [
        Remedy(
            f"Give the topic more replicas: up to {min(3, alive)} with the brokers that are alive.",
            commands.kelpie(reassign, cluster, "--replication", min(3, alive)),
        )
    ]


RULE = Rule.of(
    __name__,
    presentation=Presentation("cannot commit", "cannot commit", is_risk_alone=True),
    judge_cluster=judge,
)
