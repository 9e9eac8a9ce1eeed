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
join is answered MEMBER_ID_REQUIRED since version 4 (KIP-394). Static members
(KIP-345) are in static_members.py.
"""

from kelpie.coordinator.classic import responses, static_members
from kelpie.coordinator.classic.group import ClassicGroup, create_group, find_group
from kelpie.coordinator.classic.member import ClassicMember, ParkedJoin
from kelpie.coordinator.classic.rebalance import drop, expel, maybe_complete, rebalance_or_complete
from kelpie.coordinator.classic.records import new_group_record
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.classic.static_members import Joiner
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import NoteKind, note
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode


def join(shard: ShardState, event: ShardEvent, joiner: Joiner) -> None:
    request = joiner.request
    if not request.group_id:
        return _refuse(joiner, request.member_id, ErrorCode.INVALID_GROUP_ID, event)
    shortest, longest = event.config.min_session_timeout_ms, event.config.max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return _refuse(joiner, request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT, event)
    group = find_group(shard, request.group_id)
    if group is not None:
        return _join(shard, group, joiner, event)
    if request.member_id:
        return _refuse(joiner, request.member_id, ErrorCode.UNKNOWN_MEMBER_ID, event)
    group = create_group(shard, request.group_id, event.now)
    _join(shard, group, joiner, event)
    if event.behaviour.writes_new_groups and not event.writes:
        _write_new(shard, group, joiner.call, event)


def _join(shard: ShardState, group: ClassicGroup, joiner: Joiner, event: ShardEvent) -> None:
    member_id = joiner.request.member_id
    if not _has_room(group, member_id, event.config.max_size):
        if member_id:
            drop(group, member_id, event)
        _refuse(joiner, "", ErrorCode.GROUP_MAX_SIZE_REACHED, event)
    elif group.state is ClassicGroupState.DEAD:
        _refuse(joiner, member_id, event.behaviour.dead_error, event)
    elif not group.supports(joiner.request.protocol_type, [name for name, _ in joiner.protocols]):
        _refuse(joiner, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, event)
    elif not member_id:
        _join_as_new(shard, group, joiner, event)
    elif member_id in group.pending:
        if joiner.request.group_instance_id is not None:
            # Only dynamic members are given ids to come back with. Kafka fails here with an exception.
            _refuse(joiner, "", ErrorCode.UNKNOWN_SERVER_ERROR, event)
        else:
            event.note(
                NoteKind.PENDING_ADDED, group=group.group_id, state=group.state.value, member=member_id
            )
            _add(group, member_id, joiner, event)
    else:
        _rejoin(group, joiner, event)
    if event.behaviour.refusal_may_end_rebalance:
        maybe_complete(group, event)


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """group.max.size (KIP-389). During a rebalance only members that have joined count."""
    member = group.members.get(member_id)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_joins < max_size
    if group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
        return member is not None or len(group.members) < max_size
    return True


def _join_as_new(shard: ShardState, group: ClassicGroup, joiner: Joiner, event: ShardEvent) -> None:
    instance = joiner.request.group_instance_id
    member_id = f"{joiner.client_id if instance is None else instance}-{shard.new_id()}"
    values = {"group": group.group_id, "state": group.state.value, "member": member_id, "instance": instance}
    if instance is not None and instance in group.static:
        event.note(NoteKind.STATIC_REPLACED, old=group.static[instance], **values)
        static_members.replace(group, joiner, member_id, event)
    elif instance is None and joiner.call.version >= 4:
        event.note(NoteKind.ID_GIVEN, **values)
        group.pending[member_id] = event.now + joiner.request.session_timeout_ms
        event.wake(group.session_key(member_id), group.pending[member_id])
        _refuse(joiner, member_id, ErrorCode.MEMBER_ID_REQUIRED, event)
    else:
        event.note(NoteKind.ADDED if instance is None else NoteKind.STATIC_ADDED, **values)
        _add(group, member_id, joiner, event)


def _add(group: ClassicGroup, member_id: str, joiner: Joiner, event: ShardEvent) -> None:
    request = joiner.request
    member = ClassicMember(
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
    initial = (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.previous_state is ClassicGroupState.EMPTY
    )
    if initial and (group.generation == 0 or not event.behaviour.delays_only_generation_0):
        group.new_member_added = True
    group.add(member, joiner.call)
    event.wake(group.session_key(member_id), None)
    if event.behaviour.new_members_expire:
        # It does not know its id and cannot send heartbeats. A client that gives up and joins again would
        # leave members behind for ever, so a parked first join ends after a while.
        group.renew_session(member, event, event.config.new_member_join_timeout_ms)
    reason = note(
        NoteKind.BY_NEW_MEMBER,
        member=member_id,
        instance=request.group_instance_id,
        client_reason=request.reason,
    )
    rebalance_or_complete(group, event, reason)


def _rejoin(group: ClassicGroup, joiner: Joiner, event: ShardEvent) -> None:
    request, call = joiner.request, joiner.call
    error = group.check_member(request.member_id, request.group_instance_id, event, "join-group")
    instance = request.group_instance_id
    if error is None and instance is not None and instance not in group.static:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not None:
        return _refuse(joiner, request.member_id, error, event)
    member = group.members[request.member_id]
    unchanged = member.protocols == joiner.protocols
    leads = group.leader == member.member_id
    if unchanged and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # It did not get the answer to its join.
        event.answer(call.to, responses.joined(group, member.member_id, call.version))
    elif unchanged and group.state is ClassicGroupState.STABLE and not leads:
        event.answer(call.to, responses.joined(group, member.member_id, call.version))
    else:
        # Also a leader that has changed nothing: it has seen partitions come or go.
        what = (
            NoteKind.BY_LEADER
            if leads and group.state is ClassicGroupState.STABLE
            else NoteKind.BY_CHANGED_MEMBER
        )
        reason = note(what, member=member.member_id, state=group.state.value, client_reason=request.reason)
        static_members.update(group, member, joiner, event)
        rebalance_or_complete(group, event, reason)


def _write_new(shard: ShardState, group: ClassicGroup, call: ParkedJoin, event: ShardEvent) -> None:
    def failed(error: ErrorCode, event: ShardEvent) -> None:
        if shard.groups.get(group.group_id) is not group or group.generation != 0:
            return
        gone = error is not ErrorCode.REQUEST_TIMED_OUT  # A late write may still succeed.
        for member in list(group.members.values()):
            if gone or member.join is call:
                expel(group, member, event.behaviour.group_errors.get(error, error), event)
        if gone:
            for member_id in list(group.pending):
                drop(group, member_id, event)
            event.wake(("join", group.group_id), None)
            del shard.groups[group.group_id]

    event.write([new_group_record(group, event.behaviour)], failed=failed)


def _refuse(joiner: Joiner, member_id: str, error: ErrorCode, event: ShardEvent) -> None:
    call = joiner.call
    event.answer(call.to, responses.join_refused(member_id, error, call.version, event.behaviour))
