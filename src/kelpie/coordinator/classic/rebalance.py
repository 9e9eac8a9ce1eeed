"""How a rebalance begins, waits, and ends in a new generation. Shared by all events that touch membership.

Follows prepareRebalance, completeClassicGroupJoin and expirePendingSync of Kafka 4's GroupMetadataManager.
A group becomes Stable in sync.py, and Dead with its shard; all other states begin here.

Timers: ("session", group, member) for members and for ids given out; ("join", group) ends the wait for joins;
("sync", group) ends the wait for syncs. The deadlines are in the group: a timer that fires before its
deadline is void.
"""

from kelpie.coordinator.classic import responses
from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.member import ClassicMember
from kelpie.coordinator.classic.records import group_record
from kelpie.coordinator.classic.state import MAY_FOLLOW, ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import Note, NoteKind, note
from kelpie.errors import ErrorCode


def drop(group: ClassicGroup, member_id: str, event: ShardEvent) -> None:
    """Removes a member or an id given out; parked calls must be answered before, except a sync.

    Kafka forgets the parked SyncGroup of a member that leaves or is removed: it is never answered.
    """
    member = group.members.get(member_id)
    if member is not None and member.sync is not None:
        event.abandon(member.sync.to)
        member.sync = None
    group.remove(member_id)
    event.wake(group.session_key(member_id), None)


def expel(group: ClassicGroup, member: ClassicMember, error: ErrorCode, event: ShardEvent) -> None:
    """Removes a member; its parked JoinGroup is answered with the error."""
    call = group.take_join(member)
    if call is not None:
        event.answer(call.to, responses.join_refused("", error, call.version, event.behaviour))
    drop(group, member.member_id, event)


def refuse_parked(group: ClassicGroup, member: ClassicMember, error: ErrorCode, event: ShardEvent) -> None:
    """Answers the parked JoinGroup and SyncGroup of a member with the error."""
    join = group.take_join(member)
    if join is not None:
        event.answer(join.to, responses.join_refused(member.member_id, error, join.version, event.behaviour))
    sync, member.sync = member.sync, None
    if sync is not None:
        event.answer(sync.to, responses.sync_refused(error))


def rebalance_or_complete(group: ClassicGroup, event: ShardEvent, reason: Note) -> None:
    """After a change of membership."""
    if group.state in MAY_FOLLOW[ClassicGroupState.PREPARING_REBALANCE]:
        prepare(group, event, reason)
    else:
        maybe_complete(group, event)


def prepare(group: ClassicGroup, event: ShardEvent, reason: Note) -> None:
    """Begins a rebalance."""
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, event)
    end_wait_for_syncs(group, event)
    initial = group.state is ClassicGroupState.EMPTY and event.behaviour.initial_delay
    group.transition(ClassicGroupState.PREPARING_REBALANCE, event.now)
    event.note(
        NoteKind.REBALANCE_BEGAN,
        group=group.group_id,
        state=group.state.value,
        generation=group.generation,
        reason=reason,
    )
    if initial:
        delay = event.config.initial_rebalance_delay_ms
        _delay(group, delay, max(group.rebalance_timeout_ms - delay, 0), event)
    elif group.all_have_joined:
        complete(group, event)
    else:
        _wait_for_joins(group, group.rebalance_timeout_ms, event)


def maybe_complete(group: ClassicGroup, event: ShardEvent) -> None:
    """Ends the rebalance if all have joined. The first one of a group waits for its delay in any case."""
    if group.state is not ClassicGroupState.PREPARING_REBALANCE or group.initial_delay is not None:
        return
    if group.all_have_joined:
        complete(group, event)


def complete_after_expiry(group: ClassicGroup, event: ShardEvent) -> None:
    """As maybe_complete, but when a session has ended Kafka 4 checks the members only."""
    may_end = group.initial_delay is None or event.behaviour.expiry_ends_initial_delay
    if may_end and group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_have_joined:
        complete(group, event)


def join_timer(group: ClassicGroup, event: ShardEvent) -> None:
    """The wait for joins is over, or a part of the initial delay is."""
    if group.join_deadline is None or event.now < group.join_deadline:
        return
    assert group.state is ClassicGroupState.PREPARING_REBALANCE
    if group.initial_delay is not None:
        delay, remaining = group.initial_delay
        if group.new_member_added and remaining != 0:
            group.new_member_added = False
            _delay(
                group,
                min(event.config.initial_rebalance_delay_ms, remaining),
                max(remaining - delay, 0),
                event,
            )
            return
    complete(group, event)


