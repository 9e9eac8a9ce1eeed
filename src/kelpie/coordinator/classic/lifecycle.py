"""Classic groups when their shard is loaded and unloaded, and when a timer of theirs is due."""

from kelpie.coordinator.classic import membership
from kelpie.coordinator.classic.group import ClassicGroup, find_group, forget_if_dead
from kelpie.coordinator.classic.rebalance import join_timer, prepare, refuse_parked, sync_timer
from kelpie.coordinator.classic.records import group_from
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import NoteKind, note
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataValue


def replay(shard: ShardState, group_id: str, value: GroupMetadataValue | None) -> None:
    """A record of a group, while the shard loads."""
    if value is None:
        shard.groups.pop(group_id, None)
    else:
        shard.groups[group_id] = group_from(group_id, value, shard.behaviour)


def loaded(shard: ShardState, event: ShardEvent) -> None:
    """Every member gets a new session. A group that is larger than the limit now has to rebalance."""
    if not event.behaviour.tombstones_simple_groups:
        _forget_unused(shard)
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            _group_loaded(group, event)


def _group_loaded(group: ClassicGroup, event: ShardEvent) -> None:
    count = len(group.members)
    for member in group.members.values():
        group.renew_session(member, event)
    event.note(NoteKind.GROUP_LOADED, group=group.group_id, count=count, generation=group.generation)
    limit = event.config.max_size
    if count > limit:
        prepare(group, event, note(NoteKind.BY_SIZE, group=group.group_id, count=count, limit=limit))


def _forget_unused(shard: ShardState) -> None:
    """Where a simple group has no tombstone, it ends with its last offset."""
    for group_id in list(shard.groups):
        group = find_group(shard, group_id)
        unused = group is not None and group.is_simple and group.generation == 0
        if unused and not shard.offsets.has_any(group_id):
            del shard.groups[group_id]


def unloaded(shard: ShardState, event: ShardEvent) -> None:
    """Another broker leads now. Parked calls are answered NOT_COORDINATOR, and the groups are Dead here."""
    for group in shard.groups.values():
        if not isinstance(group, ClassicGroup):
            continue
        event.note(NoteKind.GROUP_UNLOADED, group=group.group_id, generation=group.generation)
        group.transition(ClassicGroupState.DEAD, group.since or 0)
        for member in group.members.values():
            refuse_parked(group, member, ErrorCode.NOT_COORDINATOR, event)


def timer(shard: ShardState, event: ShardEvent, key: tuple[str, ...]) -> None:
    """A timer that rebalance.py names is due."""
    kind, group_id, *rest = key
    group = find_group(shard, group_id)
    if group is None or group.is_dead:
        return
    if kind == "session":
        membership.session_timer(event, group, rest[0])
    elif kind == "join":
        join_timer(group, event)
    else:
        assert kind == "sync", f"{key!r} is not a timer of this shard"
        sync_timer(group, event)
    forget_if_dead(shard, group_id)
