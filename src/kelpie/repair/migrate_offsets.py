"""Moving the offsets of a ZooKeeper group of Kafka 0.8's kind to a group that Kafka's brokers coordinate.

The offsets in ZooKeeper stay as they are. A partition is left out, and the plan says so, if the log does not
hold its offset, or if Kafka's group is further already: the consumers would skip records, or read them again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kelpie.client.admin.groups import ABSENT
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, first_of, listed
from kelpie.observations import OFFSETS_TOPIC, GroupState
from kelpie.repair.applying import Action, Repair, StepFailed
from kelpie.repair.claims import Claim, ClaimKind
from kelpie.repair.committing import (
    GroupCommit,
    commit_steps,
    group_at_coordinator,
    offset_details,
    offsets_table,
)
from kelpie.repair.coordinators import Coordinators
from kelpie.repair.group_move import members_obstacle
from kelpie.repair.log_ends import Ends, ends_of
from kelpie.repair.picture import survey_cluster
from kelpie.repair.plan import NOTHING_CHANGES, CannotRepair, ManualStep, Plan, SkippedPartition, Step
from kelpie.repair.reset_targets import NewOffset, ToGiven, new_offset, scope
from kelpie.repair.zookeeper_group import LIMIT_S, SourceGroup, read_group

_SHOWN_MEMBERS = 5
_FINAL = (
    "Kafka has no group {} yet, and this release cannot delete one (1.1 and later can): kelpie undo cannot "
    "take this back. Unused, the offsets expire after offsets.retention.minutes."
)


@dataclass(frozen=True, slots=True)
class Migration:
    """From which group to which, and what may happen on the way."""

    hosts: str
    """Of ZooKeeper: HOST:PORT[,…][/PATH]."""
    group: str
    name: str
    """Of Kafka's group."""
    topics: Sequence[str] = ()
    """As `reset_targets.scope` takes them; none: all that the group has offsets of."""
    backwards: bool = False
    """Offsets that Kafka's group has already may go back."""
    into_log: bool = False
    """An offset outside the log becomes the nearest one that the log has."""
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class _KafkaGroup:
    state: GroupState | None
    """None: there is no offsets topic, so no group has ever been in this cluster."""
    committed: Mapping[TopicPartition, Claim]


async def migrate_offsets(nodes: Nodes, migration: Migration) -> Repair:
    """What would move the offsets. Raises CannotRepair, ClientError."""
    source = await read_group(migration.hosts, migration.group, migration.limit_s)
    topics = {partition.topic for partition in source.offsets}
    coordinators = Coordinators(nodes, await survey_cluster(nodes, topics))
    goal = await _kafka_group(coordinators, migration.name)
    offsets, skipped = await _offsets(nodes, coordinators.cluster, migration, source, goal.committed)
    changing = [offset for offset in offsets if offset.changes]
    count = counted(len(changing), "offset")
    same = " of the same name" if migration.name == migration.group else f" {migration.name}"
    title = f"Move {count} of group {migration.group} from ZooKeeper to Kafka's group{same}."
    is_new = goal.state is None or goal.state.state == ABSENT
    commit = GroupCommit("migrate-offsets", migration.name, changing, goal.committed, is_new)
    steps, actions = _steps(coordinators, migration, source, commit, title) if changing else ((), ())
    is_final = bool(changing) and is_new and not await coordinators.release_deletes_groups()
    plan = Plan(
        "migrate-offsets",
        title if changing else f"Nothing to move: Kafka's group {migration.name} has all that can be moved.",
        steps,
        seen=tuple(_seen(coordinators.cluster, migration, source, goal, offsets)),
        tables=(offsets_table(offsets),) if offsets else (),
        warnings=(
            *([_FINAL.format(migration.name)] if is_final else []),
            *(f"{skip.partition} is left out: {skip.reason}." for skip in skipped),
            *(f"{path} holds no offset, and is left out." for path in source.unreadable),
        ),
        obstacles=tuple(_obstacles(coordinators.cluster, migration, source, goal.state)),
        afterwards=_afterwards(migration) if changing else (),
        details={"zookeeper_group": migration.group, **offset_details(migration.name, offsets, skipped)},
    )
    return Repair(plan, actions)


async def _kafka_group(coordinators: Coordinators, name: str) -> _KafkaGroup:
    """Without an offsets topic, nobody is asked: that would make it."""
    if coordinators.cluster.offsets_partitions == 0:
        return _KafkaGroup(None, {})
    return _KafkaGroup(*await group_at_coordinator(coordinators, name))


async def _offsets(
    nodes: Nodes,
    cluster: ClusterView,
    migration: Migration,
    source: SourceGroup,
    committed: Mapping[TopicPartition, Claim],
) -> tuple[list[NewOffset], list[SkippedPartition]]:
    where = f"ZooKeeper at {migration.hosts}"
    claims = {
        name: Claim(name, offset, where, kind=ClaimKind.GIVEN) for name, offset in source.offsets.items()
    }
    target = ToGiven(claims, "in ZooKeeper")
    partitions = [name for name in scope(target, (), cluster, migration.topics) if name in claims]
    if not partitions and not source.unreadable:
        raise CannotRepair(
            f"Group {migration.group} has no offsets in ZooKeeper at {migration.hosts}"
            + (f" of {listed(migration.topics)}." if migration.topics else ".")
        )
    ends = await ends_of(nodes, cluster, partitions)
    offsets: list[NewOffset] = []
    skipped: list[SkippedPartition] = []
    for name in partitions:
        if cluster.view(name) is None:
            skipped.append(SkippedPartition(name, "it is gone from the cluster"))
            continue
        before = committed[name].offset if name in committed else None
        moved = _moved(new_offset(target, name, before, ends[name]), claims[name], ends[name], migration)
        if isinstance(moved, NewOffset):
            offsets.append(moved)
        else:
            skipped.append(moved)
    return offsets, skipped


