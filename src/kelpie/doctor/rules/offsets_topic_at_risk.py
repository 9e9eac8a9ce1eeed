"""KLP106 offsets-topic-at-risk

What it sees: partitions of __consumer_offsets of which a single broker holds
the only copy in sync; or that have fewer copies in sync than they need to take
commits.

Why it matters: when that broker goes, the groups on these partitions have no
coordinator (KLP101), and nothing else in the cluster need be wrong. Below
min.insync.replicas the groups can still read, and every commit fails already.

How it decides: below min.insync.replicas every commit fails (NOT_ENOUGH_REPLICAS).
Up to Kafka 3.6 that is so also where a partition has fewer replicas than
min.insync.replicas by configuration; since 3.7 as many as there are suffice.
For each living broker, which partitions have it alone in sync;
the group's names are hashed to see which the loss would hit. With one replica by
configuration (offsets.topic.replication.factor=1, the default of many quick
starts) that is always so: a warning, or a notice if there is only
one broker anyway.

What it needs: the right Describe on __consumer_offsets, and DescribeConfigs on it
for min.insync.replicas; without the second, only partitions with one replica in sync are seen.
Without the topic's description it is undetermined. Brokers tell no release, only
versions of their requests: one that may be 3.1 or up to 3.7 counts as older than
3.7, and the finding is a warning then.

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
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.leader_remedies import said_by
from kelpie.doctor.rule import Presentation, Rule
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, first_of, listed, numbered, ranges
from kelpie.observations import OFFSETS_TOPIC, PartitionView

_SOME_ARE_MISSING = ErrorCode.REPLICA_NOT_AVAILABLE
"""Kafka 0.9 leaves dead replicas out of its lists, and says so with this."""
_CAPPED = ("3.7", "3.8", "3.9", "4.x")
"""Releases in which no more replicas are needed than there are."""
_MAY_BE_CAPPED = ("3.1",)
"""As a survey concludes it, that may be any from 3.1 to 3.7."""
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
    one = len(hit) == 1
    named = (
        f"{counted(len(hit), 'group')} {'loses its' if one else 'lose their'} coordinator "
        f"({first_of(hit, _NAMES)})"
        if hit
        else "groups that are not known yet lose their coordinator"
    )
    return RULE.finding(
        Severity.NOTICE if by_choice and len(cluster.brokers) == 1 else Severity.WARNING,
        None,
        f"If {cluster.broker_name(node)} goes, {named}: it has the only replica in sync of "
        f"{counted(len(views), 'partition')} of {OFFSETS_TOPIC}; {reason}.",
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
        check=checks.offsets_topic(cluster),
    )


def _cannot_commit(cluster: ClusterView, views: Sequence[PartitionView], groups: Groups) -> list[Finding]:
    """Below min.insync.replicas: one finding for every group that cannot commit now."""
    needed = cluster.number("min.insync.replicas", f"topic {OFFSETS_TOPIC}")
    if needed is None:
        return []
    findings = []
    for view in views:
        living = len(not_dead_in_sync(cluster, view))
        enough, is_certain = _enough(cluster, view, needed)
        if 0 < living < enough and cluster.is_alive(view.leader) is not False:
            findings += [
                _refused(cluster, view, group, living, needed, is_certain=is_certain)
                for group in groups.get(view.name, ())
            ]
    return findings


def _enough(cluster: ClusterView, view: PartitionView, needed: int) -> tuple[int, bool]:
    """How many replicas in sync a commit needs, and whether that is certain.

    Since 3.7 no more than there are (Partition.effectiveMinIsr).
    """
    broker = cluster.brokers.get(view.leader)
    release = broker.release if broker is not None else ""
    fewer = min(needed, len(view.replicas))
    if not release or release in _CAPPED:
        return fewer, True
    return needed, release not in _MAY_BE_CAPPED or len(view.replicas) >= needed


def _refused(
    cluster: ClusterView, view: PartitionView, group: str, living: int, needed: int, *, is_certain: bool
) -> Finding:
    missing = [node for node in view.replicas if node not in view.in_sync]
    enough = ("--entity-type", "topics", "--entity-name", OFFSETS_TOPIC, "--add-config")
    unless = "" if is_certain else " (unless its leader's release is 3.7)"
    return RULE.finding(
        Severity.CRITICAL if is_certain else Severity.WARNING,
        group,
        f"Group {group} cannot commit: {view.name} has {counted(living, 'replica')} in sync and needs "
        f"{needed} (min.insync.replicas){unless}.",
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
            Remedy(
                f"Bring {numbered('broker', missing)} back: the replica catches up by itself.",
                said_by=said_by(cluster, missing),
            )
            if missing
            else _more_replicas(cluster),
            Remedy(
                "Until then, if you accept fewer copies: let the topic take commits with what is in sync. "
                f"Take that back (min.insync.replicas={needed}) once the topic has enough replicas in sync.",
                commands.kafka("kafka-configs", cluster, "--alter", *enough, f"min.insync.replicas={living}"),
            ),
        ],
        cause=str(view.name),
        brokers=missing,
        partitions=[view.name],
        check=checks.offsets_topic(cluster, "--under-min-isr-partitions"),
    )


def _remedies(cluster: ClusterView, missing: Sequence[int], by_choice: bool) -> list[Remedy]:
    reassign = "reassign-offsets-topic"
    if not by_choice:
        brokers = numbered("broker", missing) if missing else "the brokers"
        return [
            Remedy(
                f"Bring {brokers} back; the replicas catch up by themselves.",
                said_by=said_by(cluster, missing) if missing else "",
            ),
            Remedy(
                "If it will not come back, place the replicas elsewhere.", commands.kelpie(reassign, cluster)
            ),
        ]
    return [_more_replicas(cluster)]


def _more_replicas(cluster: ClusterView) -> Remedy:
    alive = len(cluster.brokers) - len(cluster.dead_brokers)
    if alive < 2:
        return Remedy("With one broker there is nothing to be done; for more than a trial, add brokers.")
    return Remedy(
        f"Give the topic more replicas: up to {min(3, alive)} with the brokers that are alive.",
        commands.kelpie("reassign-offsets-topic", cluster, "--replication", min(3, alive)),
    )


RULE = Rule.of(
    __name__,
    presentation=Presentation("cannot commit", "cannot commit", is_risk_alone=True),
    judge_cluster=judge,
)
