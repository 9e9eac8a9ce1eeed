"""The plan of a move of a group to another name: words and data, no questions.

`rehome` asks brokers, and does what this plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from kelpie.cluster import ClusterView
from kelpie.cluster.health import Health, health_of, living_in_sync
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed, moment
from kelpie.observations import GroupState
from kelpie.observations.groups import OTHER_KINDS
from kelpie.repair.applications import UNKNOWN_USE, GroupUse, move_warnings
from kelpie.repair.change_records import ChangeRecord
from kelpie.repair.claims import Certainty, Claim, SettledOffset
from kelpie.repair.group_names import Occupant, Use
from kelpie.repair.log_ends import Ends
from kelpie.repair.plan import NOTHING_CHANGES, ManualStep, Plan, PlanTable, Step

EXPIRES = (
    "Nothing deletes a group on this release of Kafka (1.1 and later can). Unused, its offsets expire after "
    "offsets.retention.minutes, and do no harm until then."
)
_WITHOUT_MEMBERS = ("Empty", "Dead", "")
COMPARE = Step("Fetch them back, and compare", "Nothing.", NOTHING_CHANGES)


@dataclass(frozen=True, slots=True)
class Origin:
    """The group that moves, and where it lives now."""

    group: str
    home: TopicPartition
    state: GroupState | None
    """From its coordinator, if that answers."""
    application: GroupUse = UNKNOWN_USE


@dataclass(frozen=True, slots=True)
class Goal:
    """The name that the group gets, and where that lives."""

    name: str
    home: TopicPartition
    coordinator: int
    occupant: Occupant
    deletable: bool = True
    """Whether this cluster can delete groups."""


@dataclass(frozen=True, slots=True)
class MovedOffsets:
    """The committed offsets that go with the group, and those that stay behind."""

    carried: tuple[SettledOffset, ...]
    left: tuple[SettledOffset, ...]
    """Their partitions are gone, or they were removed."""
    reports: tuple[str, ...]
    """What each source of offsets gave."""
    ends: Mapping[TopicPartition, Ends]
    """Where the logs of the carried partitions begin and end."""

    @property
    def claims(self) -> list[Claim]:
        return [offset.claim for offset in self.carried]


@dataclass(frozen=True, slots=True)
class GroupMove:
    """What is known when a move is planned."""

    cluster: ClusterView
    origin: Origin
    goal: Goal
    offsets: MovedOffsets

    @property
    def title(self) -> str:
        count = counted(len(self.offsets.carried), "committed offset")
        return f"Move group {self.origin.group} to the name {self.goal.name}, with {count}."

    @property
    def use(self) -> Use:
        wanted = {offset.partition: offset.offset for offset in self.offsets.carried}
        return self.goal.occupant.use(wanted)


def plan_move(move: GroupMove, record: ChangeRecord) -> Plan:
    """`record`: what will say what was done."""
    carried = move.offsets.carried
    return Plan(
        "rehome",
        move.title,
        () if move.use is Use.DONE else _steps(move, record),
        seen=tuple(_seen(move)),
        tables=(settled_table("Offsets to carry over (times in UTC)", carried),),
        warnings=(
            *move_warnings(move.origin.group, move.goal.name, move.origin.application),
            *_warnings(move.offsets),
        ),
        obstacles=tuple(_obstacles(move)),
        afterwards=_afterwards(move),
        details=_details(move),
    )


def _steps(move: GroupMove, record: ChangeRecord) -> tuple[Step, ...]:
    group, goal = move.origin.group, move.goal
    undo = record.way_back if goal.deletable else ManualStep(EXPIRES)
    return (
        record.step,
        Step(
            f"Commit {counted(len(move.offsets.carried), 'offset')} for group {goal.name} at its "
            f"coordinator, broker {goal.coordinator}",
            f"Group {goal.name} comes into being, without members. Group {group} stays as it is.",
            undo,
        ),
        COMPARE,
    )


def _seen(move: GroupMove) -> list[str]:
    cluster, origin, goal = move.cluster, move.origin, move.goal
    view = cluster.view(goal.home)
    in_sync = living_in_sync(cluster, view) if view is not None else []
    seen = [
        f"Group {origin.group} lives on {origin.home}, {_condition(cluster, origin.home)}.",
        f"{goal.name} lives on {goal.home}, led by {cluster.broker_name(goal.coordinator)}, in sync on "
        f"{listed(in_sync)}.",
        *(f"Offsets from {report}." for report in move.offsets.reports),
    ]
    count = len(move.offsets.carried)
    if move.use is Use.DONE:
        seen.append(f"All {count} offsets are there already, just as they would be carried over.")
    if move.use is Use.BEGUN:
        seen.append(
            f"{len(goal.occupant.offsets)} of {count} offsets are there already, from a run that broke."
        )
    return seen


def _condition(cluster: ClusterView, partition: TopicPartition) -> str:
    view, health = cluster.view(partition), health_of(cluster, partition)
    if view is None or health is Health.NO_LEADER:
        return "which has no leader"
    if not health.is_led:
        return f"whose leader, broker {view.leader}, is dead"
    return f"which is led by {cluster.broker_name(view.leader)} and well: it need not move"


def settled_table(title: str, settled: Sequence[SettledOffset]) -> PlanTable:
    """Offsets, each with a letter for where it is from and how sure that is."""
    letters: dict[str, str] = {}
    rows = []
    for offset in settled:
        claim = offset.claim
        note = f"{claim.source.rpartition('@')[0] or claim.source} ({offset.certainty.word}: {offset.why})"
        number = len(letters)
        letter = letters.setdefault(note, ascii_lowercase[number] if number < 26 else f"a{number}")
        at = "-" if claim.at is None else moment(claim.at).removesuffix(" UTC")
        rows.append((claim.partition.topic, str(claim.partition.partition), str(claim.offset), at, letter))
    columns = ("TOPIC", "PARTITION", "OFFSET", "SEEN", "FROM")
    return PlanTable(
        title, columns, tuple(rows), tuple(f"{letter}: {note}" for note, letter in letters.items())
    )


def _warnings(offsets: MovedOffsets) -> list[str]:
    warnings = []
    dated = sum(offset.certainty is Certainty.DATED for offset in offsets.carried)
    if dated:
        warnings.append(
            f"{counted(dated, 'offset')} may be older than the last commit: what was done since then is done "
            "again."
        )
    misfits = (misfit_of(claim, offsets.ends.get(claim.partition)) for claim in offsets.claims)
    warnings += [misfit for misfit in misfits if misfit]
    return warnings + [
        f"The offset of {offset.partition} was removed (deleted or expired): it has none to carry over."
        if offset.claim.removed
        else f"{offset.partition} is gone from the cluster: its offset {offset.offset} is left behind."
        for offset in offsets.left
    ]


def misfit_of(claim: Claim, ends: Ends | None) -> str:
    """What an application will meet where its offset does not fit the log; empty where it does."""
    decides = "The application's auto.offset.reset decides where it goes on."
    if ends is None or not ends.known:
        why = ends.failure if ends is not None else "nobody was asked"
        return f"Whether {claim.partition} still holds record {claim.offset} is not known: {why}."
    if claim.offset < ends.earliest:
        gone = counted(ends.earliest - claim.offset, "record")
        return (
            f"{claim.partition} begins at {ends.earliest}; {gone} from {claim.offset} on are gone. {decides}"
        )
    if claim.offset > ends.latest:
        return (
            f"{claim.partition} ends at {ends.latest}, before the committed {claim.offset}: records were "
            f"lost. {decides}"
        )
    return ""


def _obstacles(move: GroupMove) -> list[str]:
    obstacles = list(members_obstacle(move.origin.state))
    name, occupant = move.goal.name, move.goal.occupant
    if move.use is Use.TAKEN:
        obstacles.append(
            f"{name} is the name of another group: it has {counted(len(occupant.offsets), 'offset')} and "
            f"{counted(len(occupant.state.members), 'member')}. Choose another with --as."
        )
    if move.use is Use.PERHAPS_DONE:
        obstacles.append(
            f"{name} has offsets for the same partitions, none behind those of {move.origin.group}. If that "
            "is this group, moved before, all is done. If it is another one, choose a name with --as."
        )
    return obstacles


def members_obstacle(state: GroupState | None) -> Sequence[str]:
    """A group with members cannot be committed for by others; and they would go on committing."""
    if state is None:
        return ()
    if state.kind in OTHER_KINDS and state.state not in _WITHOUT_MEMBERS:
        return (
            f"Group {state.group}, a {state.kind} group, is {state.state}: it has members. Stop them first.",
        )
    if not state.members:
        return ()
    who = [
        f"{member.client_id or member.member_id} on {member.host.lstrip('/') or '?'}"
        for member in state.members[:5]
    ]
    more = f" and {len(state.members) - len(who)} more" if len(state.members) > len(who) else ""
    return (
        f"Group {state.group} is {state.state}, with {counted(len(state.members), 'active member')}: "
        f"{listed(who)}{more}. Stop them first.",
    )


def _afterwards(move: GroupMove) -> tuple[ManualStep, ...]:
    group, name = move.origin.group, move.goal.name
    return (
        ManualStep(
            f"Stop every consumer of {group}: whoever still runs reads on, and its work is done twice."
        ),
        ManualStep(
            "Change the name in the application's configuration, and start it:", (f"group.id={name}",)
        ),
        ManualStep(f"Where there are ACLs, the application needs READ on group {name}."),
    )


def _details(move: GroupMove) -> dict[str, object]:
    return {
        "group": move.origin.group,
        "partition": move.origin.home.partition,
        "new_name": move.goal.name,
        "new_partition": move.goal.home.partition,
        "coordinator": move.goal.coordinator,
        "done": move.use is Use.DONE,
        "offsets": [
            {
                **offset_data(offset.claim),
                "at": offset.claim.at,
                "source": offset.claim.source,
                "sure": offset.certainty.word,
                "why": offset.why,
            }
            for offset in move.offsets.carried
        ],
    }


def offset_data(claim: Claim) -> dict[str, object]:
    return {
        "topic": claim.partition.topic,
        "partition": claim.partition.partition,
        "offset": claim.offset,
        "leader_epoch": claim.leader_epoch,
        "metadata": claim.metadata,
    }
