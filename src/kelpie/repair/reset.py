"""Setting the committed offsets of a group without members, as kafka-consumer-groups --reset-offsets does.

The offsets that were committed before are saved in a file, from which they can be put back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from kelpie.client.admin.groups import ABSENT
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView, commands
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState, Observations
from kelpie.questions.question import by_topic
from kelpie.repair import offsets_file
from kelpie.repair.applying import Action, Repair
from kelpie.repair.claims import Claim, ClaimKind, SettledOffset, settle
from kelpie.repair.coordinators import CoordinatorRefused, Coordinators
from kelpie.repair.group_move import COMPARE, members_obstacle, offset_data, settled_table
from kelpie.repair.log_ends import ends_of, offsets_at
from kelpie.repair.offset_sources import PAST_COMMITS, gather, home_of
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import (
    NOTHING_CHANGES,
    CannotRepair,
    ManualStep,
    Plan,
    PlanTable,
    SkippedPartition,
    Step,
)
from kelpie.repair.reset_targets import NewOffset, ResetTarget, ToGiven, ToTime, new_offset, scope
from kelpie.repair.undo_files import undo_file, write_whole


@dataclass(frozen=True, slots=True)
class LastKnown:
    """The last commits that are known of a group, and a report on each source that was asked."""

    commits: tuple[SettledOffset, ...]
    reports: tuple[str, ...]

    @property
    def target(self) -> ToGiven:
        claims = {commit.partition: commit.claim for commit in self.commits}
        return ToGiven(claims, "to the last known commit")


async def last_known(
    nodes: Nodes, group: str, *, earlier: Observations | None = None, evidence: Observations | None = None
) -> LastKnown:
    """The newest commits of a group in any source, also those that were removed since."""
    coordinators = Coordinators(nodes, await survey_cluster(nodes))
    gathered = await gather(nodes, coordinators, group, PAST_COMMITS, earlier=earlier, evidence=evidence)
    commits = tuple(settle(gathered.claims, gathered.copies).values())
    if not commits:
        raise CannotRepair(
            f"No commit of group {group} is known. Asked: {'; '.join(gathered.reports)}. Folders with the "
            "disks of brokers may help: --to-last-known DIR …"
        )
    return LastKnown(commits, tuple(f"Commits from {report}." for report in gathered.reports))


async def reset(
    nodes: Nodes,
    group: str,
    target: ResetTarget,
    topics: Sequence[str] = (),
    known: LastKnown | None = None,
) -> Repair:
    """What would reset the group. `known`: where the target is from. Raises CannotRepair, ClientError."""
    named = {text.partition(":")[0] for text in topics}
    if isinstance(target, ToGiven):
        named |= {partition.topic for partition in target.claims}
    coordinators = Coordinators(nodes, await survey_cluster(nodes, named))
    state, committed = await _ask(coordinators, group)
    unseen = {partition.topic for partition in committed} - set(coordinators.cluster.topics)
    if unseen:
        await coordinators.survey_again(named | unseen)
    offsets, skipped = await _offsets(nodes, coordinators.cluster, target, committed, topics)
    if not offsets:
        why = "; ".join(map(str, skipped[:5]))
        raise CannotRepair(
            f"There is nothing to reset for group {group}: "
            + (why or "it has committed nothing. Name topics with --topic.")
        )
    changing = [offset for offset in offsets if offset.changes]
    steps, actions = _steps(coordinators, group, changing) if changing else ((), ())
    tables = [_table(offsets)]
    if known is not None:
        wanted = {offset.partition for offset in offsets}
        commits = [commit for commit in known.commits if commit.partition in wanted]
        tables.append(settled_table("Where they were last seen (times in UTC)", commits))
    plan = Plan(
        "reset",
        f"Reset {counted(len(changing), 'offset')} of group {group} {target.words}."
        if changing
        else f"Nothing to reset: group {group} is there already.",
        steps,
        seen=(*_seen(coordinators, group, state, offsets), *(known.reports if known is not None else ())),
        tables=tuple(tables),
        warnings=tuple(f"{partition.partition} stays as it is: {partition.reason}." for partition in skipped),
        obstacles=tuple(members_obstacle(state)),
        details=_details(group, offsets, skipped),
    )
    return Repair(plan, actions)


async def _offsets(
    nodes: Nodes,
    cluster: ClusterView,
    target: ResetTarget,
    committed: Mapping[TopicPartition, Claim],
    topics: Sequence[str],
) -> tuple[list[NewOffset], list[SkippedPartition]]:
    partitions = scope(target, committed, cluster, topics)
    ends = await ends_of(nodes, cluster, partitions)
    at_time = {}
    if isinstance(target, ToTime):
        at_time = await offsets_at(nodes, cluster, dict.fromkeys(partitions, target.at))
    offsets, skipped = [], []
    for partition in partitions:
        if cluster.view(partition) is None:
            skipped.append(SkippedPartition(partition, "it is gone from the cluster"))
            continue
        before = committed[partition].offset if partition in committed else None
        new = new_offset(target, partition, before, ends[partition], at_time.get(partition))
        if isinstance(new, NewOffset):
            offsets.append(new)
        else:
            skipped.append(new)
    return offsets, skipped


async def _ask(coordinators: Coordinators, group: str) -> tuple[GroupState, dict[TopicPartition, Claim]]:
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


def _steps(
    coordinators: Coordinators, group: str, changing: Sequence[NewOffset]
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    before = {offset.partition: offset.before for offset in changing if offset.before is not None}
    file = undo_file(group, wall_clock(), ".csv")
    claims = [_claim(offset) for offset in changing]

    async def save() -> str:
        write_whole(file, offsets_file.write(before))
        return f"{counted(len(before), 'offset')} saved to {file}."

    commit = partial(coordinators.commit, group, claims)
    compare = partial(coordinators.compare, group, claims)
    steps = (
        Step(
            f"Commit {counted(len(claims), 'offset')} for group {group} at its coordinator, broker "
            f"{coordinators.cluster.coordinator_of(group)}",
            "Its consumers go on there when they start.",
            _undo(coordinators.cluster, group, file, changing),
        ),
        COMPARE,
    )
    if not before:
        return steps, (commit, compare)
    saving = Step(f"Save what is committed now to {file}", "A file on this machine.", NOTHING_CHANGES)
    return (saving, *steps), (save, commit, compare)


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


def _claim(offset: NewOffset) -> Claim:
    """As it is committed: with metadata and epoch if that very offset was committed before."""
    return offset.claim or Claim(offset.partition, offset.offset, "", kind=ClaimKind.GIVEN)


def _seen(
    coordinators: Coordinators, group: str, state: GroupState, offsets: Sequence[NewOffset]
) -> tuple[str, ...]:
    condition = "is not there yet" if state.state == ABSENT else f"is {state.state}"
    broker = coordinators.cluster.broker_name(state.coordinator)
    seen = [f"Group {group} {condition}; {broker} coordinates it."]
    same = sum(not offset.changes for offset in offsets)
    if same:
        seen.append(f"{counted(same, 'partition')} {'is' if same == 1 else 'are'} there already.")
    return tuple(seen)


def _table(offsets: Sequence[NewOffset]) -> PlanTable:
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


def planned(plan: Plan) -> dict[TopicPartition, int]:
    """The offsets that a reset would leave, by partition: what --export writes."""
    rows = cast("list[dict[str, Any]]", plan.details["offsets"])
    return {TopicPartition(row["topic"], row["partition"]): row["offset"] for row in rows}


def _details(
    group: str, offsets: Sequence[NewOffset], skipped: Sequence[SkippedPartition]
) -> dict[str, object]:
    return {
        "group": group,
        "offsets": [
            {**offset_data(_claim(offset)), "before": offset.before, "note": offset.note}
            for offset in offsets
        ],
        "missed": [
            {"topic": skip.partition.topic, "partition": skip.partition.partition, "reason": skip.reason}
            for skip in skipped
        ],
    }
