"""The answers to members of a classic group, and to tools that describe it, as Kafka shapes them."""

from kelpie.coordinator.classic.group import ClassicGroup, find_group
from kelpie.coordinator.classic.member import ClassicMember
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.wire.api.describe_groups import DescribedGroup, DescribedGroupMember
from kelpie.wire.api.join_group import JoinGroupResponse, JoinGroupResponseMember
from kelpie.wire.api.sync_group import SyncGroupResponse


def join_refused(
    member_id: str, error: ErrorCode, version: int, behaviour: GroupBehaviour
) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error,
        generation_id=behaviour.join_error_generation,
        protocol_name=_nullable(None, version),
        leader="",
        member_id=member_id,
        members=[],
    )


def joined(
    group: ClassicGroup,
    member_id: str,
    version: int,
    *,
    leader: str | None = None,
    with_members: bool | None = None,
    skip_assignment: bool = False,
    error: ErrorCode = ErrorCode.NONE,
) -> JoinGroupResponse:
    """The current generation. Its leader also gets the list of members."""
    if with_members is None:
        with_members = group.leader == member_id
    return JoinGroupResponse(
        error_code=error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=_nullable(group.protocol, version),
        leader=(group.leader if leader is None else leader) or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=_members(group) if with_members else [],
    )


def _members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    assert group.protocol is not None
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, assignment=b"")


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=assignment,
    )


def described(shard: ShardState, group_id: str, version: int) -> DescribedGroup:
    """A group that is not there is Dead, and since version 6 also an error (KIP-1043)."""
    group = find_group(shard, group_id)
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
        members=[_described_member(shard, group, member) for member in group.members.values()],
    )


def _described_member(shard: ShardState, group: ClassicGroup, member: ClassicMember) -> DescribedGroupMember:
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


def _nullable(protocol: str | None, version: int) -> str | None:
    """Before version 7 the protocol cannot be null and Kafka sends no text; from then on, no text is null."""
    return protocol or (None if version >= 7 else "")
