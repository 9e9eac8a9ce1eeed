"""DescribeGroups and ListGroups: what is told about a group."""

from collections.abc import Collection

from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.member import Member
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.errors import ErrorCode
from kelpie.wire.api.describe_groups import DescribedGroup, DescribedGroupMember
from kelpie.wire.api.list_groups import ListedGroup

GROUP_TYPE = "classic"


def described(shard: ShardState, group_id: str, version: int) -> DescribedGroup:
    """A group that is not there is Dead, and since version 6 also an error (KIP-1043)."""
    group = shard.groups.get(group_id)
    if group is None:
        missing = version >= 6
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
            error_message=f"Group {group_id} not found." if missing else None,
            group_id=group_id,
            group_state=State.DEAD.value,
            protocol_type="",
            protocol_data="",
            members=[],
        )
    stable = group.state is State.STABLE
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=_state_name(shard, group),
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(shard, group, member) for member in group.members.values()],
    )


def listed(shard: ShardState, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """All groups, or those in these states and of these types; how states are spelt matters up to 2.8."""
    spelt = str if shard.manners.spells_states_exactly else str.lower
    wanted_states = {spelt(state) for state in states}
    if types and GROUP_TYPE not in {each.lower() for each in types}:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=_state_name(shard, group),
            group_type=GROUP_TYPE,
        )
        for group in shard.groups.values()
        if not wanted_states or spelt(_state_name(shard, group)) in wanted_states
    ]


def _member(shard: ShardState, group: ClassicGroup, member: Member) -> DescribedGroupMember:
    """Metadata are those of the selected protocol, so that there are none before it is selected."""
    stable = group.state is State.STABLE
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol or "") if stable else b"",
        member_assignment=member.assignment if stable or shard.manners.describes_assignments else b"",
    )


def _state_name(shard: ShardState, group: ClassicGroup) -> str:
    completing = group.state is State.COMPLETING_REBALANCE
    return shard.manners.completing_name if completing else group.state.value
