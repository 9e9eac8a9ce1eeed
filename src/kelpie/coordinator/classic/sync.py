"""SyncGroup: the leader sends the assignment, and each member receives its part.

| Empty             | PreparingRebalance   | CompletingRebalance        | Stable                 | Dead |
|-------------------|----------------------|----------------------------|------------------------|------|
| UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS| parked until the leader's  | the current assignment | 15   |
"""

from typing import Any

from kelpie.coordinator.classic import responses
from kelpie.coordinator.classic.group import ClassicGroup, find_group
from kelpie.coordinator.classic.member import ParkedSync
from kelpie.coordinator.classic.rebalance import answer_sync, end_wait_for_syncs, prepare, reset_assignments
from kelpie.coordinator.classic.records import group_record
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import NoteKind, note
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.wire.api.sync_group import SyncGroupRequest


def sync(shard: ShardState, event: ShardEvent, to: Any, request: SyncGroupRequest) -> None:
    group = find_group(shard, request.group_id)
    error = _refusal(group, request, event)
    if error is not None:
        event.answer(to, responses.sync_refused(error))
        return
    assert group is not None
    member = group.members[request.member_id]
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        end_wait_for_syncs(group, event)
    if group.state in event.behaviour.sync_renews:
        group.renew_session(member, event)
    if group.state is ClassicGroupState.STABLE:
        event.answer(to, responses.synced(group, member.assignment))
        return
    if member.sync is not None:
        event.abandon(member.sync.to)  # Kafka keeps one call a member; the older one is never answered.
    member.sync = ParkedSync(to)
    if group.leader == member.member_id:
        _assign(group, request, event)


def _refusal(group: ClassicGroup | None, request: SyncGroupRequest, event: ShardEvent) -> ErrorCode | None:
    if not request.group_id and event.behaviour.refuses_empty_group_ids:
        return ErrorCode.INVALID_GROUP_ID
    if group is None or group.state is ClassicGroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is ClassicGroupState.DEAD:
        return event.behaviour.dead_error
    error = group.check_member(request.member_id, request.group_instance_id, event, "sync-group")
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differ(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def _assign(group: ClassicGroup, request: SyncGroupRequest, event: ShardEvent) -> None:
    """The leader's assignment is written, then sent out. A member that it leaves out gets nothing."""
    given = {each.member_id: each.assignment for each in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation, leader = group.generation, request.member_id
    event.note(
        NoteKind.ASSIGNED,
        group=group.group_id,
        member=leader,
        generation=generation,
        count=len(group.members),
        static=len(group.static),
    )

    def outlived() -> bool:
        return group.state is not ClassicGroupState.COMPLETING_REBALANCE or group.generation != generation

    def written(event: ShardEvent) -> None:
        if outlived():
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            answer_sync(group, member, ErrorCode.NONE, event)
        group.transition(ClassicGroupState.STABLE, event.now)

    def failed(error: ErrorCode, event: ShardEvent) -> None:
        if outlived():
            return
        reset_assignments(group, event.behaviour.group_errors.get(error, error), event)
        prepare(group, event, note(NoteKind.BY_FAILED_WRITE, error=error.name, member=leader))

    event.write([group_record(group, assignments, event.behaviour)], written=written, failed=failed)
