"""Moving a group to a name that lives on a healthy partition of the offsets topic, with its offsets.

The old name keeps what it has, wherever that is: should its partition come back, its offsets are there, and
old by then. The application must be told the new name; until it uses it, nothing consumes.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.survey import wall_clock
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.repair.applications import refuse_share_group, use_of
from kelpie.repair.applying import Repair
from kelpie.repair.change_records import OffsetsChange, StoredOffset, record_of
from kelpie.repair.claims import SettledOffset, settle
from kelpie.repair.coordinators import CoordinatorRefused, Coordinators
from kelpie.repair.group_move import (
    Goal,
    GroupMove,
    MovedOffsets,
    Origin,
    plan_move,
)
from kelpie.repair.group_names import Occupant, Use, healthy_names, is_candidate
from kelpie.repair.log_ends import ends_of
from kelpie.repair.offset_sources import Sources, gather, home_of
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import CannotRepair

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
    coordinators = Coordinators(nodes, await survey_cluster(nodes))
    home = home_of(coordinators.cluster, group)
    if coordinators.cluster.has_leader(home):
        with suppress(CoordinatorRefused, ClientError):
            refuse_share_group(coordinators.cluster, await coordinators.state(group), "moved")
    gathered = await gather(nodes, coordinators, group, sources, earlier=earlier, evidence=evidence)
    settled = settle(gathered.claims, gathered.copies, replicas=_replicas(coordinators.cluster, home))
    # Now with the topics as well: which of them are left, and where their logs begin and end.
    cluster = await coordinators.survey_again({partition.topic for partition in settled})
    carried: list[SettledOffset] = []
    left: list[SettledOffset] = []
    for offset in settled.values():
        is_there = cluster.view(offset.partition) is not None
        (carried if is_there and not offset.claim.removed else left).append(offset)
    if not carried:
        raise CannotRepair(
            f"No committed offsets of group {group} were found that could be carried over. Asked: "
            f"{'; '.join(gathered.reports)}. Give folders with the disks of brokers that hold a copy of "
            f"{home}: --offsets-from DIR …"
        )
    name, occupant = await _goal(coordinators, group, new_name, carried)
    coordinator = coordinators.cluster.coordinator_of(name)
    assert coordinator is not None
    state = None
    if cluster.has_leader(home):
        with suppress(CoordinatorRefused):
            state = await coordinators.state(group)
    application = await use_of(nodes, group, state, wall_clock())
    ends = await ends_of(nodes, cluster, [offset.partition for offset in carried])
    deletable = await coordinators.can_delete(name)
    move = GroupMove(
        cluster,
        Origin(group, home, state, application),
        Goal(name, home_of(cluster, name), coordinator, occupant, deletable),
        MovedOffsets(tuple(carried), tuple(left), tuple(gathered.reports), ends),
    )
    claims = move.offsets.claims
    after = {claim.partition: StoredOffset.of(claim) for claim in claims}
    before = {
        partition: StoredOffset.of(occupant.offsets[partition]) if partition in occupant.offsets else None
        for partition in after
    }
    change = OffsetsChange(before, after, makes_group=not occupant.offsets and not occupant.listed)
    record = record_of(nodes, "rehome", name, move.title, change)
    plan = plan_move(move, record)
    if not plan.steps:
        return Repair(plan)
    commit = partial(coordinators.commit, name, claims, change.planned)
    return Repair(plan, (record.note, commit, partial(coordinators.compare, name, claims)))


async def _goal(
    coordinators: Coordinators, group: str, new_name: str | None, carried: Sequence[SettledOffset]
) -> tuple[str, Occupant]:
    """The name to move to, and what lives there now. Raises CannotRepair."""
    wanted = {offset.partition: offset.offset for offset in carried}
    if new_name is not None:
        if not new_name:
            raise CannotRepair("An empty name is no name for a group; choose another with --as.")
        if new_name == group:
            raise CannotRepair(f"{new_name} is the name that the group has now; choose another with --as.")
        partition = home_of(coordinators.cluster, new_name)
        if not coordinators.cluster.has_leader(partition):
            raise CannotRepair(
                f"{new_name} lives on {partition}, which has no living leader. Leave --as out, and a name on "
                "a healthy partition is found."
            )
        return new_name, await _occupant(coordinators, new_name)
    taken = []
    for name, is_best in _names(coordinators.cluster, group):
        occupant = await _occupant(coordinators, name)
        use = occupant.use(wanted)
        if use not in (Use.FREE, Use.TAKEN) or (use is Use.FREE and is_best):
            return name, occupant
        if not is_best:
            continue
        taken.append(name)
        if len(taken) == _MOST_NAMES:
            raise CannotRepair(f"{taken[0]} to {taken[-1]} are all taken. Choose a name with --as.")
    raise CannotRepair(
        f"No partition of {OFFSETS_TOPIC} has a living leader: there is nowhere to move to. Start a broker "
        "that holds replicas of it; kelpie doctor names them."
    )


def _names(cluster: ClusterView, group: str) -> Iterator[tuple[str, bool]]:
    """Names to try, and whether each is on one of the healthiest partitions.

    Names of groups that exist come first: an earlier run may have moved the group to one of them when the
    cluster was in another state.
    """
    for name in sorted(name for name in cluster.listed_groups if is_candidate(name, group)):
        if cluster.has_leader(home_of(cluster, name)):
            yield name, False
    for name in healthy_names(group, cluster):
        yield name, True


async def _occupant(coordinators: Coordinators, name: str) -> Occupant:
    try:
        return Occupant(
            await coordinators.state(name),
            name in coordinators.cluster.listed_groups,
            await coordinators.committed(name),
        )
    except CoordinatorRefused as refused:
        raise CannotRepair(f"Whether the name {name} is free cannot be found out. {refused}") from None


def _replicas(cluster: ClusterView, partition: TopicPartition) -> int | None:
    """How many copies there are. None for Kafka 0.9, whose metadata leaves out those on dead brokers."""
    view = cluster.view(partition)
    return len(view.replicas) if view is not None and view.leader_epoch >= 0 else None
