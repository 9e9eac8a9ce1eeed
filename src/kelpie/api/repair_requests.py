"""What each repair looks at to make its plan. Commands, pages and programs share these requests."""

from collections.abc import Callable, Sequence
from pathlib import Path

from kelpie.api.offsets import read_witnesses
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.evidence import read_evidence
from kelpie.examination.memory import Recollection
from kelpie.model.names import TopicPartition
from kelpie.observations import Observations
from kelpie.repair import elect as electing
from kelpie.repair import mappings as mapping
from kelpie.repair import migrate_offsets as migrating
from kelpie.repair import reassign as reassigning
from kelpie.repair import rehome as rehoming
from kelpie.repair import reset as resetting
from kelpie.repair import undo as undoing
from kelpie.repair.applying import Repair
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.mapping_survey import MappingTree
from kelpie.repair.mappings import MappingOptions
from kelpie.repair.migrate_offsets import Migration
from kelpie.repair.offset_sources import Sources
from kelpie.repair.picture import survey_brokers
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reassign import ReassignmentOptions
from kelpie.repair.reset_targets import ResetTarget
from kelpie.repair.undertaking import RepairRequest
from kelpie.store import Store

Tell = Callable[[str], None]
"""Hears what is wrong with the store of earlier surveys."""


def _silent(_: str) -> None:
    """For callers that do not report what is wrong with the store."""


def rehome(
    group: str, new_name: str | None, offsets_from: Sequence[str], tell: Tell = _silent
) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        sources = Sources.parse(offsets_from)
        return await rehoming.rehome(
            nodes,
            group,
            sources,
            new_name=new_name,
            earlier=await earlier_surveys(nodes, Store(), tell) if sources.store else None,
            evidence=read_witnesses(sources.disks) if sources.disks else None,
        )

    return RepairRequest(make, f"group {group}")


def reset(group: str, target: ResetTarget, topics: Sequence[str]) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        return await resetting.reset(nodes, group, target, topics)

    return RepairRequest(make, f"group {group}")


def reset_to_last_known(
    group: str, disks: Sequence[Path], topics: Sequence[str], tell: Tell = _silent
) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        check_there(disks)
        known = await resetting.last_known(
            nodes,
            group,
            earlier=await earlier_surveys(nodes, Store(), tell),
            evidence=read_witnesses(disks) if disks else None,
        )
        return await resetting.reset(nodes, group, known.target, topics, known)

    return RepairRequest(make, f"group {group}")


def elect(partitions: Sequence[TopicPartition], evidence: Sequence[Path], *, unclean: bool) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        check_there(evidence)
        known = read_evidence(evidence) if evidence else None
        return await electing.elect(nodes, partitions, unclean=unclean, known=known)

    return RepairRequest(make)


def reassign_offsets_topic(
    options: ReassignmentOptions, zookeeper: str | None, *, cancel: bool, tell: Tell = _silent
) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        if cancel:
            return await reassigning.cancel(nodes)
        earlier = await earlier_surveys(nodes, Store(), tell)
        return await reassigning.reassign(nodes, options, zookeeper, earlier)

    return RepairRequest(make)


def migrate_offsets(migration: Migration) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        return await migrating.migrate_offsets(nodes, migration)

    return RepairRequest(make, f"group {migration.name}")


def repair_mappings(tree: MappingTree, options: MappingOptions) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        return await mapping.repair(nodes, tree, options)

    return RepairRequest(make, f"mappings {tree.root}")


def undo(record: ChangeRecord) -> RepairRequest:
    async def make(nodes: Nodes) -> Repair:
        return await undoing.undo(nodes, record)

    return RepairRequest(make, undoing.subject_of(record))


async def earlier_surveys(nodes: Nodes, store: Store, tell: Tell = _silent) -> Observations:
    """What a store holds about this cluster: not about another one that has said it has the same id."""
    memory = Recollection.of(nodes, store, wall_clock()).settled(await survey_brokers(nodes))
    for word in store.words:
        tell(word)
    return memory.rows


def check_there(places: Sequence[Path]) -> None:
    """Files and folders that a person has named. Raises CannotRepair."""
    for path in places:
        if not path.exists():
            raise CannotRepair(f"There is no file or folder {path}.")
