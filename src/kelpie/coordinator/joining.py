"""JoinGroup: becoming a member, or taking part in the next generation.

| the group is          | a new member               | a known one, unchanged         | a known one, changed |
|-----------------------|----------------------------|--------------------------------|----------------------|
| Empty                 | rebalance, after a delay   | UNKNOWN_MEMBER_ID              | UNKNOWN_MEMBER_ID    |
| PreparingRebalance    | parked                     | parked                         | parked               |
| CompletingRebalance   | rebalance                  | the current generation         | rebalance            |
| Stable                | rebalance                  | leader: rebalance, others:     | rebalance            |
|                       |                            | the current generation         |                      |
| Dead                  | COORDINATOR_NOT_AVAILABLE  | COORDINATOR_NOT_AVAILABLE      | the same             |

"Unchanged" is the same list of protocols with the same metadata, in the same order. A dynamic member's first
join is answered MEMBER_ID_REQUIRED since version 4 (KIP-394). Static members (KIP-345) are in static.py.
"""

from kelpie.coordinator import answers, static
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.group_records import new_group_record
from kelpie.coordinator.member import Member, ParkedJoin
from kelpie.coordinator.membership import check_member
from kelpie.coordinator.notes import What, note
from kelpie.coordinator.rebalance import drop, maybe_complete, rebalance_or_complete, renew, session_key
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.coordinator.static import Joiner
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode


def join(shard: ShardState, turn: Turn, joiner: Joiner) -> None:
    request = joiner.request
    if not request.group_id:
        return _refuse(joiner, request.member_id, ErrorCode.INVALID_GROUP_ID, turn)
    shortest, longest = turn.config.min_session_timeout_ms, turn.config.max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return _refuse(joiner, request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT, turn)
    group = shard.groups.get(request.group_id)
    if group is not None:
        return _join(shard, group, joiner, turn)
    if request.member_id:
        return _refuse(joiner, request.member_id, ErrorCode.UNKNOWN_MEMBER_ID, turn)
    group = shard.new_group(request.group_id, turn)
    _join(shard, group, joiner, turn)
    if turn.manners.writes_new_groups and not turn.writes:
        _write_new(shard, group, joiner.call, turn)


def _join(shard: ShardState, group: ClassicGroup, joiner: Joiner, turn: Turn) -> None:
    member_id = joiner.request.member_id
    if not _has_room(group, member_id, turn.config.max_size):
        if member_id:
            drop(group, member_id, turn)
        _refuse(joiner, "", ErrorCode.GROUP_MAX_SIZE_REACHED, turn)
    elif group.state is State.DEAD:
        _refuse(joiner, member_id, turn.manners.dead_error, turn)
    elif not group.supports(joiner.request.protocol_type, [name for name, _ in joiner.protocols]):
        _refuse(joiner, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, turn)
    elif not member_id:
        _join_as_new(shard, group, joiner, turn)
    elif member_id in group.pending:
        if joiner.request.group_instance_id is not None:
            # Only dynamic members are given ids to come back with. Kafka trips over it.
            _refuse(joiner, "", ErrorCode.UNKNOWN_SERVER_ERROR, turn)
        else:
            turn.note(What.PENDING_ADDED, group=group.group_id, state=group.state.value, member=member_id)
            _add(group, member_id, joiner, turn)
    else:
        _rejoin(group, joiner, turn)
    if turn.manners.refusal_may_end_rebalance:
        maybe_complete(group, turn)


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """group.max.size (KIP-389). During a rebalance those who are here count: the last ones stay out."""
    member = group.members.get(member_id)
    if group.state is State.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_joins < max_size
    if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        return member is not None or len(group.members) < max_size
    return True


