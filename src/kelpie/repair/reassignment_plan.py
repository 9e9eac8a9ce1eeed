"""The plan of a reassignment of the offsets topic: words and data, no questions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelpie.client.admin.rows import Reassignment
from kelpie.cluster import ClusterView, commands
from kelpie.model.words import counted, listed
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.plan import Document, ManualStep, Plan, PlanTable, Step
from kelpie.repair.replica_placement import Placement, ReplicaMove, ReplicaMoves, as_json

COMMAND = "reassign-offsets-topic"
_DOCUMENT = "The same for kafka-reassign-partitions.sh --reassignment-json-file"


@dataclass(frozen=True, slots=True)
class OffsetsTopicState:
    """The offsets topic now: living brokers, where the partitions are, and what is moving."""

    cluster: ClusterView
    racks: Mapping[int, str | None]
    """Of living brokers."""
    placements: tuple[Placement, ...]
    moving: tuple[str, ...] = ()
    """Moves under way, in words."""
    through: str = "the controller"
    """Who takes the moves."""
    zookeeper: str = ""
    """Where the moves go before Kafka 2.4."""

    @property
    def partitions(self) -> list[int]:
        return [placement.partition for placement in self.placements]


def title_of(moves: ReplicaMoves) -> str:
    if not moves.moves:
        return f"Nothing to move: {OFFSETS_TOPIC} is as it shall be, as far as it can be."
    count = counted(len(moves.moves), "partition")
    return f"Move {count} of {OFFSETS_TOPIC}, so that each survives the loss of a broker."


def plan_reassignment(
    topic: OffsetsTopicState, moves: ReplicaMoves, record: ChangeRecord, wait_s: float
) -> Plan:
    """`record`: what will say what was done."""
    cluster = topic.cluster
    stop = commands.kelpie(COMMAND, cluster, "--cancel")
    watching = Step(
        f"Wait until the new replicas are in sync, up to {wait_s:g} s",
        "Nothing by itself; the brokers copy.",
        ManualStep("While it copies, cancel it:", (stop,)),
    )
    steps: tuple[Step, ...] = (watching,) if topic.moving else ()
    if moves.moves:
        steps = (
            record.step,
            Step(
                f"Hand {counted(len(moves.moves), 'move')} to {topic.through}",
                "New replicas copy from the leaders, which stay; then replicas that are not wanted go.",
                record.way_back,
            ),
            watching,
        )
    return Plan(
        COMMAND,
        title_of(moves),
        steps,
        seen=_seen(topic),
        tables=(_table(moves.moves),) if moves.moves else (),
        documents=(Document(_DOCUMENT, as_json(moves.after)),) if moves.moves else (),
        warnings=tuple(_leaderless(placement, topic) for placement in moves.leaderless),
        details={
            "reassignment": json.loads(as_json(moves.after)),
            "before": json.loads(as_json(moves.before)),
            "leaderless": [placement.partition for placement in moves.leaderless],
        },
    )


def _seen(topic: OffsetsTopicState) -> tuple[str, ...]:
    living = set(topic.racks)
    dead = sorted({node for placement in topic.placements for node in placement.replicas} - living)
    single = sum(len(living.intersection(placement.in_sync)) == 1 for placement in topic.placements)
    seen = [
        f"{OFFSETS_TOPIC} has {counted(len(topic.placements), 'partition')}. Brokers that are alive: "
        f"{listed(sorted(topic.racks))}.",
    ]
    if dead:
        seen.append(f"Dead, though they should hold replicas: broker {listed(dead)}.")
    if single:
        seen.append(f"With a single living replica in sync: {counted(single, 'partition')}.")
    return (*seen, *(f"{move}." for move in topic.moving))


def _leaderless(placement: Placement, topic: OffsetsTopicState) -> str:
    name = f"{OFFSETS_TOPIC}-{placement.partition}"
    dead = [node for node in placement.replicas if node not in topic.racks]
    line = commands.kelpie("elect", topic.cluster, "--unclean", name=name)
    return (
        f"{name} has no leader, so there is nobody to copy from. Start broker {listed(dead, 'or')}; if "
        f"that is gone for good, see {line}"
    )


def _table(moves: Sequence[ReplicaMove]) -> PlanTable:
    rows = []
    for move in moves:
        change = " ".join([f"+{node}" for node in move.added] + [f"−{node}" for node in move.removed])
        rows.append((str(move.partition), _nodes(move.before), _nodes(move.after), change or "order"))
    return PlanTable(f"Replicas of {OFFSETS_TOPIC}", ("PARTITION", "NOW", "NEW", "CHANGE"), tuple(rows))


def ongoing_table(moves: Iterable[Reassignment]) -> PlanTable:
    rows = [
        (str(move.partition), _nodes(move.target), _nodes(move.adding), _nodes(move.removing))
        for move in moves
    ]
    return PlanTable("Moves under way", ("PARTITION", "GOAL", "ADDING", "REMOVING"), tuple(rows))


def _nodes(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))
