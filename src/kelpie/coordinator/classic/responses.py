"""The answers to members of a group, as Kafka shapes them."""

from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.errors import ErrorCode
from kelpie.wire.api.heartbeat import HeartbeatResponse
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


def beaten(error: ErrorCode = ErrorCode.NONE) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


def _nullable(protocol: str | None, version: int) -> str | None:
    """Before version 7 the protocol cannot be null and Kafka sends no text; from then on, no text is null."""
    return protocol or (None if version >= 7 else "")
