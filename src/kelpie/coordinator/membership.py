"""Staying in a group and leaving it: heartbeats, the end of a session, LeaveGroup.

Check order for a member's requests (Kafka 2.3 and later): Dead, instance id, member id, generation, state.
"""

from typing import Any

from kelpie.coordinator import answers
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.member import Member
from kelpie.coordinator.notes import Note, What, note
from kelpie.coordinator.rebalance import (
    complete_after_expiry,
    drop,
    maybe_complete,
    rebalance_or_complete,
    renew,
)
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse


def check_member(
    group: ClassicGroup, member_id: str, instance_id: str | None, turn: Turn, during: str
) -> ErrorCode | None:
    """Why this is no member of the group; None if it is one. `during` is Kafka's name for the operation."""
    if instance_id is not None:
        known = group.static.get(instance_id)
        if known is not None and known != member_id:
            turn.note(
                What.FENCED,
                group=group.group_id,
                member=member_id,
                instance=instance_id,
                owner=known,
                during=during,
            )
            return ErrorCode.FENCED_INSTANCE_ID
        if known is None and turn.manners.refuses_unknown_instances:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def heartbeat(shard: ShardState, turn: Turn, to: Any, request: HeartbeatRequest) -> None:
    turn.answer(to, answers.beaten(_heartbeat(shard, turn, request)))


def _heartbeat(shard: ShardState, turn: Turn, request: HeartbeatRequest) -> ErrorCode:
    manners = turn.manners
    if not request.group_id and manners.refuses_empty_group_ids:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.groups.get(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is State.DEAD:
        return manners.dead_error
    if manners.state_before_member and group.state is not State.STABLE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    error = check_member(group, request.member_id, request.group_instance_id, turn, "heartbeat")
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # Who has just joined may beat before it syncs; that is no reason to join again (KAFKA-10134).
    renew(group, group.members[request.member_id], turn)
    preparing = group.state is State.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE


def session_timer(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    """A session has ended, of a member or of one whose id was given out and who never came back."""
    if member_id in group.pending:
        if turn.now >= group.pending[member_id]:
            turn.note(What.PENDING_FAILED, group=group.group_id, member=member_id)
            drop(group, member_id, turn)
            complete_after_expiry(group, turn)
        return
    member = group.members.get(member_id)
    if member is None or member.deadline is None or turn.now < member.deadline:
        return  # A heartbeat won the race; this timer is void.
    if member.satisfies_heartbeat:
        member.deadline = None  # It begins anew when the parked call is answered.
        return
    turn.note(What.FAILED, group=group.group_id, member=member_id)
    _remove(group, member_id, turn)
    if group.state is State.PREPARING_REBALANCE:
        complete_after_expiry(group, turn)
    else:
        rebalance_or_complete(group, turn, note(What.BY_EXPIRY, member=member_id))


def leave(shard: ShardState, turn: Turn, to: Any, request: LeaveGroupRequest, version: int) -> None:
    response = _leave(shard, turn, _leaving(request, version))
    errors = turn.manners.group_errors
    if version <= 2:
        first = response.members[0].error_code if response.members else ErrorCode.NONE
        response = LeaveGroupResponse(error_code=response.error_code or first)
    if turn.manners.leave_waits:
        turn.answer_when_written(
            to, response, lambda error: LeaveGroupResponse(error_code=errors.get(error, error))
        )
    else:
        turn.answer(to, response)


def _leaving(request: LeaveGroupRequest, version: int) -> tuple[str, list[MemberIdentity]]:
    members = request.members if version >= 3 else [MemberIdentity(member_id=request.member_id)]
    return request.group_id, members


def _leave(shard: ShardState, turn: Turn, asked: tuple[str, list[MemberIdentity]]) -> LeaveGroupResponse:
    group_id, leaving = asked
    if not group_id and turn.manners.refuses_empty_group_ids:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    group = shard.groups.get(group_id)
    if group is not None and group.state is State.DEAD:
        return LeaveGroupResponse(error_code=turn.manners.dead_error)
    results = []
    left: list[Note] = []
    for one in leaving:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave_one(group, one, left, turn)
        results.append(
            MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)
        )
    if not turn.manners.tells_of_leaving_late:
        turn.note_all(left)
    if group is not None and any(result.error_code == ErrorCode.NONE for result in results):
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            gone = [it.member_id for it in results if it.error_code == ErrorCode.NONE]
            why = leaving[0].reason if leaving else None
            rebalance_or_complete(group, turn, note(What.BY_LEAVING, members=gone, client_reason=why))
        elif group.state is State.PREPARING_REBALANCE:
            maybe_complete(group, turn)
    if turn.manners.tells_of_leaving_late:
        turn.note_all(left)
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=results)


def _leave_one(group: ClassicGroup, one: MemberIdentity, left: list[Note], turn: Turn) -> ErrorCode:
    member_id = one.member_id
    if not member_id:
        # An administrator removes a static member, and need not know its member id.
        instance = one.group_instance_id
        if instance is None or instance not in group.static:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static[instance]
    elif member_id in group.pending:
        left.append(note(What.PENDING_LEFT, group=group.group_id, member=member_id, client_reason=one.reason))
        drop(group, member_id, turn)
        return ErrorCode.NONE
    else:
        error = check_member(group, member_id, one.group_instance_id, turn, "leave-group")
        if error is not None:
            return error
    left.append(_left(group, group.members[member_id], one.reason))
    _remove(group, member_id, turn)
    return ErrorCode.NONE


def _left(group: ClassicGroup, member: Member, reason: str | None) -> Note:
    return note(
        What.LEFT,
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


def _remove(group: ClassicGroup, member_id: str, turn: Turn) -> None:
    call = group.take_join(group.members[member_id])
    if call is not None:
        response = answers.join_refused("", ErrorCode.UNKNOWN_MEMBER_ID, call.version, turn.manners)
        turn.answer(call.to, response)
    drop(group, member_id, turn)
