"""Elections that an operator asks for: of the preferred leader, or, as a last resort, of one that is behind.

What an unclean election loses is gone: replicas that come back later are cut to the new leader's log.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.cluster.health import electable, living_replicas
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed, moment
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView
from kelpie.repair import by_hand
from kelpie.repair.applying import Broken, Repair
from kelpie.repair.controller import LIMIT_S, check, check_each, controller_of, said
from kelpie.repair.log_ends import ANY_REPLICA, LATEST, ask_offsets
from kelpie.repair.losses import LostCommit, groups_on, lost_commits, lost_records
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair, Plan, Step, Table, Way
from kelpie.repair.survivors import read_copy
from kelpie.wire.api.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kelpie.wire.structs import TopicPartitions

PREFERRED, UNCLEAN = 0, 1
_UNCLEAN_SINCE = 1
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who would lead a partition, and what that costs."""

    partition: TopicPartition
    view: PartitionView
    node: int
    clean: bool = True
    end: int = -1
    """Where its log ends; −1: it does not tell."""
    groups: tuple[str, ...] = ()
    """Those that live on it, if it is of the offsets topic."""
    commits: tuple[LostCommit, ...] = ()
    records: int = 0
    records_source: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    """A partition for which nothing is elected, and why."""

    partition: TopicPartition
    reason: str
    well: bool = False


async def elect(
    nodes: Nodes,
    partitions: Sequence[TopicPartition],
    *,
    unclean: bool = False,
    known: Observations | None = None,
) -> Repair:
    """What would elect leaders. `known`: commits and ends off disks. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes, {partition.topic for partition in partitions})
    found: list[Candidate | Passed] = []
    for partition in dict.fromkeys(partitions):
        view = cluster.view(partition)
        if view is None:
            raise CannotRepair(f"There is no partition {partition} in this cluster.")
        if unclean:
            found.append(await _unclean(nodes, cluster, partition, view, known or Observations()))
        else:
            found.append(_preferred(cluster, partition, view))
    candidates = [it for it in found if isinstance(it, Candidate)]
    passed = [it for it in found if isinstance(it, Passed)]
    spoken = await _speaks(nodes, unclean=unclean)
    plan = _plan(cluster, candidates, passed, unclean=unclean, informed=known is not None, spoken=spoken)
    if not plan.steps:
        return Repair(plan)

    async def ask() -> str:
        return await _ask(nodes, [it.partition for it in candidates], unclean=unclean)

    async def watch() -> str:
        return await _watch(nodes, [it.partition for it in candidates])

    return Repair(plan, (ask, watch))


# Who would lead


def _preferred(cluster: ClusterView, partition: TopicPartition, view: PartitionView) -> Candidate | Passed:
    first = view.replicas[0] if view.replicas else -1
    if view.leader == first:
        return Passed(partition, f"broker {first}, the preferred one, leads it already", well=True)
    if not cluster.is_alive(first):
        return Passed(partition, f"broker {first}, the preferred one, is not alive")
    if first not in view.in_sync:
        return Passed(partition, f"broker {first}, the preferred one, is not in sync")
    return Candidate(partition, view, first)


async def _unclean(
    nodes: Nodes, cluster: ClusterView, partition: TopicPartition, view: PartitionView, known: Observations
) -> Candidate | Passed:
    if cluster.has_leader(partition):
        return Passed(partition, f"broker {view.leader} leads it already", well=True)
    living = living_replicas(cluster, partition)
    if not living:
        return Passed(
            partition,
            "no broker that holds a replica is alive; start "
            + (f"broker {listed(view.replicas, 'or')}" if view.replicas else "the brokers that hold one"),
        )
    complete = electable(view, living).complete
    node = (complete or living)[0]
    end = (await ask_offsets(nodes, node, {partition: LATEST}, ANY_REPLICA))[partition].offset
    records, source = lost_records(partition, end, known) if end >= 0 else (0, "")
    groups: list[str] = []
    commits: list[LostCommit] = []
    if partition.topic == OFFSETS_TOPIC:
        reading = await read_copy(nodes, cluster, node, partition)
        names = {row.group for row in reading.commits}
        count = cluster.offsets_partitions or 1
        groups = groups_on(partition, count, names, known.known_groups, {row.group for row in known.commits})
        commits = lost_commits(groups, reading.commits, end, known)
    return Candidate(
        partition, view, node, bool(complete), end, tuple(groups), tuple(commits), records, source
    )


# Doing it


async def _speaks(nodes: Nodes, *, unclean: bool) -> bool:
    node = await controller_of(nodes)
    return (await nodes.versions(node)).speaks(ElectLeadersRequest, _UNCLEAN_SINCE if unclean else 0)


async def _ask(nodes: Nodes, partitions: Sequence[TopicPartition], *, unclean: bool) -> str:
    node = await controller_of(nodes)
    version = (await nodes.versions(node)).pick(ElectLeadersRequest)
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    request = ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=[TopicPartitions(topic=name, partitions=parts) for name, parts in topics.items()],
        timeout_ms=int(LIMIT_S * 1000),
    )
    response: ElectLeadersResponse = await nodes.ask(node, request, version, limit_s=LIMIT_S)
    check("The controller refuses", response.error_code)
    refused = [
        f"{it.topic}-{part.partition_id}: {said(part.error_code, part.error_message)}"
        for it in response.replica_election_results
        for part in it.partition_result
        if part.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    ]
    check_each(len(partitions), refused)
    return f"{counted(len(partitions), 'leader')} elected."


async def _watch(nodes: Nodes, partitions: Sequence[TopicPartition]) -> str:
    """Until the brokers know of it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT_S
    while True:
        cluster = await survey_cluster(nodes, {partition.topic for partition in partitions})
        without = [it for it in partitions if not cluster.has_leader(it)]
        if not without:
            leaders = [f"{it}: broker {_leader(cluster, it)}" for it in partitions]
            return f"Led by living brokers: {', '.join(leaders)}."
        if loop.time() + _PAUSE_S > deadline:
            raise Broken(f"Still without a leader after {LIMIT_S:g} s: {listed(without)}.")
        await asyncio.sleep(_PAUSE_S)


