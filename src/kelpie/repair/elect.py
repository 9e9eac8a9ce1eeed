"""Elections that an operator asks for: of the preferred leader, or, as a last resort, of a replica behind it.

An unclean election loses records for good: replicas that come back later are cut to the new leader's log.
`election_plan` has the words.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kelpie.client.admin import controller
from kelpie.client.admin.controller import LIMIT_S
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.cluster.health import living_replicas, succession_in
from kelpie.errors import describe
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView
from kelpie.questions.list_offsets import LATEST, AskOffsets
from kelpie.questions.question import ANY_REPLICA
from kelpie.repair.applying import Repair, StepFailed
from kelpie.repair.change_records import NoWayBack, record_of
from kelpie.repair.controller import check_partitions
from kelpie.repair.election_plan import Candidate, LivingLog, plan_elections
from kelpie.repair.losses import LostCommit, lost_commits, lost_records
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair, SkippedPartition
from kelpie.repair.replica_copies import read_copy

_PAUSE_S = 0.2


async def elect(
    nodes: Nodes,
    partitions: Sequence[TopicPartition],
    *,
    unclean: bool = False,
    known: Observations | None = None,
) -> Repair:
    """What would elect leaders. `known`: commits and log ends of disks. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes, {partition.topic for partition in partitions})
    candidates: list[Candidate] = []
    skipped: list[SkippedPartition] = []
    for partition in dict.fromkeys(partitions):
        view = cluster.view(partition)
        if view is None:
            raise CannotRepair(f"There is no partition {partition} in this cluster.")
        choice = (
            await _unclean(nodes, cluster, view, known or Observations())
            if unclean
            else _preferred(cluster, view)
        )
        if isinstance(choice, Candidate):
            candidates.append(choice)
        else:
            skipped.append(choice)
    possible = await controller.can_elect(nodes, unclean=unclean)
    plan = plan_elections(
        cluster, candidates, skipped, unclean=unclean, informed=known is not None, possible=possible
    )
    if not plan.steps:
        return Repair(plan)
    elected = [candidate.partition for candidate in candidates]
    record = record_of(nodes, "elect", listed(elected), plan.title, NoWayBack(plan.steps[0].undo.text))
    plan = replace(plan, steps=(record.step, *plan.steps))
    ask = partial(_ask, nodes, elected, unclean=unclean)
    return Repair(plan, (record.note, ask, partial(_watch, nodes, elected)))


# Choosing leaders


def _preferred(cluster: ClusterView, view: PartitionView) -> Candidate | SkippedPartition:
    first = view.replicas[0] if view.replicas else -1
    if view.leader == first:
        return SkippedPartition(view.name, f"broker {first}, the preferred one, leads it already", True)
    if not cluster.is_alive(first):
        return SkippedPartition(view.name, f"broker {first}, the preferred one, is not alive")
    if first not in view.in_sync:
        return SkippedPartition(view.name, f"broker {first}, the preferred one, is not in sync")
    return Candidate(view, first)


async def _unclean(
    nodes: Nodes, cluster: ClusterView, view: PartitionView, known: Observations
) -> Candidate | SkippedPartition:
    partition = view.name
    if cluster.has_leader(partition):
        return SkippedPartition(partition, f"broker {view.leader} leads it already", True)
    living = [node for node in living_replicas(cluster, partition) if node not in view.offline]
    if not living:
        to_start = f"broker {listed(view.replicas, 'or')}" if view.replicas else "the brokers that hold one"
        return SkippedPartition(partition, f"no broker that holds a replica is alive; start {to_start}")
    complete = succession_in(cluster, view).ready
    node = (complete or living)[0]
    logs = await asyncio.gather(*(_log_of(nodes, living_node, partition) for living_node in living))
    end = next(log.end for log in logs if log.node == node)
    records, source = lost_records(partition, end, known) if end >= 0 else (0, "")
    groups: list[str] = []
    commits: list[LostCommit] = []
    if partition.topic == OFFSETS_TOPIC:
        copy = await read_copy(nodes, cluster, node, partition)
        names = {*known.known_groups, *(row.group for row in (*copy.commits, *known.commits))}
        groups = sorted(group for group in names if cluster.home_of(group) == partition)
        commits = lost_commits(groups, copy.commits, end, known)
    return Candidate(
        view, node, bool(complete), end, tuple(groups), tuple(commits), records, source, tuple(logs)
    )


async def _log_of(nodes: Nodes, node: int, partition: TopicPartition) -> LivingLog:
    """Where one replica's log ends. The epoch in the answer is the partition's, not its last record's."""
    question = AskOffsets(0, {partition: (LATEST, None)}, replica_id=ANY_REPLICA)
    try:
        answer = (await nodes.put(node, question)).get(partition)
    except ClientError as error:
        return LivingLog(node, failure=error.reason)
    if answer is None or answer.error or answer.offset is None:
        return LivingLog(node, failure=describe(answer.error) if answer is not None else "no answer")
    return LivingLog(node, answer.offset)


# Electing


async def _ask(nodes: Nodes, partitions: Sequence[TopicPartition], *, unclean: bool) -> str:
    check_partitions(len(partitions), await controller.elect(nodes, partitions, unclean=unclean))
    return f"{counted(len(partitions), 'leader')} elected."


async def _watch(nodes: Nodes, partitions: Sequence[TopicPartition]) -> str:
    """Waits until the brokers know the new leaders."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT_S
    while True:
        cluster = await survey_cluster(nodes, {partition.topic for partition in partitions})
        views = [view for partition in partitions if (view := cluster.view(partition)) is not None]
        without = [partition for partition in partitions if not cluster.has_leader(partition)]
        if not without:
            leaders = [f"{view.name}: broker {view.leader}" for view in views]
            return f"Led by living brokers: {', '.join(leaders)}."
        if loop.time() + _PAUSE_S > deadline:
            raise StepFailed(f"Still without a leader after {LIMIT_S:g} s: {listed(without)}.")
        await asyncio.sleep(_PAUSE_S)
