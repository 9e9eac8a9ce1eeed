"""Giving every partition of the offsets topic replicas enough to survive the loss of a broker.

`replica_placement` decides which replicas move, `reassignment_plan` has the words; the replicas are moved by
the `controller` (Kafka 2.4 and later) or through `zookeeper`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from kelpie.client.admin.admin import Admin
from kelpie.client.admin.controller import can_reassign
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, listed
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.repair.applying import Repair, StepFailed
from kelpie.repair.change_records import ReplicasChange, record_of, records
from kelpie.repair.controller import begin_moves, ongoing_moves, wait_for_moves
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair, ManualStep, Plan, Step
from kelpie.repair.reassignment_plan import (
    COMMAND,
    OffsetsTopicState,
    ongoing_table,
    plan_reassignment,
    title_of,
)
from kelpie.repair.replica_placement import (
    Placement,
    ReplicaMove,
    ReplicaMoves,
    as_json,
    from_json,
    moves_for,
)
from kelpie.repair.throttle import Throttle, left_over
from kelpie.repair.zookeeper import ZooKeeper, connected

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReassignmentOptions:
    """What the operator asks for."""

    replication: int | None = None
    brokers: tuple[int, ...] = ()
    """Only these may hold replicas; if empty, all living brokers."""
    file: Path | None = None
    """A file with the assignment that is wanted."""
    wait_s: float = 300.0
    goals: Mapping[int, tuple[int, ...]] | None = None
    """The assignment that is wanted, instead of a file: what an undo goes back to."""
    undoes: str = ""
    throttle: int = 0
    """Bytes a second that each broker may copy; 0: as many as it can."""


async def reassign(
    nodes: Nodes,
    options: ReassignmentOptions,
    zookeeper: str | None = None,
    earlier: Observations | None = None,
) -> Repair:
    """What would mend the offsets topic. `earlier`: what the store has. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes)
    if options.throttle and not await can_reassign(nodes):
        raise CannotRepair("--throttle needs Kafka 2.4 or later.")
    if await can_reassign(nodes):
        limit = None if options.throttle or options.undoes else await left_over(nodes, records())
        if limit is not None:
            topic = await _offsets_topic(nodes, cluster)
            if not topic.moving and not _moves(topic, options).moves:
                return _unthrottle(nodes, limit)
        topic = replace(await _offsets_topic(nodes, cluster), last_seen=_last_seen(earlier))
        moves = _moves(topic, options)
        topic = replace(topic, copied=await _copied(nodes, moves))
        begin = partial(begin_moves, nodes, moves.after)
        wait = partial(wait_for_moves, nodes, topic.partitions, options.wait_s)
        return _repair(nodes, topic, moves, options, begin=begin, wait=wait)
    if zookeeper is None:
        raise CannotRepair(
            "This cluster is older than Kafka 2.4: replicas are moved through its ZooKeeper. Name it: "
            "--zookeeper HOST:PORT[/PATH], as in zookeeper.connect of the brokers."
        )
    return await _through_zookeeper(nodes, cluster, options, zookeeper)


