"""Repairing the mapping tree of KoP: which client, by host and client id, belongs to which group.

Missing nodes are created and wrong ones set, from what the coordinators say of their members. Nodes that no
member has are deleted after a grace time. Ambiguous ones stay: any value would be a guess.

Members come and go while this runs. So everything is looked at twice, and only a change that both times was
due, at a node that has the same version, is made. Between the second look and the change a member may still
leave; the next check shows its node as leaked.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kelpie.attribution.reconciliation import LeakedMapping
from kelpie.attribution.requests import Create, Delete, Put
from kelpie.client.nodes import Nodes
from kelpie.model.quoting import quoted
from kelpie.model.words import counted, duration
from kelpie.repair import mapping_undo
from kelpie.repair.applying import Action, Repair
from kelpie.repair.change_records import ChangeRecord, MappingsChange, record_of
from kelpie.repair.mapping_plan import READ_ONCE, details, differences_left, seen, tables, title, warnings
from kelpie.repair.mapping_survey import MappingSurvey, MappingTree, survey_mappings
from kelpie.repair.mapping_undo import NO_BROKER
from kelpie.repair.plan import NOTHING_CHANGES, ManualStep, Plan, Step

CHECK, REPAIR = "mappings check", "mappings repair"
GRACE_S = 60.0
Write = Put | Create | Delete


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """What the operator asks for."""

    grace_s: float = GRACE_S
    """How long a node must stay leaked before it is deleted."""
    groups_without_members: bool = False
    """Delete leaked nodes of groups that have no member at all, too."""


def check(survey: MappingSurvey, nodes: Nodes, tree: MappingTree) -> Plan:
    """How members and tree differ; a plan without steps."""
    mend: tuple[ManualStep, ...] = ()
    if _writes(survey) or survey.reconciliation.leaked:
        mend = (ManualStep("See what would mend it:", (_command(nodes, tree),)),)
    return Plan(
        CHECK,
        title(survey),
        seen=seen(survey, tree),
        tables=tables(survey, tree),
        warnings=warnings(survey, ()),
        afterwards=mend,
        details={**details(survey), "differs": not survey.reconciliation.is_clean},
    )


async def repair(nodes: Nodes, tree: MappingTree, options: MappingOptions) -> Repair:
    """What would mend the tree. Raises CannotRepair, ClientError."""
    survey = await survey_mappings(nodes, tree)
    writes, deletes = _writes(survey), _deletes(survey, options)
    deleted = {request.path for request in deletes}
    kept = [row for row in survey.reconciliation.leaked if row.path not in deleted]
    steps: list[Step] = []
    actions: list[Action] = []
    if writes or deletes:
        changes = mapping_undo.changes_of([*writes, *deletes], survey.nodes)
        change = MappingsChange(tree.hosts, tree.root, changes)
        record = record_of(nodes, REPAIR, tree.root, title(survey), change)
        undo = record.way_back
        steps.append(record.step)
        actions.append(record.note)
    if writes:
        steps.append(
            Step(
                f"Ask again, and write {counted(len(writes), 'node')} that {_still(writes)} missing or wrong",
                "Each names the group of the members at its address.",
                undo,
            )
        )
        actions.append(partial(_write, nodes, tree, writes))
    if deletes:
        after = f"Wait {duration(options.grace_s * 1000)}, ask again" if options.grace_s else "Ask again"
        steps.append(
            Step(
                f"{after}, and delete {counted(len(deletes), 'node')} that {_still(deletes)} leaked",
                "A client that comes with such a host and client id counts for no group.",
                undo,
            )
        )
        due = asyncio.get_running_loop().time() + options.grace_s
        actions.append(partial(_delete, nodes, tree, deletes, options, due))
    if steps:
        steps.append(Step("Compare members and tree once more", "Nothing.", NOTHING_CHANGES))
        actions.append(partial(_compare, nodes, tree))
    plan = Plan(
        REPAIR,
        title(survey),
        tuple(steps),
        seen=seen(survey, tree),
        tables=tables(survey, tree),
        warnings=(*warnings(survey, kept), *((READ_ONCE,) if writes else ())),
        details={**details(survey), "changes": [request.path for request in (*writes, *deletes)]},
    )
    return Repair(plan, tuple(actions))


async def undo_mappings(nodes: Nodes, record: ChangeRecord, change: MappingsChange) -> Repair:
    """What would undo a repair. Nodes that changed since stay. Raises CannotRepair, ClientError."""
    tree = MappingTree(change.zookeeper, change.root)
    listing = await tree.use(lambda store: store.tree(tree.root), read_only=True) or {}
    due = {
        each: request for each in change.nodes if (request := each.undone(listing.get(each.path))) is not None
    }
    stays = len(change.nodes) - len(due)
    facts = [f"{counted(len(change.nodes), 'change')} in {record.file}."]
    if stays:
        facts.append(
            f"{counted(stays, 'node')} no longer as the repair left {'it' if stays == 1 else 'them'}."
        )
    if not due:
        return Repair(Plan("undo", "There is nothing to undo.", seen=tuple(facts)))
    title = f"Undo the repair of {counted(len(due), 'mapping')}."
    back = MappingsChange(tree.hosts, tree.root, tuple(each.reversed for each in due))
    noted = record_of(nodes, "undo", record.subject, title, back, undoes=record.id)
    again = ManualStep("Repair again (the plan comes first):", (_command(nodes, tree),))
    step = Step(f"Put back {counted(len(due), 'node')}", "Each is as it was before the repair.", again)
    paths = [each.path for each in due]
    plan = Plan("undo", title, (noted.step, step), seen=tuple(facts), details={"changes": paths})
    put_back = partial(_carry_out, tree, list(due.values()), "put back")
    return Repair(plan, (noted.note, put_back))


def _writes(survey: MappingSurvey) -> list[Write]:
    deletable = {row.path for row in survey.reconciliation.leaked}
    return [request for request in _requests(survey) if request.path not in deletable]


def _deletes(survey: MappingSurvey, options: MappingOptions) -> list[Write]:
    deletable = {row.path for row in survey.reconciliation.leaked if _is_deleted(row, survey, options)}
    return [request for request in _requests(survey) if request.path in deletable]


def _requests(survey: MappingSurvey) -> tuple[Write, ...]:
    return survey.reconciliation.requests(NO_BROKER, survey.versions)


def _is_deleted(row: LeakedMapping, survey: MappingSurvey, options: MappingOptions) -> bool:
    return options.groups_without_members or row.group not in survey.without_members


async def _write(nodes: Nodes, tree: MappingTree, planned: Sequence[Write]) -> str:
    still = set(_writes(await survey_mappings(nodes, tree)))
    return await _carry_out(tree, planned, "written", [request in still for request in planned])


async def _delete(
    nodes: Nodes, tree: MappingTree, planned: Sequence[Write], options: MappingOptions, due: float
) -> str:
    await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
    still = set(_deletes(await survey_mappings(nodes, tree), options))
    return await _carry_out(tree, planned, "deleted", [request in still for request in planned])


async def _carry_out(
    tree: MappingTree, planned: Sequence[Write], done_word: str, still: Sequence[bool] | None = None
) -> str:
    """Carries out those that are still due. One that another writer was faster with stays as that left it."""
    due = [request for at, request in enumerate(planned) if still is None or still[at]]
    done = sum(await tree.use(lambda store: store.write(due))) if due else 0
    report = f"{counted(done, 'node')} {done_word}."
    changed = len(planned) - done
    if changed:
        report += (
            f" {counted(changed, 'node')} changed since the plan was made, and "
            f"{'stays as it is' if changed == 1 else 'stay as they are'}."
        )
    return report


async def _compare(nodes: Nodes, tree: MappingTree) -> str:
    return differences_left((await survey_mappings(nodes, tree)).reconciliation)


def _still(requests: Sequence[Write]) -> str:
    return "is still" if len(requests) == 1 else "are still"


def _command(nodes: Nodes, tree: MappingTree, *words: str) -> str:
    bootstrap = nodes.settings.bootstrap_servers
    where = ["--zookeeper", tree.hosts, "-b", bootstrap]
    if tree.root != MappingTree("").root:
        where += ["--root", tree.root]
    return " ".join(quoted(word) for word in ("kelpie", *REPAIR.split(), *where, *words))
