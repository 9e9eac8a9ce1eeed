"""Commits of a repair: what is there is noted, the new offsets are committed, and fetched back.

What `reset` and `migrate_offsets` share: steps and actions, the way back, the table and the data of a plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kelpie.cluster import commands
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState
from kelpie.repair.applying import Action
from kelpie.repair.change_records import OffsetsChange, StoredOffset, record_of
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.coordinators import CoordinatorRefused, Coordinators
from kelpie.repair.group_move import COMPARE, offset_data
from kelpie.repair.offset_sources import home_of
from kelpie.repair.plan import CannotRepair, PlanTable, SkippedPartition, Step
from kelpie.repair.reset_targets import NewOffset


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


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """Offsets that a repair commits for a group, and what the group has now."""

    command: str
    group: str
    changing: Sequence[NewOffset]
    committed: Mapping[TopicPartition, Claim]
    """All that the group has committed now."""
    is_new: bool
    """There is no such group yet."""

    @property
    def change(self) -> OffsetsChange:
        names = [offset.partition for offset in self.changing]
        before = {
            name: StoredOffset.of(self.committed[name]) if name in self.committed else None for name in names
        }
        after = {offset.partition: StoredOffset.of(claim_of(offset)) for offset in self.changing}
        return OffsetsChange(before, after, self.is_new and not self.committed)


def commit_steps(
    coordinators: Coordinators, commit: GroupCommit, title: str
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    """Notes what is there, commits, fetches back and compares: steps, and what does each."""
    group = commit.group
    record = record_of(coordinators.nodes, commit.command, group, title, commit.change)
    claims = [claim_of(offset) for offset in commit.changing]
    broker = coordinators.cluster.coordinator_of(group)
    where = f", broker {broker}" if broker is not None else ""
    steps = (
        record.step,
        Step(
            f"Commit {counted(len(claims), 'offset')} for group {group} at its coordinator{where}",
            "Its consumers go on there when they start.",
            record.way_back,
        ),
        COMPARE,
    )
    committing = partial(coordinators.commit, group, claims, commit.change.planned)
    return steps, (record.note, committing, partial(coordinators.compare, group, claims))


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