async def cancel(nodes: Nodes) -> Repair:
    """What would end the moves that are under way. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes)
    if not await can_reassign(nodes):
        raise CannotRepair(
            "Before Kafka 2.4 nothing cancels a move that has begun. Wait until it has ended, and move the "
            "replicas back with --from-file."
        )
    topic = await _offsets_topic(nodes, cluster)
    ongoing = await ongoing_moves(nodes, topic.partitions)
    title = f"Cancel the moves of {OFFSETS_TOPIC} that are under way."
    if not ongoing:
        return Repair(Plan(COMMAND, title, seen=("Nothing is moving.",)))
    goals = {move.partition: move.target for move in ongoing.values()}

    async def stop() -> str:
        await begin_moves(nodes, dict.fromkeys(ongoing))
        return f"{counted(len(ongoing), 'move')} cancelled."

    step = Step(
        f"Cancel {counted(len(ongoing), 'move')}",
        "The replicas that were being added are dropped; the old ones stay.",
        ManualStep(
            "Begin them again: save this and hand it to --from-file.", tuple(as_json(goals).splitlines())
        ),
    )
    return Repair(Plan(COMMAND, title, (step,), tables=(ongoing_table(ongoing.values()),)), (stop,))


async def _offsets_topic(nodes: Nodes, cluster: ClusterView) -> OffsetsTopicState:
    racks = {broker.node_id: broker.rack for broker in cluster.brokers.values() if broker.alive}
    names = cluster.topics.get(OFFSETS_TOPIC, ())
    unsure = unreached(cluster)
    racks |= {node: cluster.brokers[node].rack for node in unsure}
    ongoing = await ongoing_moves(nodes, [name.partition for name in names])
    placements = []
    for name in names:
        view = cluster.view(name)
        assert view is not None
        replicas = ongoing[name.partition].target if name.partition in ongoing else view.replicas
        placements.append(Placement(name.partition, replicas, view.leader, view.in_sync))
    moving = tuple(
        f"{OFFSETS_TOPIC}-{move.partition} is on its way to {listed(move.target)}"
        for move in ongoing.values()
    )
    return OffsetsTopicState(cluster, racks, tuple(placements), moving, unsure=unsure)


def unreached(cluster: ClusterView) -> dict[int, str]:
    """Brokers that do not answer here, and that the cluster itself does not count as gone, with why not.

    A living leader that has a broker in sync, or a living broker that lists it, hears from it.
    """
    views = [
        view for name in cluster.topics.get(OFFSETS_TOPIC, ()) if (view := cluster.view(name)) is not None
    ]
    in_sync = {node for view in views if cluster.is_alive(view.leader) for node in view.in_sync}
    return {
        broker.node_id: broker.reason
        for broker in cluster.brokers.values()
        if broker.alive is None or (broker.alive is False and broker.node_id in in_sync)
    }


async def _through_zookeeper(
    nodes: Nodes, cluster: ClusterView, options: ReassignmentOptions, hosts: str
) -> Repair:
    async def use(work: Callable[[ZooKeeper], T]) -> T:
        def run() -> T:
            with connected(hosts) as zookeeper:
                return work(zookeeper)

        return await asyncio.to_thread(run)

    def read(zookeeper: ZooKeeper) -> OffsetsTopicState:
        moving = tuple(
            f"{name} is on its way to {listed(goal)}" for name, goal in zookeeper.under_way().items()
        )
        return OffsetsTopicState(
            cluster, zookeeper.racks(), tuple(zookeeper.placements()), moving, f"ZooKeeper at {hosts}", hosts
        )

    topic = await use(read)
    moves = _moves(topic, options)
    return _repair(
        nodes,
        topic,
        moves,
        options,
        begin=lambda: use(lambda zookeeper: zookeeper.begin(moves.after)),
        wait=lambda: use(lambda zookeeper: zookeeper.wait(options.wait_s)),
    )


def _moves(topic: OffsetsTopicState, options: ReassignmentOptions) -> ReplicaMoves:
    if not topic.placements:
        raise CannotRepair(f"The cluster has no topic {OFFSETS_TOPIC}: no group has ever committed here.")
    if options.goals is not None:
        wanted = {TopicPartition(OFFSETS_TOPIC, number): goal for number, goal in options.goals.items()}
        return _moves_to(topic, wanted, "The record")
    if options.file is not None:
        return _moves_from(topic, options.file)
    unknown = [node for node in options.brokers if node not in topic.racks]
    if unknown:
        raise CannotRepair(
            f"Broker {listed(unknown)} cannot receive replicas: dead, or not of this cluster. Those that "
            f"live: {listed(sorted(topic.racks))}."
        )
    racks = {
        node: rack for node, rack in topic.racks.items() if not options.brokers or node in options.brokers
    }
    return moves_for(topic.placements, racks, options.replication, living=topic.racks, unsure=topic.unsure)


def _moves_from(topic: OffsetsTopicState, file: Path) -> ReplicaMoves:
    try:
        wanted = from_json(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRepair(f"{file} cannot be read: {error}.") from None
    return _moves_to(topic, wanted, str(file))


def _moves_to(
    topic: OffsetsTopicState, wanted: Mapping[TopicPartition, tuple[int, ...]], source: str
) -> ReplicaMoves:
    moves = []
    for placement in topic.placements:
        goal = wanted.get(TopicPartition(OFFSETS_TOPIC, placement.partition), placement.replicas)
        if goal != placement.replicas:
            moves.append(ReplicaMove(placement.partition, placement.replicas, goal))
    dead = {node for move in moves for node in move.added if node not in topic.racks or node in topic.unsure}
    if dead:
        raise CannotRepair(
            f"{source} wants replicas on broker {listed(sorted(dead))}, which cannot be reached."
        )
    return ReplicaMoves(tuple(moves), ())


def _repair(
    nodes: Nodes,
    topic: OffsetsTopicState,
    moves: ReplicaMoves,
    options: ReassignmentOptions,
    *,
    begin: Callable[[], Awaitable[None]],
    wait: Callable[[], Awaitable[Collection[object]]],
) -> Repair:
    throttle = Throttle.of(options.throttle, moves.moves) if options.throttle else None
    change = ReplicasChange(moves.before, moves.after, topic.zookeeper, options.throttle)
    record = record_of(nodes, COMMAND, OFFSETS_TOPIC, title_of(moves), change, undoes=options.undoes)

    async def hand_over() -> str:
        await begin()
        return f"{counted(len(moves.moves), 'move')} handed to {topic.through}."

    async def watch() -> str:
        left = await wait()
        if left:
            raise StepFailed(
                f"{counted(len(left), 'partition')} still copied after {options.wait_s:g} s. The move goes "
                "on by itself; run this again to go on watching."
            )
        return "All new replicas are in sync; the old ones are gone."

    plan = plan_reassignment(topic, moves, record, options.wait_s, throttle)
    if not moves.moves:
        return Repair(plan, (watch,) if plan.steps else ())
    if throttle is None:
        return Repair(plan, (record.note, hand_over, watch))
    limit, take_back = partial(throttle.set, nodes), partial(throttle.take_back, nodes)
    return Repair(plan, (record.note, limit, hand_over, watch, take_back))


def _unthrottle(nodes: Nodes, throttle: Throttle) -> Repair:
    """The copying of an earlier run has ended, and its limit is still there."""
    step = Step(
        f"Take back the limit of {throttle.bytes_per_s:,} bytes/s that an earlier run has set",
        "Brokers copy replicas as fast as they can again.",
        ManualStep("not needed: nothing is copied now."),
    )
    plan = Plan(COMMAND, f"All replicas of {OFFSETS_TOPIC} are copied.", (step,))
    return Repair(plan, (partial(throttle.take_back, nodes),))


def _last_seen(earlier: Observations | None) -> dict[int, Instant]:
    """When surveys last reached each broker."""
    seen: dict[int, Instant] = {}
    for row in earlier.brokers if earlier is not None else ():
        if row.alive and row.at is not None:
            seen[row.node_id] = max(row.at, seen.get(row.node_id, 0))
    return seen


async def _copied(nodes: Nodes, moves: ReplicaMoves) -> int | None:
    """How many bytes new replicas have to copy; None: brokers do not tell (before Kafka 1.0)."""
    added = {TopicPartition(OFFSETS_TOPIC, move.partition): len(move.added) for move in moves.moves}
    rows = await Admin(nodes).log_sizes(added)
    sizes = {row.name: row.size for row in rows if not row.error}
    if any(count and name not in sizes for name, count in added.items()):
        return None
    return sum(sizes[name] * count for name, count in added.items() if count)
