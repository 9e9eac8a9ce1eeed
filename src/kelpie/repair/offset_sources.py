"""Where a group's committed offsets are still known:

- the coordinator, while it answers;
- copies of the group's partition of the offsets topic: on living brokers that do not lead it
  (`replica_copies`), and in segment files from the disks of brokers, dead or alive;
- earlier surveys, in the store;
- a CSV file that a person gives.
"""

import asyncio
from collections.abc import Collection, Sequence
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
from kelpie.repair.claims import Claim, ClaimKind, CopyRead, claims_of, of_copies, of_surveys, place_in_copy
from kelpie.repair.coordinators import CoordinatorRefused, Coordinators
from kelpie.repair.plan import CannotRepair
from kelpie.repair.replica_copies import read_copy

COORDINATOR, HISTORY, STORE = "coordinator", "history", "store"


@dataclass(frozen=True, slots=True)
class Sources:
    """Which sources to ask."""

    coordinator: bool = True
    history: bool = True
    """Copies of the offsets topic on living brokers."""
    store: bool = True
    disks: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    removed: bool = False
    """Also commits that were removed since, and copies although the coordinator could be asked."""

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Sources":
        """Reads the words behind --offsets-from. None: all sources that need no path. Raises CannotRepair."""
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


PAST_COMMITS = Sources(coordinator=False, removed=True)
"""All commits that the offsets topic still holds."""


@dataclass
class Gathered:
    """All claims, the copies that were read, and a report on each source, in words."""

    claims: list[Claim] = field(default_factory=list)
    copies: list[CopyRead] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)


async def gather(
    nodes: Nodes,
    coordinators: Coordinators,
    group: str,
    sources: Sources,
    *,
    earlier: Observations | None = None,
    evidence: Observations | None = None,
) -> Gathered:
    """`earlier`: what the store holds; `evidence`: what was read from disks. Raises CannotRepair."""
    gathered = Gathered()
    for file in sources.files:
        given = claims_in(file, group)
        gathered.claims += given.values()
        gathered.reports.append(f"{file}: {_count(given)}")
    if gathered.claims:
        return gathered
    cluster = coordinators.cluster
    partition = home_of(cluster, group)
    if sources.coordinator and await _take_coordinator(coordinators, group, partition, gathered):
        return gathered
    removals = not sources.removed
    if sources.history and (sources.removed or not cluster.has_leader(partition)):
        await _take_copies(nodes, cluster, group, partition, gathered, removals=removals)
    if evidence is not None:
        _take_disks(evidence, group, partition, gathered, removals=removals)
    if earlier is not None:
        seen = [*of_surveys(earlier.committed, group), *of_copies(earlier.commits, group)]
        gathered.claims += seen
        gathered.reports.append(f"earlier surveys: {_count(seen)}")
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
    """The offsets of a group in a CSV file. Raises CannotRepair."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRepair(f"{file} cannot be read: {error}.") from None
    offsets = offsets_file.read(text, group, str(file))
    return {name: Claim(name, offset, str(file), kind=ClaimKind.GIVEN) for name, offset in offsets.items()}


async def _take_coordinator(
    coordinators: Coordinators, group: str, partition: TopicPartition, gathered: Gathered
) -> bool:
    """Whether the coordinator has answered: then no other source counts."""
    node = coordinators.cluster.coordinator_of(group)
    if node is None:
        gathered.reports.append(f"the coordinator: {partition} has no living leader")
        return False
    try:
        claims = await coordinators.committed(group)
    except (CoordinatorRefused, ClientError) as error:
        gathered.reports.append(f"the coordinator, broker {node}: {error}")
        return False
    gathered.claims += claims.values()
    gathered.reports.append(f"the coordinator, broker {node}: {_count(claims)}")
    return True


async def _take_copies(
    nodes: Nodes,
    cluster: ClusterView,
    group: str,
    partition: TopicPartition,
    gathered: Gathered,
    *,
    removals: bool,
) -> None:
    """Reads the copy of the leader; if there is none, the copies of all living replicas."""
    leader = cluster.coordinator_of(group)
    living = [leader] if leader is not None else living_replicas(cluster, partition)
    if not living:
        gathered.reports.append(f"living brokers: none has a copy of {partition}")
    copies = await asyncio.gather(*(read_copy(nodes, cluster, node, partition, [group]) for node in living))
    for copy in copies:
        claims = of_copies(copy.commits, group, removals=removals)
        report = _count(claims) if copy.read_to >= 0 else "nothing"
        if copy.unread:
            unread = counted(copy.unread, "record")
            report += f"; the last of it ({unread}) cannot be read over the network, but its disk has it"
        if copy.failure:
            report += f"; {copy.failure}"
        gathered.reports.append(f"{copy.source}: {report}")
        if copy.read_to >= 0:
            gathered.claims += claims
            gathered.copies.append(CopyRead(copy.source, copy.read_to))


def _take_disks(
    evidence: Observations, group: str, partition: TopicPartition, gathered: Gathered, *, removals: bool
) -> None:
    copies = [
        CopyRead(place_in_copy(row.source)[0], row.latest) for row in evidence.ends if row.name == partition
    ]
    claims = claims_of(evidence, group, removals=removals)
    gathered.claims += claims
    gathered.copies += copies
    which = f"{len(copies)} cop{'y' if len(copies) == 1 else 'ies'} of {partition}"
    gathered.reports.append(f"disks: {which}, {_count(claims)}")
    gathered.reports += [
        f"{row.name}: {row.reason}" for row in evidence.unasked if str(partition) in row.name
    ]


def _count(claims: Collection[object]) -> str:
    return counted(len(claims), "offset")
