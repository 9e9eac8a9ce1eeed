"""Giving every partition of the offsets topic replicas enough to survive the loss of a broker.

Thought out by `reassignment`, done by `moving` (Kafka 2.4 and later) or through `zookeeper`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair import commands
from kelpie.repair.applying import Broken, Repair
from kelpie.repair.keeping import keep, undo_file
from kelpie.repair.moving import Mover, Ongoing
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, Document, Plan, Step, Table, Way
from kelpie.repair.reassignment import Move, Moves, Placement, as_json, from_json, moves_for
from kelpie.repair.zookeeper import ZooKeeper, connected

COMMAND = "reassign-offsets-topic"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    replication: int | None = None
    brokers: tuple[int, ...] = ()
    """Only these may hold replicas; all that live if there are none."""
    file: Path | None = None
    """Just this assignment, from a file."""
    wait_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What is there: who lives, where the partitions are, what is moving."""

    cluster: ClusterView
    racks: Mapping[int, str | None]
    placements: tuple[Placement, ...]
    moving: tuple[str, ...] = ()
    """Moves under way, in words."""
    through: str = "the controller"


async def reassign(nodes: Nodes, wish: Wish, zookeeper: str | None = None) -> Repair:
    """What would mend the offsets topic. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes)
    mover = Mover(nodes)
    if await mover.available():
        ground = await _ground(cluster, mover)
        moves = _moves(ground, wish)

        async def begin() -> None:
            await mover.begin({it.partition: it.after for it in moves.moves})

        async def wait() -> Collection[object]:
            return await mover.wait([it.partition for it in ground.placements], wish.wait_s)

        return _repair(ground, moves, wish, begin, wait)
    if zookeeper is None:
        raise CannotRepair(
            "This cluster is older than Kafka 2.4: replicas are moved through its ZooKeeper. Name it: "
            "--zookeeper HOST:PORT[/PATH], as in zookeeper.connect of the brokers."
        )
    return await _through_zookeeper(cluster, wish, zookeeper)


async def cancel(nodes: Nodes) -> Repair:
    """What would end the moves that are under way. Raises CannotRepair, ClientError."""
    cluster = await survey_cluster(nodes)
    mover = Mover(nodes)
    if not await mover.available():
        raise CannotRepair(
            "Before Kafka 2.4 nothing cancels a move that has begun. Wait until it has ended, and move the "
            "replicas back with --from-file."
        )
    ground = await _ground(cluster, mover)
    ongoing = await mover.ongoing([it.partition for it in ground.placements])
    title = f"Cancel the moves of {OFFSETS_TOPIC} that are under way."
    if not ongoing:
        return Repair(Plan(COMMAND, title, seen=("Nothing is moving.",)))
    goal = {it.partition: it.goal for it in ongoing.values()}

    async def stop() -> str:
        await mover.begin(dict.fromkeys(ongoing))
        return f"{counted(len(ongoing), 'move')} cancelled."

    step = Step(
        f"Cancel {counted(len(ongoing), 'move')}",
        "The replicas that were being added are dropped; the old ones stay.",
        Way("Begin them again: save this and hand it to --from-file.", tuple(as_json(goal).splitlines())),
    )
    return Repair(Plan(COMMAND, title, (step,), tables=(_ongoing_table(ongoing),)), (stop,))


async def _ground(cluster: ClusterView, mover: Mover) -> Ground:
    racks = {it.node_id: it.rack for it in cluster.brokers.values() if it.alive}
    names = [it for it in cluster.topics.get(OFFSETS_TOPIC, ()) if it.partition >= 0]
    ongoing = await mover.ongoing([it.partition for it in names])
    placements = []
    for name in names:
        view = cluster.view(name)
        assert view is not None
        replicas = ongoing[name.partition].goal if name.partition in ongoing else view.replicas
        placements.append(Placement(name.partition, replicas, view.leader, view.in_sync))
    moving = tuple(
        f"{OFFSETS_TOPIC}-{it.partition} is on its way to {listed(it.goal)}" for it in ongoing.values()
    )
    return Ground(cluster, racks, tuple(placements), moving)


async def _through_zookeeper(cluster: ClusterView, wish: Wish, hosts: str) -> Repair:
    def use(work: Callable[[ZooKeeper], object]) -> object:
        with connected(hosts) as zookeeper:
            return work(zookeeper)

    def see(zookeeper: ZooKeeper) -> Ground:
        moving = tuple(
            f"{name} is on its way to {listed(goal)}" for name, goal in zookeeper.under_way().items()
        )
        return Ground(
            cluster, zookeeper.racks(), tuple(zookeeper.placements()), moving, f"ZooKeeper at {hosts}"
        )

    ground = await asyncio.to_thread(use, see)
    assert isinstance(ground, Ground)
    moves = _moves(ground, wish)

    async def begin() -> None:
        goals = {it.partition: it.after for it in moves.moves}
        try:
            await asyncio.to_thread(use, lambda zookeeper: zookeeper.begin(goals))
        except CannotRepair as error:
            raise Broken(str(error)) from None

    async def wait() -> Collection[object]:
        left = await asyncio.to_thread(use, lambda zookeeper: zookeeper.wait(wish.wait_s))
        assert isinstance(left, dict)
        return left

    return _repair(ground, moves, wish, begin, wait)


def _moves(ground: Ground, wish: Wish) -> Moves:
    if not ground.placements:
        raise CannotRepair(f"The cluster has no topic {OFFSETS_TOPIC}: no group has ever committed here.")
    if wish.file is not None:
        return _moves_from(ground, wish.file)
    strangers = [node for node in wish.brokers if node not in ground.racks]
    if strangers:
        raise CannotRepair(
            f"Broker {listed(strangers)} cannot receive replicas: dead, or not of this cluster. Those that "
            f"live: {listed(sorted(ground.racks))}."
        )
    racks = {node: rack for node, rack in ground.racks.items() if not wish.brokers or node in wish.brokers}
    return moves_for(ground.placements, racks, wish.replication, living=ground.racks)


def _moves_from(ground: Ground, file: Path) -> Moves:
    try:
        wanted = from_json(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRepair(f"{file} cannot be read: {error}.") from None
    moves = []
    for it in ground.placements:
        goal = wanted.get(TopicPartition(OFFSETS_TOPIC, it.partition), it.replicas)
        if goal != it.replicas:
            moves.append(Move(it.partition, it.replicas, goal))
    dead = {node for move in moves for node in move.added if node not in ground.racks}
    if dead:
        raise CannotRepair(f"{file} wants replicas on broker {listed(sorted(dead))}, which is dead.")
    return Moves(tuple(moves), ())


def _repair(
    ground: Ground,
    moves: Moves,
    wish: Wish,
    begin: Callable[[], Awaitable[None]],
    wait: Callable[[], Awaitable[Collection[object]]],
) -> Repair:
    file = undo_file(OFFSETS_TOPIC, wall_clock(), ".json")
    before = as_json({it.partition: it.before for it in moves.moves})

    async def save() -> str:
        keep(file, before)
        return f"The replicas as they are were saved to {file}."

    async def hand_over() -> str:
        await begin()
        return f"{counted(len(moves.moves), 'move')} handed to {ground.through}."

    async def watch() -> str:
        left = await wait()
        if left:
            raise Broken(
                f"{counted(len(left), 'partition')} still copied after {wish.wait_s:g} s. The move goes on "
                "by itself; run this again to go on watching."
            )
        return "All new replicas are in sync; the old ones are gone."

    plan = _plan(ground, moves, wish, file)
    if moves.moves:
        return Repair(plan, (save, hand_over, watch))
    return Repair(plan, (watch,) if plan.steps else ())


def _plan(ground: Ground, moves: Moves, wish: Wish, file: Path) -> Plan:
    cluster = ground.cluster
    back = commands.kelpie(COMMAND, cluster, "--from-file", str(file), "--apply")
    stop = commands.kelpie(COMMAND, cluster, "--cancel", "--apply")
    watching = Step(
        f"Wait until the new replicas are in sync, up to {wish.wait_s:g} s",
        "Nothing by itself; the brokers copy.",
        Way("While it copies, cancel it:", (stop,)),
    )
    steps: tuple[Step, ...] = (watching,) if ground.moving else ()
    if moves.moves:
        steps = (
            Step(f"Save the replicas as they are to {file}", "A file on this machine.", NOTHING_CHANGES),
            Step(
                f"Hand {counted(len(moves.moves), 'move')} to {ground.through}",
                "New replicas copy from the leaders, which stay; then replicas that are not wanted go.",
                Way("Move them back:", (back,)),
            ),
            watching,
        )
    return Plan(
        COMMAND,
        f"Move {counted(len(moves.moves), 'partition')} of {OFFSETS_TOPIC}, so that each survives the loss "
        "of a broker."
        if moves.moves
        else f"Nothing to move: {OFFSETS_TOPIC} is as it shall be, as far as it can be.",
        steps,
        seen=_seen(ground),
        tables=(_table(moves.moves),) if moves.moves else (),
        documents=_documents(moves),
        warnings=tuple(_about(it, ground) for it in moves.leaderless),
        details={
            "reassignment": json.loads(as_json({it.partition: it.after for it in moves.moves})),
            "before": json.loads(as_json({it.partition: it.before for it in moves.moves})),
            "leaderless": [it.partition for it in moves.leaderless],
        },
    )


def _documents(moves: Moves) -> tuple[Document, ...]:
    if not moves.moves:
        return ()
    text = as_json({it.partition: it.after for it in moves.moves})
    return (Document("The same for kafka-reassign-partitions.sh --reassignment-json-file", text),)


def _seen(ground: Ground) -> tuple[str, ...]:
    dead = sorted({node for it in ground.placements for node in it.replicas} - set(ground.racks))
    one = sum(len(set(it.in_sync) & set(ground.racks)) == 1 for it in ground.placements)
    seen = [
        f"{OFFSETS_TOPIC} has {counted(len(ground.placements), 'partition')}. Brokers that are alive: "
        f"{listed(sorted(ground.racks))}.",
    ]
    if dead:
        seen.append(f"Dead, though they should hold replicas: broker {listed(dead)}.")
    if one:
        seen.append(f"With a single living replica in sync: {counted(one, 'partition')}.")
    return (*seen, *(f"{it}." for it in ground.moving))


def _about(placement: Placement, ground: Ground) -> str:
    name = f"{OFFSETS_TOPIC}-{placement.partition}"
    dead = [node for node in placement.replicas if node not in ground.racks]
    line = commands.kelpie("elect", ground.cluster, name, "--unclean")
    return (
        f"{name} has no leader, so there is nobody to copy from. Start broker {listed(dead, 'or')}; if "
        f"that is gone for good, see {line}"
    )


def _table(moves: Sequence[Move]) -> Table:
    rows = [
        (
            str(it.partition),
            ",".join(map(str, it.before)),
            ",".join(map(str, it.after)),
            _change(it),
        )
        for it in moves
    ]
    return Table(f"Replicas of {OFFSETS_TOPIC}", ("PARTITION", "NOW", "NEW", "CHANGE"), tuple(rows))


def _change(move: Move) -> str:
    words = [f"+{node}" for node in move.added] + [f"−{node}" for node in move.removed]
    return " ".join(words) or "order"


def _ongoing_table(ongoing: Mapping[int, Ongoing]) -> Table:
    rows = [
        (
            str(it.partition),
            ",".join(map(str, it.goal)),
            ",".join(map(str, it.adding)),
            ",".join(map(str, it.removing)),
        )
        for it in ongoing.values()
    ]
    return Table("Moves under way", ("PARTITION", "GOAL", "ADDING", "REMOVING"), tuple(rows))
