"""Commits of a repair: what is there is saved, the new offsets are committed, and fetched back.

What `reset` and `migrate_offsets` share: steps and actions, the way back, the table and the data of a plan.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kelpie.cluster import ClusterView, commands
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState
from kelpie.questions.question import by_topic
from kelpie.repair.applying import Action
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.coordinators import CoordinatorRefused, Coordinators
from kelpie.repair.group_move import COMPARE, offset_data
from kelpie.repair.offset_sources import home_of
from kelpie.repair.plan import CannotRepair, ManualStep, PlanTable, SkippedPartition, Step
from kelpie.repair.reset_targets import NewOffset
from kelpie.repair.saved_offsets import saving


async def group_at_coordinator(
    coordinators: Coordinators, group: str
) -> tuple[GroupState, dict[TopicPartition, Claim]]:
    """The group as its coordinator has it. Raises CannotRepair, ClientError."""
    home = home_of(coordinators.cluster, group)
    if not coordinators.cluster.has_leader(home):
        line = commands.kelpie("rehome", coordinators.cluster, name=group)
        raise CannotRepair(
            f"Group {group} has no coordinator: {home} has no living leader, so nothing can be committed for "
            f"it. Move it to another name: {line}"
        )
    try:
        state = await coordinators.state(group)
        return state, await coordinators.committed(group)
    except CoordinatorRefused as refused:
        raise CannotRepair(str(refused)) from None


def commit_steps(
    coordinators: Coordinators, group: str, changing: Sequence[NewOffset]
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    """Saves what would be overwritten, commits, fetches back and compares: steps, and what does each."""
    before = {offset.partition: offset.before for offset in changing if offset.before is not None}
    file, save_step, save = saving(group, before)
    claims = [claim_of(offset) for offset in changing]
    commit = partial(coordinators.commit, group, claims)
    compare = partial(coordinators.compare, group, claims)
    broker = coordinators.cluster.coordinator_of(group)
    where = f", broker {broker}" if broker is not None else ""
    steps = (
        Step(
            f"Commit {counted(len(claims), 'offset')} for group {group} at its coordinator{where}",
            "Its consumers go on there when they start.",
            _undo(coordinators.cluster, group, file, changing),
        ),
        COMPARE,
    )
    if not before:
        return steps, (commit, compare)
    return (save_step, *steps), (save, commit, compare)


def _undo(cluster: ClusterView, group: str, file: Path, changing: Sequence[NewOffset]) -> ManualStep:
    lines = []
    new = [offset.partition for offset in changing if offset.before is None]
    if len(new) < len(changing):
        lines.append(commands.kelpie("reset", cluster, "--from-file", str(file), "--apply", name=group))
    for topic, numbers in by_topic(sorted(new)).items():
        option = f"{topic}:{','.join(map(str, numbers))}"
        words = ["--delete-offsets", "--group", group, "--topic", option]
        lines.append(commands.kafka("kafka-consumer-groups", cluster, *words))
    text = "Put the offsets back that were there" if len(new) < len(changing) else "Delete the new offsets"
    if new and len(new) < len(changing):
        text += ", and delete those that were not"
    return ManualStep(f"{text}{' (Kafka 2.4 and later can)' if new else ''}:", tuple(lines))


def claim_of(offset: NewOffset) -> Claim:
    """As it is committed: with metadata and epoch if that very offset was committed before."""
    return offset.claim or Claim(offset.partition, offset.offset, "", kind=ClaimKind.GIVEN)


def offsets_table(offsets: Sequence[NewOffset]) -> PlanTable:
    rows = [
        (
            offset.partition.topic,
            str(offset.partition.partition),
            "-" if offset.before is None else str(offset.before),
            str(offset.offset),
            "-" if offset.before is None else f"{offset.offset - offset.before:+d}",
            offset.note,
        )
        for offset in offsets
    ]
    return PlanTable("Offsets", ("TOPIC", "PARTITION", "NOW", "NEW", "MOVES BY", "NOTE"), tuple(rows))


def offset_details(
    group: str, offsets: Sequence[NewOffset], skipped: Sequence[SkippedPartition]
) -> dict[str, object]:
    return {
        "group": group,
        "offsets": [
            {**offset_data(claim_of(offset)), "before": offset.before, "note": offset.note}
            for offset in offsets
        ],
        "missed": [
            {"topic": skip.partition.topic, "partition": skip.partition.partition, "reason": skip.reason}
            for skip in skipped
        ],
    }
