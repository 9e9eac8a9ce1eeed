"""Moving a group to a name that lives on a healthy partition of the offsets topic, with its offsets.

The old name keeps what it has, wherever that is: should its partition come back, its offsets are there, and
old by then. The application must be told the new name; until it uses it, nothing consumes.
"""

from collections.abc import Iterator, Mapping, Sequence

from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.observations import OFFSETS_TOPIC, GroupState, Observations
from kelpie.repair.applying import Broken, Repair
from kelpie.repair.coordinators import Coordinators, Refused
from kelpie.repair.log_ends import ends_of
from kelpie.repair.looking import look
from kelpie.repair.move import EXPIRES, Move, members_obstacle, offset_data, plan_move
from kelpie.repair.names import health, healthy_names, is_candidate
from kelpie.repair.occupancy import Tenant, Use
from kelpie.repair.offsets import Claim, Standing, settle
from kelpie.repair.plan import CannotRepair, Plan, Step, Table, Way
from kelpie.repair.sources import Sources, gather, home_of

_MOST_NAMES = 20
"""So many names that are taken are passed over before a person has to choose one."""


async def rehome(
    nodes: Nodes,
    group: str,
    sources: Sources,
    *,
    new_name: str | None = None,
    earlier: Observations | None = None,
    evidence: Observations | None = None,
) -> Repair:
    """What would move the group. `earlier`, `evidence`: see `sources`. Raises CannotRepair, ClientError."""
    coordinators = Coordinators(nodes, await look(nodes))
    home = home_of(coordinators, group)
    gathered = await gather(nodes, coordinators, group, sources, earlier=earlier, evidence=evidence)
    standings = settle(gathered.claims, gathered.copies, replicas=_replicas(coordinators.cluster, home))
    # The topics are looked at as well: which of them are left, and where their logs begin and end.
    coordinators.sight = await look(nodes, {it.topic for it in standings})
    cluster = coordinators.cluster
    moving = [
        it for it in standings.values() if not it.claim.removed and cluster.view(it.partition) is not None
    ]
    if not moving:
        raise CannotRepair(
            f"No committed offsets of group {group} were found that could be carried over. Asked: "
            f"{'; '.join(gathered.told)}. Give folders with the disks of brokers that hold a copy of {home}: "
            "--offsets-from DIR …"
        )
    name, tenant = await _goal(coordinators, group, new_name, moving)
    coordinator = coordinators.of(name)
    assert coordinator is not None
    move = Move(
        cluster,
        group,
        home,
        await _state(coordinators, group) if health(cluster, home.partition) else None,
        name,
        home_of(coordinators, name),
        coordinator,
        tenant,
        tuple(moving),
        tuple(gathered.told),
        tuple(it for it in standings.values() if it not in moving),
        await ends_of(nodes, cluster, [it.partition for it in moving]),
        await coordinators.can_delete(name),
    )
    plan = plan_move(move)
    if not plan.steps:
        return Repair(plan)

    async def commit() -> str:
        await coordinators.commit(name, move.claims)
        return f"{counted(len(moving), 'offset')} committed for group {name}."

    async def verify() -> str:
        return await verified(coordinators, name, move.claims)

    return Repair(plan, (commit, verify))


async def verified(coordinators: Coordinators, group: str, claims: Sequence[Claim]) -> str:
    """Fetches offsets back. Raises Broken where they are not what was committed."""
    try:
        there = await coordinators.committed(group, [it.partition for it in claims])
    except Refused as refused:
        raise Broken(str(refused)) from None
    for claim in claims:
        found = there.get(claim.partition)
        if found is None or found.offset != claim.offset:
            raise Broken(
                f"{claim.partition} of group {group} was committed at {claim.offset}, and its coordinator "
                f"says {'none' if found is None else found.offset}. Does somebody use this name already?"
            )
    return f"{counted(len(claims), 'offset')} of group {group} fetched back: all as committed."


