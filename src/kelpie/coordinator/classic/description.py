"""DescribeGroups: a classic group and its members, as tools see them."""

from kelpie.coordinator.classic import groups
from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.member import ClassicMember
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.wire.api.describe_groups import DescribedGroup, DescribedGroupMember


def described(shard: ShardState, group_id: str, version: int) -> DescribedGroup:
    """A group that is not there is Dead, and since version 6 also an error (KIP-1043)."""
    group = groups.find(shard, group_id)
    if group is None:
        missing = version >= 6
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
            error_message=f"Group {group_id} not found." if missing else None,
            group_id=group_id,
            group_state=ClassicGroupState.DEAD.value,
            protocol_type="",
            protocol_data="",
            members=[],
        )
    stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state_name(shard.behaviour),
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(shard, group, member) for member in group.members.values()],
    )


def _member(shard: ShardState, group: ClassicGroup, member: ClassicMember) -> DescribedGroupMember:
    """Metadata are those of the selected protocol, so that there are none before it is selected."""
    stable = group.state is ClassicGroupState.STABLE
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol or "") if stable else b"",
        member_assignment=member.assignment if stable or shard.behaviour.describes_assignments else b"",
    )
