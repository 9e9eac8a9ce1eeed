"""Which replicas to add or move so that every partition of the offsets topic survives the loss of a broker.

A partition is well when all its replicas live, there are as many as wanted, and they are in more than one
rack, if there are several. Any other partition is changed as little as possible: the leader stays, living
replicas stay in their order, new ones go to the brokers that have the fewest, in racks that the partition
does not have yet. A partition without a leader is left as it is: a new replica could copy from no broker.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.plan import CannotRepair

USUAL_REPLICATION = 3
"""Kafka's own default for the offsets topic."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The replicas of one partition in order, its leader, and those in sync."""

    partition: int
    replicas: tuple[int, ...]
    leader: int
    in_sync: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaMove:
    """The replicas of one partition, before and after."""

    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(node for node in self.after if node not in self.before)

    @property
    def removed(self) -> tuple[int, ...]:
        return tuple(node for node in self.before if node not in self.after)


@dataclass(frozen=True, slots=True)
class ReplicaMoves:
    moves: tuple[ReplicaMove, ...]
    leaderless: tuple[Placement, ...]
    """Left as they are: a new replica could copy from no broker."""

    @property
    def before(self) -> dict[int, tuple[int, ...]]:
        return {move.partition: move.before for move in self.moves}

    @property
    def after(self) -> dict[int, tuple[int, ...]]:
        return {move.partition: move.after for move in self.moves}


def moves_for(
    placements: Iterable[Placement],
    racks: Mapping[int, str | None],
    replication: int | None = None,
    living: Collection[int] = (),
    unsure: Collection[int] = (),
) -> ReplicaMoves:
    """`racks`: of every broker that may hold replicas; `living`: further brokers, that may lead; `unsure`:
    those of `racks` that could not be reached. They keep the replicas that they have, and get no new ones.

    Raises CannotRepair.
    """
    wanted = _wanted(racks, replication)
    sources = {*racks, *living}
    placements = sorted(placements, key=lambda placement: placement.partition)
    load = dict.fromkeys(racks, 0)
    for placement in placements:
        for node in placement.replicas:
            if node in load:
                load[node] += 1
    moves, leaderless = [], []
    for placement in placements:
        if placement.leader not in sources and sources.isdisjoint(placement.in_sync):
            leaderless.append(placement)
            continue
        # Without a wish, no replica on a living broker is removed.
        kept = sum(node in racks for node in placement.replicas) if replication is None else 0
        after = _placed(placement, racks, max(wanted, kept), load, unsure)
        if after != placement.replicas:
            moves.append(ReplicaMove(placement.partition, placement.replicas, after))
    return ReplicaMoves(tuple(moves), tuple(leaderless))


def _wanted(racks: Mapping[int, str | None], replication: int | None) -> int:
    if len(racks) < 2:
        raise CannotRepair(
            f"Only {len(racks)} broker{'s' * (len(racks) != 1)} can hold replicas; to survive the loss of "
            "one, a partition needs two. Start another broker, or name more with --brokers."
        )
    if replication is None:
        return min(USUAL_REPLICATION, len(racks))
    if replication < 2:
        raise CannotRepair("With fewer than 2 replicas no partition survives the loss of a broker.")
    if replication > len(racks):
        raise CannotRepair(
            f"{replication} replicas need as many living brokers; there are {len(racks)}: "
            f"{', '.join(map(str, sorted(racks)))}."
        )
    return replication


def _placed(
    placement: Placement,
    racks: Mapping[int, str | None],
    wanted: int,
    load: dict[int, int],
    unsure: Collection[int],
) -> tuple[int, ...]:
    """The new replicas of a partition. Counts them in `load`."""
    receivers = {node: rack for node, rack in racks.items() if node not in unsure}
    kept = [node for node in placement.replicas if node in racks]
    while len(kept) > wanted:
        leaving = _superfluous(kept, placement, racks, load)
        kept.remove(leaving)
        load[leaving] -= 1
    while len(kept) < wanted and not receivers.keys() <= set(kept):
        kept.append(_next(kept, racks, load, receivers))
        load[kept[-1]] += 1
    if len({racks[node] for node in kept}) == 1 and set(receivers.values()) - {racks[node] for node in kept}:
        leaving = _superfluous(kept, placement, racks, load)
        coming = _next([node for node in kept if node != leaving], racks, load, receivers)
        kept[kept.index(leaving)] = coming
        load[coming] += 1
        load[leaving] -= 1
    if placement.leader in kept and placement.replicas and placement.replicas[0] not in kept:
        # The preferred leader is gone; the present leader becomes the preferred one.
        kept.remove(placement.leader)
        kept.insert(0, placement.leader)
    return tuple(kept)


def _next(
    kept: Collection[int],
    racks: Mapping[int, str | None],
    load: Mapping[int, int],
    receivers: Collection[int],
) -> int:
    """A broker in a new rack if there is one; of those the one with the fewest replicas."""
    used = {racks[node] for node in kept}
    return min(
        (node for node in receivers if node not in kept),
        key=lambda node: (racks[node] in used, load[node], node),
    )


def _superfluous(
    kept: Sequence[int], placement: Placement, racks: Mapping[int, str | None], load: dict[int, int]
) -> int:
    """The replica to remove: never the leader; best one out of sync, or in a rack that has another."""
    racks_of_kept = [racks[node] for node in kept]
    stays = placement.leader if placement.leader in kept else kept[0]
    return max(
        (node for node in kept if node != stays),
        key=lambda node: (
            node not in placement.in_sync,
            racks_of_kept.count(racks[node]),
            load[node],
            kept.index(node),
        ),
    )


def as_json(assignment: Mapping[int, Sequence[int]]) -> str:
    """What kafka-reassign-partitions takes with --reassignment-json-file."""
    rows = ",\n  ".join(
        json.dumps({"topic": OFFSETS_TOPIC, "partition": partition, "replicas": list(replicas)})
        for partition, replicas in sorted(assignment.items())
    )
    return f'{{"version": 1, "partitions": [\n  {rows}\n]}}\n'


def from_json(text: str, file: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Reads such a file. Raises CannotRepair."""
    try:
        return {
            TopicPartition(str(row["topic"]), int(row["partition"])): tuple(map(int, row["replicas"]))
            for row in json.loads(text)["partitions"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise CannotRepair(
            f"{file} is no reassignment as kafka-reassign-partitions takes it: "
            f"{type(error).__name__}: {error}."
        ) from None
