"""The plan of a reassignment of the offsets topic: words and data, no questions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelpie.client.admin.rows import Reassignment
from kelpie.cluster import ClusterView, commands
from kelpie.model.time import Instant
from kelpie.model.words import counted, duration, listed, numbered
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.plan import NOTHING_CHANGES, Document, ManualStep, Plan, PlanTable, Step
from kelpie.repair.replica_placement import Placement, ReplicaMove, ReplicaMoves, as_json
from kelpie.repair.throttle import Throttle

COMMAND = "reassign-offsets-topic"
_RESTART_MS = 30 * 60 * 1000
"""A broker that was seen so recently may be back soon: starts after a crash take minutes."""
_DOCUMENT = "The same for kafka-reassign-partitions.sh --reassignment-json-file"


@dataclass(frozen=True, slots=True)
class OffsetsTopicState:
    """The offsets topic now: living brokers, where the partitions are, and what is moving."""

    cluster: ClusterView
    racks: Mapping[int, str | None]
    """Of brokers that are not gone."""
    placements: tuple[Placement, ...]
    moving: tuple[str, ...] = ()
    """Moves under way, in words."""
    through: str = "the controller"
    """Who takes the moves."""
    zookeeper: str = ""
    """Where the moves go before Kafka 2.4."""
    unsure: Mapping[int, str] = field(default_factory=dict)
    """Brokers that do not answer here, but that the cluster does not count as gone."""
    last_seen: Mapping[int, Instant] = field(default_factory=dict)
    """When earlier surveys last reached each broker."""
    copied: int | None = None
    """How many bytes the moves copy, if brokers tell."""

    @property
    def gone(self) -> list[int]:
        """Brokers that should hold replicas, and that the cluster no longer has."""
        return sorted(
            {node for placement in self.placements for node in placement.replicas} - set(self.racks)
        )

    @property
    def partitions(self) -> list[int]:
        return [placement.partition for placement in self.placements]


def title_of(moves: ReplicaMoves) -> str:
    if not moves.moves:
        return f"Nothing to move: {OFFSETS_TOPIC} is as it shall be, as far as it can be."
    count = counted(len(moves.moves), "partition")
    return f"Move {count} of {OFFSETS_TOPIC}, so that each survives the loss of a broker."


def plan_reassignment(
    topic: OffsetsTopicState,
    moves: ReplicaMoves,
    record: ChangeRecord,
    wait_s: float,
    throttle: Throttle | None = None,
) -> Plan:
    """`record`: what will say what was done; `throttle`: the limit on copying, if one is wanted."""
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
    if moves.moves and throttle is not None:
        steps = _throttled(steps, throttle, cluster)
    return Plan(
        COMMAND,
        title_of(moves),
        steps,
        seen=(*_seen(topic), *_amount(topic, moves, throttle)),
        tables=(_table(moves.moves),) if moves.moves else (),
        documents=(Document(_DOCUMENT, as_json(moves.after)),) if moves.moves else (),
        warnings=(
            *(_may_come_back(node, topic) for node in topic.gone if moves.moves),
            *(_leaderless(placement, topic) for placement in moves.leaderless),
        ),
        details={
            "reassignment": json.loads(as_json(moves.after)),
            "before": json.loads(as_json(moves.before)),
            "bytes_copied": topic.copied,
            "leaderless": [placement.partition for placement in moves.leaderless],
        },
    )


def _seen(topic: OffsetsTopicState) -> tuple[str, ...]:
    living = set(topic.racks)
    sure = sorted(living - set(topic.unsure))
    single = sum(len(living.intersection(placement.in_sync)) == 1 for placement in topic.placements)
    seen = [
        f"{OFFSETS_TOPIC} has {counted(len(topic.placements), 'partition')}. Brokers that are alive: "
        f"{listed(sure)}.",
    ]
    if topic.gone:
        seen.append(f"Gone from the cluster, though they should hold replicas: broker {listed(topic.gone)}.")
    seen += [
        f"Broker {node} does not answer here ({why}), but the cluster counts it as alive. Its replicas stay, "
        "and it gets no new ones."
        for node, why in sorted(topic.unsure.items())
    ]
    if single:
        seen.append(f"With a single living replica in sync: {counted(single, 'partition')}.")
    return (*seen, *(f"{move}." for move in topic.moving))


def _throttled(steps: tuple[Step, ...], throttle: Throttle, cluster: ClusterView) -> tuple[Step, ...]:
    again = commands.kelpie(COMMAND, cluster)
    text = "The last step does that. If it is not reached, run this again once all is copied:"
    back = ManualStep(text, (again,))
    limiting = Step(
        f"Limit the copying to {throttle.bytes_per_s:,} bytes/s on {numbered('broker', throttle.brokers)}",
        "Settings of these brokers and of the topic, as kafka-reassign-partitions --throttle sets them.",
        back,
    )
    lifting = Step("Take the limit back", "Brokers copy as fast as they can again.", NOTHING_CHANGES)
    return (steps[0], limiting, *steps[1:], lifting)


def _amount(topic: OffsetsTopicState, moves: ReplicaMoves, throttle: Throttle | None) -> list[str]:
    if not any(move.added for move in moves.moves):
        return []
    if topic.copied is None:
        return ["How much has to be copied is not known: these brokers do not tell the sizes of logs."]
    amount = f"{topic.copied:,} bytes have to be copied"
    if throttle is None:
        return [f"{amount}, as fast as brokers can; --throttle BYTES_PER_S limits that."]
    least = max(topic.copied // throttle.bytes_per_s, 1)
    return [f"{amount}; with this limit one broker alone would take {duration(least * 1000)}."]


def _may_come_back(node: int, topic: OffsetsTopicState) -> str:
    """To move replicas off a broker that is being restarted copies everything twice."""
    at = topic.last_seen.get(node)
    if at is None:
        return (
            f"Since when broker {node} is gone is not known here. It may only be restarting: then wait for "
            "it instead, because everything that moves is copied, and copied back."
        )
    ago = duration(max(topic.cluster.now - at, 0))
    if topic.cluster.now - at < _RESTART_MS:
        return (
            f"Broker {node} was alive {ago} ago. It may only be restarting: wait for it before anything is "
            "moved."
        )
    return f"Broker {node} was last seen alive {ago} ago. If it will be started again, wait for it instead."


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
