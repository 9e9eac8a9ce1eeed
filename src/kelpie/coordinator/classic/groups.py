"""The classic groups of a shard."""

from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.shard_state import ShardState
from kelpie.model.time import Instant


def find(shard: ShardState, group_id: str) -> ClassicGroup | None:
    """The group of this id. Where shards hold groups of another kind too, this is where they are refused."""
    group = shard.groups.get(group_id)
    assert group is None or isinstance(group, ClassicGroup), f"{group_id} is not a classic group"
    return group


def create(shard: ShardState, group_id: str, since: Instant | None) -> ClassicGroup:
    """A group without members, which so far exists in memory only."""
    assert group_id not in shard.groups
    state = ClassicGroupState.EMPTY if shard.behaviour.has_empty_state else ClassicGroupState.STABLE
    group = shard.groups[group_id] = ClassicGroup(group_id, state, since)
    return group


def forget_if_dead(shard: ShardState, group_id: str) -> None:
    """In Kafka 0.9 a group dies with its last member. A shard that was unloaded keeps its dead groups."""
    group = shard.groups.get(group_id)
    if group is not None and group.is_dead and not shard.unloaded:
        del shard.groups[group_id]