def _leader(cluster: ClusterView, partition: TopicPartition) -> int:
    view = cluster.view(partition)
    return view.leader if view is not None else -1


# Saying it


def _plan(
    cluster: ClusterView,
    candidates: Sequence[Candidate],
    passed: Sequence[Passed],
    *,
    unclean: bool,
    informed: bool,
    spoken: bool,
) -> Plan:
    kind = "an unclean leader" if unclean else "the preferred leader"
    steps: tuple[Step, ...] = ()
    instead: tuple[Way, ...] = ()
    obstacles = [f"{it.partition}: {it.reason}." for it in passed if not it.well] if not candidates else []
    if candidates and spoken:
        steps = _steps(candidates, unclean=unclean)
    elif candidates:
        instead = by_hand.election([it.partition for it in candidates], unclean=unclean)
        obstacles.append("This release of Kafka cannot be asked for it; it has to be done by hand, as above.")
    lost = [loss for it in candidates for loss in it.commits]
    return Plan(
        "elect",
        f"Elect {kind} for {counted(len(candidates), 'partition')}."
        if candidates
        else f"There is no partition for which {kind} could be elected.",
        steps,
        seen=tuple(_seen(it, cluster) for it in candidates)
        + tuple(f"{it.partition}: {it.reason}." for it in passed),
        tables=(_losses(lost),) if lost else (),
        warnings=tuple(_warnings(candidates, informed=informed)) if unclean else (),
        obstacles=tuple(obstacles),
        instead=instead,
        details={
            "unclean": unclean,
            "elections": [_data(it) for it in candidates],
            "passed": [{"partition": str(it.partition), "reason": it.reason} for it in passed],
        },
    )


def _steps(candidates: Sequence[Candidate], *, unclean: bool) -> tuple[Step, ...]:
    which = listed([it.partition for it in candidates[:5]]) + (" …" if len(candidates) > 5 else "")
    if unclean and not all(it.clean for it in candidates):
        undo = Way(
            "Nothing brings back what is lost: replicas that come back are cut to the new leader's log. Copy "
            "the disks of the dead brokers before they start again."
        )
    else:
        undo = Way("Nothing undoes it, and nothing is lost: whoever led before stays a replica.")
    return (
        Step(
            f"Ask the controller for {counted(len(candidates), 'election')}: {which}",
            f"Leaders: {', '.join(f'{it.partition} → broker {it.node}' for it in candidates)}.",
            undo,
        ),
        Step(
            "Wait until the brokers know of it",
            "Nothing by itself.",
            Way("not needed; it changes nothing in the cluster."),
        ),
    )


def _seen(candidate: Candidate, cluster: ClusterView) -> str:
    view = candidate.view
    leader = "no leader" if view.leader < 0 else f"leader {view.leader}"
    text = (
        f"{candidate.partition} has {leader}, replicas {listed(view.replicas)}, in sync "
        f"{listed(view.in_sync) or 'none'}; {cluster.broker_name(candidate.node)} would lead it"
    )
    if candidate.end >= 0:
        text += f", whose log ends at {candidate.end}"
    if candidate.groups:
        more = " …" if len(candidate.groups) > 8 else ""
        text += f"; groups on it: {', '.join(candidate.groups[:8])}{more}"
    return text + "."


def _warnings(candidates: Sequence[Candidate], *, informed: bool) -> list[str]:
    found = []
    for it in candidates:
        if it.clean:
            found.append(f"{it.partition}: broker {it.node} was in sync; nothing is lost with it.")
            continue
        if it.records:
            found.append(
                f"{it.partition}: broker {it.node} lacks {counted(it.records, 'record')} that "
                f"{it.records_source} had; lost with it."
            )
        if it.commits:
            groups = listed(sorted({loss.group for loss in it.commits}))
            found.append(f"{it.partition}: the newest commits of {groups} are lost; they do that work again.")
        if not it.records and not it.commits:
            found.append(
                f"{it.partition}: broker {it.node} was not in sync. "
                + (
                    "Nothing newer is known than what it has."
                    if informed
                    else "What others had beyond its log is lost; their disks would tell: --evidence DIR …"
                )
            )
    return found


def _losses(lost: Sequence[LostCommit]) -> Table:
    rows = [
        (
            it.group,
            str(it.partition),
            str(it.known.offset),
            "nothing" if it.left is None else str(it.left),
            "-" if it.known.at is None else moment(it.known.at).removesuffix(" UTC"),
        )
        for it in lost
    ]
    return Table(
        "Commits that would be lost (times in UTC)",
        ("GROUP", "PARTITION", "COMMITTED", "GOES BACK TO", "AT"),
        tuple(rows),
    )


def _data(candidate: Candidate) -> dict[str, object]:
    return {
        "partition": str(candidate.partition),
        "leader": candidate.node,
        "clean": candidate.clean,
        "log_end": candidate.end,
        "groups": list(candidate.groups),
        "records_lost": candidate.records,
        "commits_lost": [
            {
                "group": it.group,
                "partition": str(it.partition),
                "committed": it.known.offset,
                "goes_back_to": it.left,
                "at": it.known.at,
            }
            for it in candidate.commits
        ],
    }
