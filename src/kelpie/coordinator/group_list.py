"""ListGroups: the groups of a shard, of every kind."""

from collections.abc import Collection

from kelpie.coordinator.shard_state import ShardState
from kelpie.wire.api.list_groups import ListedGroup


def listed(shard: ShardState, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """All groups, or those in these states and of these types. Up to 2.8 the case of a state matters."""
    spelling = str if shard.behaviour.spells_states_exactly else str.lower
    wanted_states = {spelling(state) for state in states}
    wanted_types = {group_type.lower() for group_type in types}
    rows = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state_name(shard.behaviour),
            group_type=group.group_type,
        )
        for group in shard.groups.values()
        if not wanted_types or group.group_type in wanted_types
    ]
    return [row for row in rows if not wanted_states or spelling(row.group_state) in wanted_states]
