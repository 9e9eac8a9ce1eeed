"""Where a group's committed offsets can still be had, each place asked for what it knows.

- the coordinator, while it answers;
- copies of the group's partition of the offsets topic: on living brokers that do not lead it (`survivors`),
  and in segment files off the disks of brokers, dead or alive;
- earlier surveys, in the store;
- a CSV that a person gives.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.cluster.health import living_replicas
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.repair import offsets_file
from kelpie.repair.coordinators import Coordinators, Refused
from kelpie.repair.offsets import Claim, Copy, Kind, of_copies, of_surveys, place_of
from kelpie.repair.plan import CannotRepair
from kelpie.repair.survivors import read_copy

COORDINATOR, HISTORY, STORE = "coordinator", "history", "store"


@dataclass(frozen=True, slots=True)
class Sources:
    """Which places to ask."""

    coordinator: bool = True
    history: bool = True
    """The offsets topic itself, where living brokers have it."""
    store: bool = True
    disks: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Sources":
        """Reads what stands behind --offsets-from; nothing: all that need no path. Raises CannotRepair."""
        if not words:
            return cls()
        disks: list[Path] = []
        files: list[Path] = []
        for word in words:
            if word in (COORDINATOR, HISTORY, STORE):
                continue
            path = Path(word)
            if not path.exists():
                raise CannotRepair(
                    f"There is no file or folder {word}. Offsets can be had from: {COORDINATOR}, {HISTORY}, "
                    f"{STORE}, a folder with segment files, or a CSV file."
                )
            (files if path.suffix.lower() == ".csv" else disks).append(path)
        return cls(COORDINATOR in words, HISTORY in words, STORE in words, tuple(disks), tuple(files))


@dataclass
class Gathered:
    """All claims, the copies that were read, and what came of every place, in words."""

    claims: list[Claim] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    by_coordinator: bool = False
    """Whether the coordinator has answered: then nobody else counts."""


async def gather(
    nodes: Nodes,
    coordinators: Coordinators,
    group: str,
    sources: Sources,
    *,
    earlier: Observations | None = None,
    evidence: Observations | None = None,
) -> Gathered:
    """`earlier`: what the store holds; `evidence`: what was read of the disks. Raises CannotRepair."""
    gathered = Gathered()
    for file in sources.files:
        _take_file(file, group, gathered)
    if gathered.claims:
        return gathered
    partition = home_of(coordinators.cluster, group)
    if sources.coordinator:
        await _take_coordinator(coordinators, group, partition, gathered)
        if gathered.by_coordinator:
            return gathered
    if sources.history and not coordinators.cluster.has_leader(partition):
        await _take_copies(nodes, coordinators, group, partition, gathered)
    if evidence is not None:
        _take_disks(evidence, group, partition, gathered)
    if earlier is not None:
        _take_surveys(earlier, group, gathered)
    return gathered


async def gather_past(
    nodes: Nodes,
    coordinators: Coordinators,
    group: str,
    *,
    earlier: Observations | None = None,
    evidence: Observations | None = None,
) -> Gathered:
    """What was ever committed, as far as the offsets topic still holds it; removals do not count."""
    gathered = Gathered()
    partition = home_of(coordinators.cluster, group)
    await _take_copies(nodes, coordinators, group, partition, gathered, removals=False)
    if evidence is not None:
        _take_disks(evidence, group, partition, gathered, removals=False)
    if earlier is not None:
        _take_surveys(earlier, group, gathered)
    return gathered


def home_of(cluster: ClusterView, group: str) -> TopicPartition:
    """The partition of the offsets topic that a group lives on. Raises CannotRepair where there is none."""
    home = cluster.home_of(group)
    if home is None:
        raise CannotRepair(
            f"The cluster has no topic {OFFSETS_TOPIC} (or nobody could be asked for it): no group has ever "
            "committed here. Is it the right cluster?"
        )
    return home


def claims_in(file: Path, group: str) -> dict[TopicPartition, Claim]:
    """What a CSV file says of a group. Raises CannotRepair."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRepair(f"{file} cannot be read: {error}.") from None
    offsets = offsets_file.read(text, group, str(file))
    return {it: Claim(it, offset, str(file), kind=Kind.GIVEN) for it, offset in offsets.items()}


def _take_file(file: Path, group: str, gathered: Gathered) -> None:
    claims = claims_in(file, group)
    gathered.claims += claims.values()
    gathered.reports.append(f"{file}: {_count(len(claims))}")


async def _take_coordinator(
    coordinators: Coordinators, group: str, partition: TopicPartition, gathered: Gathered
) -> None:
    node = coordinators.cluster.coordinator_of(group)
    if node is None:
        gathered.reports.append(f"the coordinator: {partition} has no living leader")
        return
    try:
        claims = await coordinators.committed(group, coordinators.cluster.views)
    except (Refused, ClientError) as error:
        gathered.reports.append(f"the coordinator, broker {node}: {error}")
        return
    gathered.by_coordinator = True
    gathered.claims += claims.values()
    gathered.reports.append(f"the coordinator, broker {node}: {_count(len(claims))}")


async def _take_copies(
    nodes: Nodes,
    coordinators: Coordinators,
    group: str,
    partition: TopicPartition,
    gathered: Gathered,
    *,
    removals: bool = True,
) -> None:
    """What living brokers have of the partition: its leader alone if it has one, else everybody."""
    cluster = coordinators.cluster
    leader = cluster.coordinator_of(group)
    living = [leader] if leader is not None else living_replicas(cluster, partition)
    if not living:
        gathered.reports.append(f"living brokers: none has a copy of {partition}")
    readings = await asyncio.gather(*(read_copy(nodes, cluster, it, partition, [group]) for it in living))
    for reading in readings:
        claims = of_copies(reading.commits, group, removals=removals)
        said = _count(len(claims)) if reading.read_to >= 0 else "nothing"
        if reading.untold:
            untold = counted(reading.untold, "record")
            said += f"; the last of it ({untold}) cannot be read over the network, but its disk has it"
        if reading.failure:
            said += f"; {reading.failure}"
        gathered.reports.append(f"{reading.source}: {said}")
        if reading.read_to >= 0:
            gathered.claims += claims
            gathered.copies.append(reading.copy)


def _take_disks(
    evidence: Observations,
    group: str,
    partition: TopicPartition,
    gathered: Gathered,
    *,
    removals: bool = True,
) -> None:
    copies = [Copy(place_of(it.source)[0], it.latest) for it in evidence.ends if it.name == partition]
    claims = [
        *of_copies(evidence.commits, group, removals=removals),
        *of_surveys(evidence.committed, group),
    ]
    gathered.claims += claims
    gathered.copies += copies
    which = f"{len(copies)} cop{'y' if len(copies) == 1 else 'ies'} of {partition}"
    gathered.reports.append(f"disks: {which}, {_count(len(claims))}")
    gathered.reports += [f"{it.name}: {it.reason}" for it in evidence.unasked if str(partition) in it.name]


def _take_surveys(earlier: Observations, group: str, gathered: Gathered) -> None:
    claims = [*of_surveys(earlier.committed, group), *of_copies(earlier.commits, group)]
    gathered.claims += claims
    gathered.reports.append(f"earlier surveys: {_count(len(claims))}")


def _count(offsets: int) -> str:
    return counted(offsets, "offset")
