"""Setting the committed offsets of a group without members, as kafka-consumer-groups --reset-offsets does.

What was committed before is noted, so that `kelpie undo` can put it back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kelpie.client.admin.groups import ABSENT
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState, Observations
from kelpie.repair.applications import refuse_share_group, reset_warnings, use_of
from kelpie.repair.applying import Repair
from kelpie.repair.claims import Claim, SettledOffset, settle
from kelpie.repair.committing import (
    GroupCommit,
    commit_steps,
    group_at_coordinator,
    offset_details,
    offsets_table,
)
from kelpie.repair.coordinators import Coordinators
from kelpie.repair.group_move import members_obstacle, settled_table
from kelpie.repair.log_ends import ends_of, offsets_at
from kelpie.repair.offset_sources import PAST_COMMITS, gather
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import (
    CannotRepair,
    Plan,
    SkippedPartition,
)
from kelpie.repair.reset_targets import (
    NewOffset,
    ResetTarget,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToTime,
    new_offset,
    scope,
)


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
    state, committed = await group_at_coordinator(coordinators, group)
    refuse_share_group(coordinators.cluster, state, "reset")
    application = await use_of(nodes, group, state, wall_clock())
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
    title = f"Reset {counted(len(changing), 'offset')} of group {group} {target.words}."
    is_new = state.state == ABSENT
    commit = GroupCommit("reset", group, changing, committed, is_new)
    steps, actions = commit_steps(coordinators, commit, title) if changing else ((), ())
    tables = [offsets_table(offsets)]
    if known is not None:
        wanted = {offset.partition for offset in offsets}
        commits = [commit for commit in known.commits if commit.partition in wanted]
        tables.append(settled_table("Where they were last seen (times in UTC)", commits))
    plan = Plan(
        "reset",
        title if changing else f"Nothing to reset: group {group} is there already.",
        steps,
        seen=(*_seen(coordinators, group, state, offsets), *(known.reports if known is not None else ())),
        tables=tuple(tables),
        warnings=(
            *reset_warnings(group, application),
            *(f"{partition.partition} stays as it is: {partition.reason}." for partition in skipped),
        ),
        obstacles=tuple(members_obstacle(state)),
        details=offset_details(group, offsets, skipped),
        moving=("offset",) if isinstance(target, ToLatest | ToEarliest) else (),
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


def planned(plan: Plan) -> dict[TopicPartition, int]:
    """The offsets that a reset would leave, by partition: what --export writes."""
    rows = cast("list[dict[str, Any]]", plan.details["offsets"])
    return {TopicPartition(row["topic"], row["partition"]): row["offset"] for row in rows}
