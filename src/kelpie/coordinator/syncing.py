"""SyncGroup: the leader hands in the assignment, and everyone takes its own out.

| Empty             | PreparingRebalance   | CompletingRebalance        | Stable                 | Dead |
|-------------------|----------------------|----------------------------|------------------------|------|
| UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS| parked until the leader's  | the current assignment | 15   |
"""

from typing import Any

from kelpie.coordinator import answers
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.group_records import group_record
from kelpie.coordinator.member import ParkedSync
from kelpie.coordinator.membership import check_member
from kelpie.coordinator.notes import What, note
from kelpie.coordinator.rebalance import answer_sync, end_wait_for_syncs, prepare, renew, reset_assignments
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode
from kelpie.wire.api.sync_group import SyncGroupRequest


def sync(shard: ShardState, turn: Turn, to: Any, request: SyncGroupRequest) -> None:
    group = shard.groups.get(request.group_id)
    error = _refusal(group, request, turn)
    if error is not None:
        turn.answer(to, answers.sync_refused(error))
        return
    assert group is not None
    member = group.members[request.member_id]
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        end_wait_for_syncs(group, turn)
    if group.state in turn.manners.sync_renews:
        renew(group, member, turn)
    if group.state is State.STABLE:
        turn.answer(to, answers.synced(group, member.assignment))
        return
    if member.sync is not None:
        turn.abandon(member.sync.to)  # Kafka keeps one call a member; the older one is never answered.
    member.sync = ParkedSync(to)
    if group.leader == member.member_id:
        _assign(group, request, turn)


def _refusal(group: ClassicGroup | None, request: SyncGroupRequest, turn: Turn) -> ErrorCode | None:
    if not request.group_id and turn.manners.refuses_empty_group_ids:
        return ErrorCode.INVALID_GROUP_ID
    if group is None or group.state is State.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is State.DEAD:
        return turn.manners.dead_error
    error = check_member(group, request.member_id, request.group_instance_id, turn, "sync-group")
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is State.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differ(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def _assign(group: ClassicGroup, request: SyncGroupRequest, turn: Turn) -> None:
    """The leader's assignment is written down, then given out. Whom it leaves out gets nothing."""
    given = {each.member_id: each.assignment for each in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation, leader = group.generation, request.member_id
    turn.note(
        What.ASSIGNED,
        group=group.group_id,
        member=leader,
        generation=generation,
        count=len(group.members),
        static=len(group.static),
    )

    def outlived() -> bool:
        return group.state is not State.COMPLETING_REBALANCE or group.generation != generation

    def written(turn: Turn) -> None:
        if outlived():
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            answer_sync(group, member, ErrorCode.NONE, turn)
        group.transition(State.STABLE, turn.now)

    def failed(error: ErrorCode, turn: Turn) -> None:
        if outlived():
            return
        reset_assignments(group, turn.manners.group_errors.get(error, error), turn)
        prepare(group, turn, note(What.BY_FAILED_WRITE, error=error.name, member=leader))

    turn.write([group_record(group, assignments, turn.manners)], written=written, failed=failed)