def sync_timer(group: ClassicGroup, event: ShardEvent) -> None:
    """Members that have joined and not synced in time are removed, static ones too (KAFKA-12890)."""
    if group.sync_deadline is None or event.now < group.sync_deadline:
        return
    assert group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE)
    group.sync_deadline = None
    if not group.pending_sync:
        return
    unsynced = sorted(group.pending_sync)
    event.note(NoteKind.UNSYNCED_REMOVED, group=group.group_id, members=unsynced)
    for member_id in unsynced:
        drop(group, member_id, event)
    prepare(group, event, note(NoteKind.BY_MISSING_SYNC, members=unsynced))


def complete(group: ClassicGroup, event: ShardEvent) -> None:
    """Ends the wait for joins: the next generation has the members that rejoined, and the static ones."""
    _stop_waiting_for_joins(group, event)
    late = [m.member_id for m in group.members.values() if m.join is None and not m.is_static]
    if late:
        event.note(NoteKind.LATE_REMOVED, group=group.group_id, members=late)
    for member_id in late:
        drop(group, member_id, event)
    if not group.members:
        _become_empty(group, event)
    elif not _elect_leader(group, event):
        # Only static members are left, and none has rejoined. Wait until their sessions end.
        event.note(NoteKind.NO_MEMBER_REJOINED, group=group.group_id)
        _wait_for_joins(group, group.rebalance_timeout_ms, event)
    else:
        _begin_generation(group, event)


def _elect_leader(group: ClassicGroup, event: ShardEvent) -> bool:
    before = group.leader
    elected = group.elect_joined_leader()
    if before is not None and (not elected or group.leader != before):
        old = group.members[before]
        event.note(
            NoteKind.LEADER_REPLACED if elected else NoteKind.NO_LEADER_JOINED,
            group=group.group_id,
            old=before,
            instance=old.instance_id,
            member=group.leader,
        )
    return elected


def _begin_generation(group: ClassicGroup, event: ShardEvent) -> None:
    group.next_generation(event.now)
    event.note(
        NoteKind.GENERATION_BEGAN,
        group=group.group_id,
        generation=group.generation,
        count=len(group.members),
    )
    for member in group.members.values():
        call = group.take_join(member)
        if call is not None:
            event.answer(call.to, responses.joined(group, member.member_id, call.version))
        group.renew_session(member, event)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    if event.behaviour.pending_syncs_expire:
        group.sync_deadline = event.now + group.rebalance_timeout_ms
        event.wake(("sync", group.group_id), group.sync_deadline)


def _become_empty(group: ClassicGroup, event: ShardEvent) -> None:
    if event.behaviour.has_empty_state:
        group.next_generation(event.now)
    event.note(NoteKind.EMPTIED, group=group.group_id, generation=group.generation)
    if event.behaviour.has_empty_state:
        # If this cannot be written, the next coordinator finds the last generation, and its members time out.
        event.write([group_record(group, {}, event.behaviour)])
    else:
        group.transition(ClassicGroupState.DEAD, event.now)
        event.write([group.tombstone()])


def reset_assignments(group: ClassicGroup, error: ErrorCode, event: ShardEvent) -> None:
    """Takes all assignments away, and answers parked syncs with the error."""
    assert group.state is ClassicGroupState.COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = b""
        answer_sync(group, member, error, event)


def answer_sync(group: ClassicGroup, member: ClassicMember, error: ErrorCode, event: ShardEvent) -> None:
    call, member.sync = member.sync, None
    if call is not None:
        refused = error is not ErrorCode.NONE
        response = responses.sync_refused(error) if refused else responses.synced(group, member.assignment)
        event.answer(call.to, response)
        # Its session may have ended, without effect, while the call was parked.
        group.renew_session(member, event)


def end_wait_for_syncs(group: ClassicGroup, event: ShardEvent) -> None:
    group.pending_sync.clear()
    group.sync_deadline = None
    event.wake(("sync", group.group_id), None)


def _delay(group: ClassicGroup, delay_ms: int, remaining_ms: int, event: ShardEvent) -> None:
    group.initial_delay = (delay_ms, remaining_ms)
    _wait_for_joins(group, delay_ms, event)


def _wait_for_joins(group: ClassicGroup, timeout_ms: int, event: ShardEvent) -> None:
    group.join_deadline = event.now + timeout_ms
    event.wake(("join", group.group_id), group.join_deadline)


def _stop_waiting_for_joins(group: ClassicGroup, event: ShardEvent) -> None:
    group.join_deadline = group.initial_delay = None
    event.wake(("join", group.group_id), None)