def _join_as_new(shard: ShardState, group: ClassicGroup, joiner: Joiner, turn: Turn) -> None:
    instance = joiner.request.group_instance_id
    member_id = f"{joiner.client_id if instance is None else instance}-{shard.new_id()}"
    said = {"group": group.group_id, "state": group.state.value, "member": member_id, "instance": instance}
    if instance is not None and instance in group.static:
        turn.note(What.STATIC_REPLACED, old=group.static[instance], **said)
        static.replace(group, joiner, member_id, turn)
    elif instance is None and joiner.call.version >= 4:
        turn.note(What.ID_GIVEN, **said)
        group.pending[member_id] = turn.now + joiner.request.session_timeout_ms
        turn.wake(session_key(group.group_id, member_id), group.pending[member_id])
        _refuse(joiner, member_id, ErrorCode.MEMBER_ID_REQUIRED, turn)
    else:
        turn.note(What.ADDED if instance is None else What.STATIC_ADDED, **said)
        _add(group, member_id, joiner, turn)


def _add(group: ClassicGroup, member_id: str, joiner: Joiner, turn: Turn) -> None:
    request = joiner.request
    member = Member(
        member_id,
        request.group_instance_id,
        joiner.client_id,
        joiner.client_host,
        joiner.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        joiner.protocols,
        is_new=True,
    )
    initial = group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY
    if initial and (group.generation == 0 or not turn.manners.delays_only_generation_0):
        group.new_member_added = True
    group.add(member, joiner.call)
    turn.wake(session_key(group.group_id, member_id), None)
    if turn.manners.new_members_expire:
        # It does not know its id and cannot beat. A client that gave up and came again would leave members
        # behind for ever, so that a parked first join ends after a while.
        renew(group, member, turn, turn.config.new_member_join_timeout_ms)
    reason = note(
        What.BY_NEW_MEMBER,
        member=member_id,
        instance=request.group_instance_id,
        client_reason=request.reason,
    )
    rebalance_or_complete(group, turn, reason)


def _rejoin(group: ClassicGroup, joiner: Joiner, turn: Turn) -> None:
    request, call = joiner.request, joiner.call
    error = check_member(group, request.member_id, request.group_instance_id, turn, "join-group")
    instance = request.group_instance_id
    if error is None and instance is not None and instance not in group.static:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not None:
        return _refuse(joiner, request.member_id, error, turn)
    member = group.members[request.member_id]
    unchanged = member.protocols == joiner.protocols
    leads = group.leader == member.member_id
    if unchanged and group.state is State.COMPLETING_REBALANCE:
        # It did not get the answer to its join.
        turn.answer(call.to, answers.joined(group, member.member_id, call.version))
    elif unchanged and group.state is State.STABLE and not leads:
        turn.answer(call.to, answers.joined(group, member.member_id, call.version))
    else:
        # Also a leader that has changed nothing: it has seen partitions come or go.
        what = What.BY_LEADER if leads and group.state is State.STABLE else What.BY_CHANGED_MEMBER
        reason = note(what, member=member.member_id, state=group.state.value, client_reason=request.reason)
        static.update(group, member, joiner, turn)
        rebalance_or_complete(group, turn, reason)


def _write_new(shard: ShardState, group: ClassicGroup, call: ParkedJoin, turn: Turn) -> None:
    def failed(error: ErrorCode, turn: Turn) -> None:
        if shard.groups.get(group.group_id) is not group or group.generation != 0:
            return
        gone = error is not ErrorCode.REQUEST_TIMED_OUT  # If it is late it may come yet, and the group stays.
        for member in list(group.members.values()):
            if gone or member.join is call:
                _send_away(group, member, turn.manners.group_errors.get(error, error), turn)
        if gone:
            for member_id in list(group.pending):
                drop(group, member_id, turn)
            turn.wake(("join", group.group_id), None)
            del shard.groups[group.group_id]

    turn.write([new_group_record(group, turn.manners)], failed=failed)


def _send_away(group: ClassicGroup, member: Member, error: ErrorCode, turn: Turn) -> None:
    call = group.take_join(member)
    if call is not None:
        turn.answer(call.to, answers.join_refused("", error, call.version, turn.manners))
    drop(group, member.member_id, turn)


def _refuse(joiner: Joiner, member_id: str, error: ErrorCode, turn: Turn) -> None:
    call = joiner.call
    turn.answer(call.to, answers.join_refused(member_id, error, call.version, turn.manners))