async def undo_rehome(nodes: Nodes, group: str, new_name: str) -> Repair:
    """What would take the new name away again. Raises CannotRepair, ClientError."""
    coordinators = Coordinators(nodes, await look(nodes))
    cluster = coordinators.cluster
    partition = home_of(coordinators, new_name)
    if not health(cluster, partition.partition):
        raise CannotRepair(f"Group {new_name} cannot be deleted: {partition} has no living leader.")
    tenant = await _tenant(coordinators, new_name, cluster.views)
    title = f"Delete group {new_name}, to which {group} was moved."
    if not tenant.offsets and not tenant.listed:
        return Repair(Plan("rehome", title, seen=(f"There is no group {new_name}: nothing to undo.",)))
    offsets = sorted(tenant.offsets.values(), key=lambda it: it.partition)
    plan = Plan(
        "rehome",
        title,
        (
            Step(
                f"Delete group {new_name} at its coordinator, broker {coordinators.of(new_name)}",
                f"The group is gone, and {counted(len(offsets), 'offset')} with it.",
                Way(
                    "Move the group again, or commit the offsets of the table with kelpie reset --from-file."
                ),
            ),
        ),
        tables=(
            Table(
                f"Offsets of {new_name} that go with it",
                ("TOPIC", "PARTITION", "OFFSET"),
                tuple((it.partition.topic, str(it.partition.partition), str(it.offset)) for it in offsets),
            ),
        ),
        obstacles=(
            *members_obstacle(tenant.state),
            *(() if await coordinators.can_delete(new_name) else (EXPIRES,)),
        ),
        details={"group": group, "new_name": new_name, "offsets": [offset_data(it) for it in offsets]},
    )

    async def delete() -> str:
        await coordinators.delete(new_name)
        return f"Group {new_name} is deleted."

    return Repair(plan, (delete,))


async def _goal(
    coordinators: Coordinators, group: str, new_name: str | None, moving: Sequence[Standing]
) -> tuple[str, Tenant]:
    """The name to move to, and what lives there now. Raises CannotRepair."""
    wanted = {it.partition: it.offset for it in moving}
    if new_name is not None:
        if not new_name:
            raise CannotRepair("An empty name is no name for a group; choose another with --as.")
        if new_name == group:
            raise CannotRepair(f"{new_name} is the name that the group has now; choose another with --as.")
        partition = home_of(coordinators, new_name)
        if not health(coordinators.cluster, partition.partition):
            raise CannotRepair(
                f"{new_name} lives on {partition}, which has no living leader. Leave --as out, and a name on "
                "a healthy partition is found."
            )
        return new_name, await _tenant(coordinators, new_name, wanted)
    passed = []
    for name, best in _names(coordinators, group):
        tenant = await _tenant(coordinators, name, wanted)
        use = tenant.use(wanted)
        if use not in (Use.FREE, Use.TAKEN) or (use is Use.FREE and best):
            return name, tenant
        if not best:
            continue
        passed.append(name)
        if len(passed) == _MOST_NAMES:
            raise CannotRepair(f"{passed[0]} to {passed[-1]} are all taken. Choose a name with --as.")
    raise CannotRepair(
        f"No partition of {OFFSETS_TOPIC} has a living leader: there is nowhere to move to. Start a broker "
        "that holds replicas of it; kelpie doctor names them."
    )


def _names(coordinators: Coordinators, group: str) -> Iterator[tuple[str, bool]]:
    """Names to look at, and whether one of them is as good as any. First those that are there already: an
    earlier run may have moved the group to one when the cluster was in another state.
    """
    cluster = coordinators.cluster
    for name in sorted(name for name in coordinators.sight.listed if is_candidate(name, group)):
        if health(cluster, home_of(coordinators, name).partition):
            yield name, False
    for name, _ in healthy_names(group, cluster):
        yield name, True


async def _tenant(
    coordinators: Coordinators, name: str, partitions: Mapping[TopicPartition, object]
) -> Tenant:
    try:
        return Tenant(
            await coordinators.state(name),
            name in coordinators.sight.listed,
            await coordinators.committed(name, partitions),
        )
    except Refused as refused:
        raise CannotRepair(f"Whether the name {name} is free cannot be found out. {refused}") from None


async def _state(coordinators: Coordinators, group: str) -> GroupState | None:
    try:
        return await coordinators.state(group)
    except Refused:
        return None


def _replicas(cluster: ClusterView, partition: TopicPartition) -> int | None:
    """How many copies there are. Metadata of Kafka 0.9 leaves out those on dead brokers."""
    view = cluster.view(partition)
    return len(view.replicas) if view is not None and view.leader_epoch >= 0 else None
