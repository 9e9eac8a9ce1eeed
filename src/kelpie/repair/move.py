"""The plan of a move, made of all that was found out: words and data, no questions.

`rehome` asks, and does what this plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, listed, moment
from kelpie.observations import GroupState
from kelpie.repair import commands
from kelpie.repair.log_ends import Ends
from kelpie.repair.names import Health, health, living_in_sync
from kelpie.repair.occupancy import Tenant, Use
from kelpie.repair.offsets import Claim, Standing, Sure
from kelpie.repair.plan import NOTHING_CHANGES, Plan, Step, Table, Way

EXPIRES = (
    "Nothing deletes a group on this release of Kafka (1.1 and later can). Unused, its offsets expire after "
    "offsets.retention.minutes, and do no harm until then."
)


@dataclass(frozen=True)
class Move:
    """What is known when it is planned."""

    cluster: ClusterView
    group: str
    home: TopicPartition
    """Where the group lives now."""
    state: GroupState | None
    """What its coordinator says, where it answers."""
    name: str
    """Where it shall go."""
    partition: TopicPartition
    coordinator: int
    tenant: Tenant
    offsets: tuple[Standing, ...]
    """Those that go with it."""
    told: tuple[str, ...]
    """What came of each place that was asked for them."""
    left: tuple[Standing, ...] = ()
    """Those whose partitions are gone, or that were removed."""
    ends: Mapping[TopicPartition, Ends] | None = None
    deletable: bool = True
    """Whether this cluster can delete groups."""

    @property
    def claims(self) -> list[Claim]:
        return [it.claim for it in self.offsets]

    @property
    def use(self) -> Use:
        return self.tenant.use({it.partition: it.offset for it in self.offsets})


def plan_move(move: Move) -> Plan:
    return Plan(
        "rehome",
        f"Move group {move.group} to the name {move.name}, with "
        f"{counted(len(move.offsets), 'committed offset')}.",
        () if move.use is Use.DONE else _steps(move),
        seen=tuple(_seen(move)),
        tables=(_table(move),),
        warnings=tuple(_warnings(move)),
        obstacles=tuple(_obstacles(move)),
        afterwards=_afterwards(move),
        details=_details(move),
    )


def _steps(move: Move) -> tuple[Step, ...]:
    undo = Way(EXPIRES)
    if move.deletable:
        line = commands.kelpie("rehome", move.cluster, move.group, "--as", move.name, "--undo", "--apply")
        undo = Way("Delete the new group, as long as nothing uses it:", (line,))
    return (
        Step(
            f"Commit {counted(len(move.offsets), 'offset')} for group {move.name} at its coordinator, broker "
            f"{move.coordinator}",
            f"Group {move.name} comes into being, without members. Group {move.group} stays as it is.",
            undo,
        ),
        Step("Fetch them back, and compare", "Nothing.", NOTHING_CHANGES),
    )


def _seen(move: Move) -> list[str]:
    cluster = move.cluster
    view = cluster.view(move.partition)
    in_sync = living_in_sync(cluster, view) if view is not None else []
    seen = [
        f"Group {move.group} lives on {move.home}, {_condition(cluster, move.home)}.",
        f"{move.name} lives on {move.partition}, led by {cluster.broker_name(move.coordinator)}, in sync on "
        f"{listed(in_sync)}.",
        *(f"Offsets from {told}." for told in move.told),
    ]
    if move.use is Use.DONE:
        seen.append(f"All {len(move.offsets)} offsets are there already, just as they would be carried over.")
    if move.use is Use.BEGUN:
        there = len(move.tenant.offsets)
        seen.append(f"{there} of {len(move.offsets)} offsets are there already, from a run that broke.")
    return seen


def _condition(cluster: ClusterView, partition: TopicPartition) -> str:
    view = cluster.view(partition)
    how = health(cluster, partition.partition)
    if view is None or (how is Health.SICK and view.leader < 0):
        return "which has no leader"
    if how is Health.SICK:
        return f"whose leader, broker {view.leader}, is dead"
    return f"which is led by {cluster.broker_name(view.leader)} and well: it need not move"


def _table(move: Move) -> Table:
    return standings_table("Offsets to carry over (times in UTC)", move.offsets)


def standings_table(title: str, standings: Sequence[Standing]) -> Table:
    """Offsets, each with a letter for where it is from and how sure that is."""
    letters: dict[str, str] = {}
    rows = []
    for it in standings:
        note = f"{it.claim.source.rpartition('@')[0] or it.claim.source} ({it.sure.word}: {it.why})"
        letter = letters.setdefault(note, _letter(len(letters)))
        at = "-" if it.claim.at is None else moment(it.claim.at).removesuffix(" UTC")
        rows.append((it.partition.topic, str(it.partition.partition), str(it.offset), at, letter))
    columns = ("TOPIC", "PARTITION", "OFFSET", "SEEN", "FROM")
    return Table(title, columns, tuple(rows), tuple(f"{letter}: {note}" for note, letter in letters.items()))


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number}"


def _warnings(move: Move) -> list[str]:
    found = []
    dated = sum(it.sure is Sure.DATED for it in move.offsets)
    if dated:
        found.append(
            f"{counted(dated, 'offset')} may be older than the last commit: what was done since then is done "
            "again."
        )
    for it in move.offsets:
        misfit = misfit_of(it.claim, (move.ends or {}).get(it.partition))
        if misfit:
            found.append(misfit)
    return found + [
        f"The offset of {it.partition} was removed (deleted or expired): it has none to carry over."
        if it.claim.removed
        else f"{it.partition} is gone from the cluster: its offset {it.offset} is left behind."
        for it in move.left
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


def _obstacles(move: Move) -> list[str]:
    found = list(members_obstacle(move.state))
    tenant = move.tenant
    if move.use is Use.TAKEN:
        found.append(
            f"{move.name} is the name of another group: it has {counted(len(tenant.offsets), 'offset')} and "
            f"{counted(len(tenant.state.members), 'member')}. Choose another with --as."
        )
    if move.use is Use.PERHAPS_DONE:
        found.append(
            f"{move.name} has offsets for the same partitions, none behind those of {move.group}. If that is "
            "this group, moved before, all is done. If it is another one, choose a name with --as."
        )
    return found


def members_obstacle(state: GroupState | None) -> Sequence[str]:
    """A group with members cannot be committed for by others; and they would go on committing."""
    if state is None or not state.members:
        return ()
    who = [f"{it.client_id or it.member_id} on {it.host.lstrip('/') or '?'}" for it in state.members[:5]]
    more = f" and {len(state.members) - len(who)} more" if len(state.members) > len(who) else ""
    return (
        f"Group {state.group} is {state.state}, with {counted(len(state.members), 'active member')}: "
        f"{listed(who)}{more}. Stop them first.",
    )


def _afterwards(move: Move) -> tuple[Way, ...]:
    return (
        Way(f"Stop every consumer of {move.group}: whoever still runs reads on, and its work is done twice."),
        Way("Change the name in the application's configuration, and start it:", (f"group.id={move.name}",)),
        Way(f"Where there are ACLs, the application needs READ on group {move.name}."),
    )


def _details(move: Move) -> dict[str, object]:
    return {
        "group": move.group,
        "partition": move.home.partition,
        "new_name": move.name,
        "new_partition": move.partition.partition,
        "coordinator": move.coordinator,
        "done": move.use is Use.DONE,
        "offsets": [
            {
                **offset_data(it.claim),
                "at": it.claim.at,
                "source": it.claim.source,
                "sure": it.sure.word,
                "why": it.why,
            }
            for it in move.offsets
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
