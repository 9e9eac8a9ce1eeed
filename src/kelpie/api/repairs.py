"""Repairs for programs: a plan, then `apply`, and a way back. Nothing changes a cluster before `apply`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelpie.api import repair_requests as requests
from kelpie.api.places import PathLike, Place, settings_at
from kelpie.client.nodes import Nodes
from kelpie.model.names import TopicPartition
from kelpie.repair.applying import RepairResult
from kelpie.repair.change_records import records
from kelpie.repair.change_states import ChangeState, asked_states, changes_noted
from kelpie.repair.mapping_survey import MappingTree, survey_mappings
from kelpie.repair.mappings import MappingOptions, check
from kelpie.repair.migrate_offsets import Migration
from kelpie.repair.plan import Plan
from kelpie.repair.reassign import ReassignmentOptions
from kelpie.repair.reset_targets import ResetTarget
from kelpie.repair.shown_plans import why_not
from kelpie.repair.undertaking import RepairRequest, Undertaking
from kelpie.repair.undo import find


@dataclass(frozen=True, slots=True)
class PlannedRepair:
    """A repair that has not been done: `plan` says what it would do. `apply` does it."""

    plan: Plan
    undertaking: Undertaking


async def apply(
    planned: PlannedRepair, *, on_report: Callable[[int, str], None] = lambda _number, _report: None
) -> RepairResult:
    """Does a repair, if a plan that is made now changes the same and finds the same as the one given.

    If it does not, or if a step fails, `failure` of the result says why; steps done before stay done.
    `on_report` hears the number of each step, and what was done. Raises KelpieError.
    """

    def approve(plan: Plan, _cluster: str) -> str | None:
        return why_not(plan, None, planned.plan.id)

    return await planned.undertaking.apply(approve, on_report)


async def plan_rehome(
    cluster: Place, group: str, *, new_name: str | None = None, offsets_from: Iterable[PathLike] = ()
) -> PlannedRepair:
    """Move a group to a name on a healthy coordinator, with its offsets.

    `offsets_from`: "coordinator", "history", "store", folders, tables or CSV files; the first three if left
    out. Raises KelpieError.
    """
    return await _planned(cluster, requests.rehome(group, new_name, list(map(str, offsets_from))))


async def plan_reset(
    cluster: Place, group: str, target: ResetTarget, *, topics: Sequence[str] = ()
) -> PlannedRepair:
    """Set the committed offsets of a group without members.

    `target`: ToEarliest(), ToLatest(), ToTime(ms), ShiftBy(n). `topics`: "orders", or "orders:0,1" for some
    partitions; all that the group has committed if left out. Raises KelpieError.
    """
    return await _planned(cluster, requests.reset(group, target, topics))


async def plan_reset_to_last_known(
    cluster: Place, group: str, *, disks: Iterable[PathLike] = (), topics: Sequence[str] = ()
) -> PlannedRepair:
    """Set them to the newest commit that the offsets topic, earlier surveys, disks or tables still hold.

    Raises KelpieError.
    """
    return await _planned(cluster, requests.reset_to_last_known(group, list(map(Path, disks)), topics))


async def plan_elect(
    cluster: Place,
    partitions: Iterable[TopicPartition],
    *,
    unclean: bool = False,
    evidence: Iterable[PathLike] = (),
) -> PlannedRepair:
    """Elect preferred leaders; `unclean`: any living replica of partitions that have no leader.

    `evidence`: disks of brokers that are down, to tell what would be lost. Raises KelpieError.
    """
    files = list(map(Path, evidence))
    return await _planned(cluster, requests.elect(tuple(partitions), files, unclean=unclean))


async def plan_reassign_offsets_topic(
    cluster: Place,
    *,
    options: ReassignmentOptions | None = None,
    cancel: bool = False,
    zookeeper: str | None = None,
) -> PlannedRepair:
    """Give the offsets topic enough replicas; `cancel`: cancel the moves that are under way.

    `zookeeper`: of clusters before Kafka 2.4. Raises KelpieError.
    """
    request = requests.reassign_offsets_topic(options or ReassignmentOptions(), zookeeper, cancel=cancel)
    return await _planned(cluster, request)


async def plan_migrate_offsets(cluster: Place, migration: Migration) -> PlannedRepair:
    """Commit the offsets that a group keeps in ZooKeeper for a group of Kafka's own. Raises KelpieError."""
    return await _planned(cluster, requests.migrate_offsets(migration))


async def check_mappings(cluster: Place, tree: MappingTree) -> Plan:
    """Compare KoP's mapping from client to group with the members of all groups; see `details`.

    Changes nothing. Raises KelpieError.
    """
    async with await Nodes.open(settings_at(cluster)) as nodes:
        return check(await survey_mappings(nodes, tree), nodes, tree)


async def plan_mappings_repair(
    cluster: Place, tree: MappingTree, *, options: MappingOptions | None = None
) -> PlannedRepair:
    """Write nodes of KoP's mapping that are missing or wrong, delete leaked ones. Raises KelpieError."""
    return await _planned(cluster, requests.repair_mappings(tree, options or MappingOptions()))


async def changes_made(cluster: Place | None = None) -> list[ChangeState]:
    """What Kelpie has changed, by the records of this machine's user, the oldest first.

    With a cluster: only what was changed there, and whether it can still be undone. Raises KelpieError.
    """
    if cluster is None:
        return changes_noted(records())
    async with await Nodes.open(settings_at(cluster)) as nodes:
        return await asked_states(nodes, records())


async def plan_undo(change: str, cluster: Place | None = None) -> PlannedRepair:
    """Take a change back, by the beginning of its id. `cluster`: as it was reached then if left out.

    Raises KelpieError.
    """
    record = find(records(), change)
    return await _planned(cluster if cluster is not None else record.bootstrap, requests.undo(record))


async def _planned(cluster: Place, request: RepairRequest) -> PlannedRepair:
    undertaking = Undertaking(settings_at(cluster), request)
    plan, _ = await undertaking.plan()
    return PlannedRepair(plan, undertaking)