def _moved(
    new: NewOffset | SkippedPartition, claim: Claim, ends: Ends, migration: Migration
) -> NewOffset | SkippedPartition:
    """What becomes of an offset, once the log is known, and what Kafka's group has already."""
    if isinstance(new, SkippedPartition):
        return new
    name = new.partition
    if not ends.known:
        return SkippedPartition(name, f"its log cannot be asked ({ends.failure}); run this again later")
    if new.offset != claim.offset and not migration.into_log:
        return SkippedPartition(
            name,
            f"its offset in ZooKeeper is {claim.offset}, and its log has {ends.earliest} to {ends.latest}; "
            f"--into-log moves it to {new.offset}, without it the application's auto.offset.reset decides",
        )
    if new.before is not None and new.before > new.offset and not migration.backwards:
        return SkippedPartition(
            name,
            f"Kafka's group is at {new.before}, ZooKeeper's at {new.offset}; --backwards moves it back, and "
            f"{counted(new.before - new.offset, 'record')} would be read again",
        )
    return new


def _steps(
    coordinators: Coordinators, migration: Migration, source: SourceGroup, commit: GroupCommit, title: str
) -> tuple[tuple[Step, ...], tuple[Action, ...]]:
    steps, actions = commit_steps(coordinators, commit, title)
    changing = commit.changing

    async def check() -> str:
        """The plan may have been read for a while."""
        now = await read_group(migration.hosts, migration.group, migration.limit_s)
        if now.members:
            raise StepFailed(_registered(migration, now.members))
        if any(now.offsets.get(offset.partition) != source.offsets[offset.partition] for offset in changing):
            raise StepFailed(
                f"Offsets of group {migration.group} in ZooKeeper have changed since the plan was made: "
                "somebody still consumes. Stop every consumer, and run this again."
            )
        return f"Nobody is registered in group {migration.group}, and its offsets are as planned."

    asking = Step(
        f"Look again who is registered in /consumers/{migration.group}/ids", "Nothing.", NOTHING_CHANGES
    )
    committing = replace(steps[-2], changes=f"{steps[-2].changes} ZooKeeper stays as it is.")
    return (asking, *steps[:-2], committing, steps[-1]), (check, *actions)


def _seen(
    cluster: ClusterView,
    migration: Migration,
    source: SourceGroup,
    goal: _KafkaGroup,
    offsets: Sequence[NewOffset],
) -> list[str]:
    seen = [
        f"Group {migration.group} has {counted(len(source.offsets), 'offset')} in ZooKeeper at "
        f"{migration.hosts}, and {counted(len(source.members), 'registered consumer')}."
    ]
    if goal.state is None:
        seen.append(f"There is no topic {OFFSETS_TOPIC} yet: brokers make it at the first commit.")
    elif goal.state.state == ABSENT and not goal.committed:
        seen.append(f"Kafka has no group {migration.name} yet.")
    else:
        count = counted(len(goal.committed), "offset")
        broker = cluster.broker_name(goal.state.coordinator)
        seen.append(f"Kafka's group {migration.name} has {count}; {broker} coordinates it.")
    same = sum(not offset.changes for offset in offsets)
    if same:
        seen.append(f"{counted(same, 'partition')} {'is' if same == 1 else 'are'} there already.")
    return seen


def _obstacles(
    cluster: ClusterView, migration: Migration, source: SourceGroup, state: GroupState | None
) -> list[str]:
    obstacles = [*members_obstacle(state)]
    if source.members:
        obstacles.append(_registered(migration, source.members))
    if source.brokers and not source.brokers & set(cluster.brokers):
        obstacles.append(
            f"ZooKeeper at {migration.hosts} is that of another cluster: its brokers are "
            f"{listed(sorted(source.brokers))}, those of this cluster {listed(sorted(cluster.brokers))}."
        )
    return obstacles


def _registered(migration: Migration, members: Sequence[str]) -> str:
    return (
        f"Group {migration.group} has {counted(len(members), 'consumer')} registered in ZooKeeper: "
        f"{first_of(members, _SHOWN_MEMBERS)}. Stop them first; one that was killed stays registered until "
        "its session expires."
    )


def _afterwards(migration: Migration) -> tuple[ManualStep, ...]:
    return (
        ManualStep(
            "Start the consumers that use Kafka's own groups (bootstrap.servers, not zookeeper.connect):",
            (f"group.id={migration.name}",),
        ),
        ManualStep(
            f"Start none that uses ZooKeeper: it would go on from /consumers/{migration.group}/offsets, and "
            "records would be read twice."
        ),
    )
