"""Taking back what a repair has done, as its record says, and only while everything is as the repair left it.

What has changed since belongs to somebody else by now: then nothing is done, and the plan says what changed.
An undo writes a record of its own, so that it can be undone as well.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from kelpie.client.admin.controller import can_reassign
from kelpie.client.nodes import Nodes
from kelpie.cluster import commands
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, first_of, listed, moment
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.applying import Action, Repair
from kelpie.repair.change_records import (
    ChangeRecord,
    MappingsChange,
    NoWayBack,
    Offsets,
    OffsetsChange,
    ReplicasChange,
    StoredOffset,
    record_of,
)
from kelpie.repair.committing import group_at_coordinator
from kelpie.repair.coordinators import Coordinators
from kelpie.repair.group_move import COMPARE, EXPIRES, members_obstacle
from kelpie.repair.mappings import undo_mappings
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair, Plan, PlanTable, Step
from kelpie.repair.reassign import ReassignmentOptions, reassign

NOT_UNDONE = "not undone"
_MOST_NAMED = 3
_NO_OFFSET_DELETE = "This release of Kafka cannot delete single offsets (2.4 and later can): they stay."


def find(records: Iterable[ChangeRecord], text: str) -> ChangeRecord:
    """The record whose id begins so. Raises CannotRepair."""
    fitting = [record for record in records if record.id.startswith(text)] if text else []
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise CannotRepair(f"{text} begins several ids: {listed([record.id for record in fitting])}.")
    raise CannotRepair(f"No record on this machine has the id {text!r}. See kelpie undo --list.")


def subject_of(record: ChangeRecord) -> str:
    """As the repair itself calls it: both must not run at a time."""
    if isinstance(record.change, OffsetsChange):
        return f"group {record.subject}"
    return f"mappings {record.subject}" if isinstance(record.change, MappingsChange) else OFFSETS_TOPIC


def noted_states(records: Iterable[ChangeRecord]) -> dict[str, str]:
    """What the records themselves say of each: whether it is undone, or could never be."""
    known = list(records)
    undone = {record.undoes: record for record in known if record.undoes}
    return {record.id: _noted_state(record, undone.get(record.id)) for record in known}


def _noted_state(record: ChangeRecord, undone_by: ChangeRecord | None) -> str:
    if undone_by is not None:
        return f"undone by {undone_by.id}"
    return "cannot be undone" if isinstance(record.change, NoWayBack) else NOT_UNDONE


async def undo(nodes: Nodes, record: ChangeRecord) -> Repair:
    """What would take the change back. Raises CannotRepair, ClientError."""
    if record.cluster != (nodes.cluster_id or ""):
        raise CannotRepair(
            f"That was done in the cluster {record.cluster or 'without an id'} (at {record.bootstrap}), and "
            f"this one is {nodes.cluster_id or 'without an id'}."
        )
    change = record.change
    if isinstance(change, OffsetsChange):
        return await _undo_offsets(nodes, record, change)
    if isinstance(change, ReplicasChange):
        return await _undo_replicas(nodes, record, change)
    if isinstance(change, MappingsChange):
        return await undo_mappings(nodes, record, change)
    assert isinstance(change, NoWayBack)
    raise CannotRepair(f"Nothing undoes it. {change.why}")


async def _undo_offsets(nodes: Nodes, record: ChangeRecord, change: OffsetsChange) -> Repair:
    group = record.subject
    coordinators = Coordinators(nodes, await survey_cluster(nodes, {name.topic for name in change.after}))
    state, committed = await group_at_coordinator(coordinators, group)
    now = {name: StoredOffset.of(claim) for name, claim in committed.items()}
    due = [name for name in sorted(change.after) if _same(now.get(name), change.after[name])]
    due = [name for name in due if not _same(change.before.get(name), change.after[name])]
    if not due and all(_same(now.get(name), change.before.get(name)) for name in change.after):
        seen = (f"Group {group} is as it was before {record.command}, at {moment(record.at)}.",)
        return Repair(Plan("undo", "There is nothing to undo.", seen=seen))
    back = {name: change.before.get(name) for name in due}
    gone = [name for name, offset in back.items() if offset is None]
    whole = bool(gone) and set(now) <= set(gone)
    obstacles = [*_changed(record, change, now), *members_obstacle(state)]
    if whole and not await coordinators.can_delete(group):
        obstacles.append(EXPIRES)
    warnings: list[str] = []
    if gone and not whole and not await coordinators.can_delete_offsets(group):
        names = first_of([str(name) for name in gone], _MOST_NAMED)
        stay = f"{names} had no offset before. {_NO_OFFSET_DELETE}"
        (obstacles if len(gone) == len(back) else warnings).append(stay)
        back = {name: offset for name, offset in back.items() if offset is not None}
        due, gone = list(back), []
    title = _title(record, len(back) - len(gone), len(gone), whole=whole)
    inverse = OffsetsChange({name: now.get(name) for name in due}, back)
    noted = record_of(nodes, "undo", group, title, inverse, undoes=record.id)
    steps, actions = _offset_steps(coordinators, noted, inverse, gone, whole=whole)
    plan = Plan(
        "undo",
        title,
        steps,
        seen=(f"{record.what} That was {moment(record.at)}, by kelpie {record.command}.",),
        tables=(_offsets_table(change, now),),
        warnings=tuple(warnings),
        obstacles=tuple(obstacles),
        details={
            "id": record.id,
            "group": group,
            "offsets": [
                {"topic": name.topic, "partition": name.partition, "offset": offset and offset.offset}
                for name, offset in back.items()
            ],
        },
    )
    return Repair(plan, actions)


def _title(record: ChangeRecord, puts_back: int, deletes: int, *, whole: bool) -> str:
    group = record.subject
    if whole:
        return f"Delete group {group}, which kelpie {record.command} has made."
    parts = [f"put {counted(puts_back, 'offset')} back"] if puts_back else []
    if deletes:
        parts.append(
            f"delete {counted(deletes, 'offset')} that {'was' if deletes == 1 else 'were'} not there"
        )
    return f"Undo kelpie {record.command} of group {group}: {listed(parts)}."


def _same(one: StoredOffset | None, other: StoredOffset | None) -> bool:
    """By the offset: releases differ in what else of a commit they give back."""
    return (one and one.offset) == (other and other.offset) and (one is None) == (other is None)


def _changed(record: ChangeRecord, change: OffsetsChange, now: Offsets) -> list[str]:
    """What is neither as the repair left it nor as it was before."""
    moved = [
        f"{name} is at {_words(now.get(name))}, and {record.command} left it at {_words(after)}"
        for name, after in sorted(change.after.items())
        if not _same(now.get(name), after) and not _same(now.get(name), change.before.get(name))
    ]
    if change.makes_group:
        moved += [
            f"{name} is at {_words(offset)}, and {record.command} left it without an offset"
            for name, offset in sorted(now.items())
            if name not in change.after
        ]
    if not moved:
        return []
    return [
        f"Group {record.subject} is not as {record.command} left it: {first_of(moved, _MOST_NAMED)}. "
        "Something uses it, and would lose its place."
    ]


def _words(offset: StoredOffset | None) -> str:
    return "no offset" if offset is None else str(offset.offset)


def _offset_steps(
    coordinators: Coordinators,
    noted: ChangeRecord,
    inverse: OffsetsChange,
    gone: Sequence[TopicPartition],
    *,
    whole: bool,
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    group, undo_again = noted.subject, noted.way_back
    claims = [offset.claim(name) for name, offset in inverse.after.items() if offset is not None]
    planned = inverse.planned
    steps: list[Step] = [noted.step]
    actions: list[Action] = [noted.note]
    if claims:
        steps.append(
            Step(
                f"Commit {counted(len(claims), 'offset')} for group {group}",
                "They are as before.",
                undo_again,
            )
        )
        actions.append(partial(coordinators.commit, group, claims, planned))
    if whole:
        changes = f"The group is gone, and {counted(len(gone), 'offset')} with it."
        steps.append(Step(f"Delete group {group} at its coordinator", changes, undo_again))
        actions.append(partial(coordinators.delete, group, planned))
    elif gone:
        does = f"Delete {counted(len(gone), 'offset')} of group {group}"
        steps.append(Step(does, "Nothing is committed there, as before.", undo_again))
        left = {name: planned[name] for name in gone}
        actions.append(partial(coordinators.delete_offsets, group, left))
    if claims:
        steps.append(COMPARE)
        actions.append(partial(coordinators.compare, group, claims))
    return tuple(steps), tuple(actions)


def _offsets_table(change: OffsetsChange, now: Offsets) -> PlanTable:
    rows = [
        (
            name.topic,
            str(name.partition),
            _cell(change.before.get(name)),
            _cell(change.after[name]),
            _cell(now.get(name)),
        )
        for name in sorted(change.after)
    ]
    return PlanTable("Offsets", ("TOPIC", "PARTITION", "BEFORE", "AFTER", "NOW"), tuple(rows))


def _cell(offset: StoredOffset | None) -> str:
    return "-" if offset is None else str(offset.offset)


async def _undo_replicas(nodes: Nodes, record: ChangeRecord, change: ReplicasChange) -> Repair:
    if await can_reassign(nodes):
        cluster = await survey_cluster(nodes)
        changed = []
        for number, after in sorted(change.after.items()):
            view = cluster.view(TopicPartition(OFFSETS_TOPIC, number))
            replicas = view.replicas if view is not None else ()
            if sorted(replicas) not in (sorted(after), sorted(change.before[number])):
                changed.append(
                    f"{OFFSETS_TOPIC}-{number} is on {listed(replicas)}, and was left on {listed(after)}"
                )
        if changed:
            cancel = commands.kelpie("reassign-offsets-topic", cluster, "--cancel")
            raise CannotRepair(
                f"The replicas are not as {record.command} left them: {first_of(changed, _MOST_NAMED)}. If "
                f"they still move, cancel that: {cancel}"
            )
    options = ReassignmentOptions(goals=change.before, undoes=record.id)
    return await reassign(nodes, options, change.zookeeper or None)
