"""Setting the committed offsets of a group that nobody uses, as kafka-consumer-groups --reset-offsets does.

What is committed before is saved in a file, from which it can be put back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import GroupState, Observations
from kelpie.repair import commands, offsets_file
from kelpie.repair.applying import Action, Repair
from kelpie.repair.coordinators import ABSENT, Coordinators, Refused
from kelpie.repair.group_move import members_obstacle, offset_data, standings_table
from kelpie.repair.keeping import keep, undo_file
from kelpie.repair.log_ends import ends_of, offsets_at
from kelpie.repair.offsets import Claim, Kind, Standing, settle
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, Plan, Step, Table, Way
from kelpie.repair.rehome import verified
from kelpie.repair.sources import gather_past, home_of
from kelpie.repair.targets import Aim, Missed, Target, ToGiven, ToTime, scope, target_of


@dataclass(frozen=True, slots=True)
class Known:
    """The last commits that are known of a group, and what came of each place that was asked."""

    standings: tuple[Standing, ...]
    told: tuple[str, ...]

    @property
    def aim(self) -> ToGiven:
        return ToGiven({it.partition: it.claim for it in self.standings}, "to the last known commit")


async def last_known(
    nodes: Nodes, group: str, *, earlier: Observations | None = None, evidence: Observations | None = None
) -> Known:
    """The newest commits of a group that anybody has, also those that were removed since."""
    coordinators = Coordinators(nodes, await survey_cluster(nodes))
    gathered = await gather_past(nodes, coordinators, group, earlier=earlier, evidence=evidence)
    standings = tuple(settle(gathered.claims, gathered.copies).values())
    told = tuple(f"Commits from {it}." for it in gathered.reports)
    if not standings:
        raise CannotRepair(
            f"No commit of group {group} is known. Asked: {'; '.join(gathered.reports)}. Folders with the "
            "disks of brokers may help: --to-last-known DIR …"
        )
    return Known(standings, told)


async def reset(
    nodes: Nodes, group: str, aim: Aim, topics: Sequence[str] = (), known: Known | None = None
) -> Repair:
    """What would reset the group. `known`: where the aim is from. Raises CannotRepair, ClientError."""
    named = {text.partition(":")[0] for text in topics}
    given = {it.topic for it in aim.claims} if isinstance(aim, ToGiven) else set()
    coordinators = Coordinators(nodes, await survey_cluster(nodes, named | given))
    state, committed = await _ask(coordinators, group)
    missing = {it.topic for it in committed} - set(coordinators.cluster.topics)
    if missing:
        await coordinators.survey_again(named | given | missing)
    cluster = coordinators.cluster
    partitions = scope(aim, committed, cluster, topics)
    ends = await ends_of(nodes, cluster, partitions)
    found = (
        await offsets_at(nodes, cluster, dict.fromkeys(partitions, aim.at)) if isinstance(aim, ToTime) else {}
    )
    made = [
        target_of(aim, it, committed[it].offset if it in committed else None, ends[it], found.get(it))
        if cluster.view(it) is not None
        else Missed(it, "it is gone from the cluster")
        for it in partitions
    ]
    targets = [it for it in made if isinstance(it, Target)]
    missed = [it for it in made if isinstance(it, Missed)]
    if not targets:
        why = "; ".join(f"{it.partition}: {it.reason}" for it in missed[:5])
        raise CannotRepair(
            f"There is nothing to reset for group {group}: "
            + (why or "it has committed nothing. Name topics with --topic.")
        )
    changing = [it for it in targets if it.changes]
    steps, actions = _steps(coordinators, group, changing) if changing else ((), ())
    plan = Plan(
        "reset",
        f"Reset {counted(len(changing), 'offset')} of group {group} {aim.words}."
        if changing
        else f"Nothing to reset: group {group} is there already.",
        steps,
        seen=(*_seen(coordinators, group, state, targets), *(known.told if known is not None else ())),
        tables=(_table(targets), *([_origin(known, targets)] if known is not None else [])),
        warnings=tuple(f"{it.partition} stays as it is: {it.reason}." for it in missed),
        obstacles=tuple(members_obstacle(state)),
        details=_details(group, targets, missed),
    )
    return Repair(plan, actions)


async def _ask(coordinators: Coordinators, group: str) -> tuple[GroupState, dict[TopicPartition, Claim]]:
    """The group as its coordinator has it. Raises CannotRepair, ClientError."""
    home = home_of(coordinators.cluster, group)
    if not coordinators.cluster.has_leader(home):
        line = commands.kelpie("rehome", coordinators.cluster, group)
        raise CannotRepair(
            f"Group {group} has no coordinator: {home} has no living leader, so nothing can be committed for "
            f"it. Move it to another name: {line}"
        )
    try:
        state = await coordinators.state(group)
        return state, await coordinators.committed(group, coordinators.cluster.views)
    except Refused as refused:
        raise CannotRepair(str(refused)) from None


def _steps(
    coordinators: Coordinators, group: str, changing: Sequence[Target]
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    before = {it.partition: it.before for it in changing if it.before is not None}
    file = undo_file(group, wall_clock(), ".csv")
    claims = [_claim(it) for it in changing]

    async def save() -> str:
        keep(file, offsets_file.write(before))
        return f"{counted(len(before), 'offset')} saved to {file}."

    async def commit() -> str:
        await coordinators.commit(group, claims)
        return f"{counted(len(claims), 'offset')} committed for group {group}."

    async def verify() -> str:
        return await verified(coordinators, group, claims)

    steps = (
        Step(
            f"Commit {counted(len(claims), 'offset')} for group {group} at its coordinator, broker "
            f"{coordinators.cluster.coordinator_of(group)}",
            "Its consumers go on there when they start.",
            _undo(coordinators, group, file, changing),
        ),
        Step("Fetch them back, and compare", "Nothing.", NOTHING_CHANGES),
    )
    if not before:
        return steps, (commit, verify)
    saving = Step(f"Save what is committed now to {file}", "A file on this machine.", NOTHING_CHANGES)
    return (saving, *steps), (save, commit, verify)


def _undo(coordinators: Coordinators, group: str, file: Path, changing: Sequence[Target]) -> Way:
    cluster = coordinators.cluster
    lines = []
    if any(it.before is not None for it in changing):
        lines.append(commands.kelpie("reset", cluster, group, "--from-file", str(file), "--apply"))
    new = [it.partition for it in changing if it.before is None]
    for topic in commands.topics_option(new):
        words = ["--delete-offsets", "--group", group, "--topic", topic]
        lines.append(commands.kafka("kafka-consumer-groups", cluster, *words))
    text = "Put the offsets back that were there" if len(new) < len(changing) else "Delete the new offsets"
    if new and len(new) < len(changing):
        text += ", and delete those that were not"
    return Way(f"{text}{' (Kafka 2.4 and later can)' if new else ''}:", tuple(lines))


def _claim(target: Target) -> Claim:
    """As it is committed: with metadata and epoch if that very offset was committed before."""
    if target.claim is not None:
        return target.claim
    return Claim(target.partition, target.offset, "", kind=Kind.GIVEN)


def _seen(
    coordinators: Coordinators, group: str, state: GroupState, targets: Sequence[Target]
) -> tuple[str, ...]:
    is_what = "is not there yet" if state.state == ABSENT else f"is {state.state}"
    seen = [f"Group {group} {is_what}; {coordinators.cluster.broker_name(state.coordinator)} coordinates it."]
    same = sum(not it.changes for it in targets)
    if same:
        seen.append(f"{counted(same, 'partition')} {'is' if same == 1 else 'are'} there already.")
    return tuple(seen)


def _origin(known: Known, targets: Sequence[Target]) -> Table:
    wanted = {it.partition for it in targets}
    standings = [it for it in known.standings if it.partition in wanted]
    return standings_table("Where they were last seen (times in UTC)", standings)


def _table(targets: Sequence[Target]) -> Table:
    rows = [
        (
            it.partition.topic,
            str(it.partition.partition),
            "-" if it.before is None else str(it.before),
            str(it.offset),
            "-" if it.before is None else f"{it.offset - it.before:+d}",
            it.note,
        )
        for it in targets
    ]
    return Table("Offsets", ("TOPIC", "PARTITION", "NOW", "NEW", "MOVES BY", "NOTE"), tuple(rows))


def planned(plan: Plan) -> dict[TopicPartition, int]:
    """The offsets that a reset would leave, by partition: what --export writes."""
    rows: list[dict[str, Any]] = plan.details["offsets"]  # type: ignore[assignment]
    return {TopicPartition(it["topic"], it["partition"]): it["offset"] for it in rows}


def _details(group: str, targets: Sequence[Target], missed: Sequence[Missed]) -> dict[str, object]:
    return {
        "group": group,
        "offsets": [{**offset_data(_claim(it)), "before": it.before, "note": it.note} for it in targets],
        "missed": [
            {"topic": it.partition.topic, "partition": it.partition.partition, "reason": it.reason}
            for it in missed
        ],
    }
