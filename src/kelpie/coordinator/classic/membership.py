"""Staying in a group and leaving it: heartbeats, the end of a session, LeaveGroup.

Check order for a member's requests (Kafka 2.3 and later): Dead, instance id, member id, generation, state.
"""

from typing import Any

from kelpie.coordinator.classic.group import ClassicGroup, find_group
from kelpie.coordinator.classic.member import ClassicMember
from kelpie.coordinator.classic.rebalance import (
    complete_after_expiry,
    drop,
    expel,
    maybe_complete,
    rebalance_or_complete,
)
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import Note, NoteKind, note
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from kelpie.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse


def heartbeat(shard: ShardState, event: ShardEvent, to: Any, request: HeartbeatRequest) -> None:
    event.answer(to, HeartbeatResponse(error_code=_heartbeat(shard, event, request)))


def _heartbeat(shard: ShardState, event: ShardEvent, request: HeartbeatRequest) -> ErrorCode:
    behaviour = event.behaviour
    if not request.group_id and behaviour.refuses_empty_group_ids:
        return ErrorCode.INVALID_GROUP_ID
    group = find_group(shard, request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is ClassicGroupState.DEAD:
        return behaviour.dead_error
    if behaviour.state_before_member and group.state is not ClassicGroupState.STABLE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    error = group.check_member(request.member_id, request.group_instance_id, event, "heartbeat")
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # A member that has just joined may send a heartbeat before it syncs: no reason to rejoin (KAFKA-10134).
    group.renew_session(group.members[request.member_id], event)
    preparing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE


def session_timer(event: ShardEvent, group: ClassicGroup, member_id: str) -> None:
    """A session has ended: of a member, or of an id that was given out and never joined."""
    if member_id in group.pending:
        if event.now >= group.pending[member_id]:
            event.note(NoteKind.PENDING_FAILED, group=group.group_id, member=member_id)
            drop(group, member_id, event)
            complete_after_expiry(group, event)
        return
    member = group.members.get(member_id)
    if member is None or member.deadline is None or event.now < member.deadline:
        return  # A heartbeat won the race; this timer is void.
    if member.satisfies_heartbeat:
        member.deadline = None  # It begins anew when the parked call is answered.
        return
    event.note(NoteKind.FAILED, group=group.group_id, member=member_id)
    expel(group, member, ErrorCode.UNKNOWN_MEMBER_ID, event)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_after_expiry(group, event)
    else:
        rebalance_or_complete(group, event, note(NoteKind.BY_EXPIRY, member=member_id))


def leave(shard: ShardState, event: ShardEvent, to: Any, request: LeaveGroupRequest, version: int) -> None:
    leaving = request.members if version >= 3 else [MemberIdentity(member_id=request.member_id)]
    response = _leave(shard, event, request.group_id, leaving)
    errors = event.behaviour.group_errors
    if version <= 2:
        first = response.members[0].error_code if response.members else ErrorCode.NONE
        response = LeaveGroupResponse(error_code=response.error_code or first)
    if event.behaviour.leave_waits:
        event.answer_when_written(
            to, response, lambda error: LeaveGroupResponse(error_code=errors.get(error, error))
        )
    else:
        event.answer(to, response)


def _leave(
    shard: ShardState, event: ShardEvent, group_id: str, leaving: list[MemberIdentity]
) -> LeaveGroupResponse:
    if not group_id and event.behaviour.refuses_empty_group_ids:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    group = find_group(shard, group_id)
    if group is not None and group.state is ClassicGroupState.DEAD:
        return LeaveGroupResponse(error_code=event.behaviour.dead_error)
    results = []
    left: list[Note] = []
    for one in leaving:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave_one(group, one, left, event)
        results.append(
            MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)
        )
    if not event.behaviour.logs_leaving_late:
        event.note_all(left)
    if group is not None and any(result.error_code == ErrorCode.NONE for result in results):
        if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            gone = [result.member_id for result in results if result.error_code == ErrorCode.NONE]
            why = leaving[0].reason if leaving else None
            rebalance_or_complete(group, event, note(NoteKind.BY_LEAVING, members=gone, client_reason=why))
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            maybe_complete(group, event)
    if event.behaviour.logs_leaving_late:
        event.note_all(left)
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=results)


def _leave_one(group: ClassicGroup, one: MemberIdentity, left: list[Note], event: ShardEvent) -> ErrorCode:
    member_id = one.member_id
    if not member_id:
        # An administrator removes a static member, and need not know its member id.
        instance = one.group_instance_id
        if instance is None or instance not in group.static:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static[instance]
    elif member_id in group.pending:
        left.append(
            note(NoteKind.PENDING_LEFT, group=group.group_id, member=member_id, client_reason=one.reason)
        )
        drop(group, member_id, event)
        return ErrorCode.NONE
    else:
        error = group.check_member(member_id, one.group_instance_id, event, "leave-group")
        if error is not None:
            return error
    member = group.members[member_id]
    left.append(_left(group, member, one.reason))
    expel(group, member, ErrorCode.UNKNOWN_MEMBER_ID, event)
    return ErrorCode.NONE


def _left(group: ClassicGroup, member: ClassicMember, reason: str | None) -> Note:
    return note(
        NoteKind.LEFT,
        group=group.group_id,
        member=member.member_id,
        instance=member.instance_id,
        client_reason=reason,
        client=member.client_id,
        host=member.client_host,
        session_ms=member.session_timeout_ms,
        rebalance_ms=member.rebalance_timeout_ms,
        protocols=", ".join(name for name, _ in member.protocols),
    )
