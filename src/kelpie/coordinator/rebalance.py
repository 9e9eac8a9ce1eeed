"""How a rebalance begins, waits, and ends in a new generation. Shared by all events that touch membership.

Follows prepareRebalance, completeClassicGroupJoin and expirePendingSync of Kafka 4's GroupMetadataManager.
A group becomes Stable in syncing.py, and Dead with its shard; all other states begin here.

Timers: ("session", group, member) for members and for ids given out; ("join", group) ends the wait for joins;
("sync", group) ends the wait for syncs. The deadlines are in the group: a timer that fires before its
deadline is void.
"""

from collections.abc import Hashable

from kelpie.coordinator import answers
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.group_records import group_record, group_tombstone
from kelpie.coordinator.member import Member
from kelpie.coordinator.notes import Note, What, note
from kelpie.coordinator.state import MAY_FOLLOW, State
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode


def session_key(group_id: str, member_id: str) -> Hashable:
    return ("session", group_id, member_id)


def renew(group: ClassicGroup, member: Member, turn: Turn, timeout_ms: int | None = None) -> None:
    """The member was heard of: its session begins anew."""
    member.deadline = turn.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    turn.wake(session_key(group.group_id, member.member_id), member.deadline)


def drop(group: ClassicGroup, member_id: str, turn: Turn) -> None:
    """Removes a member or an id given out; parked calls must be answered before, except a sync.

    Kafka forgets the parked SyncGroup of a member that leaves or is removed: it is never answered.
    """
    member = group.members.get(member_id)
    if member is not None and member.sync is not None:
        turn.abandon(member.sync.to)
        member.sync = None
    group.remove(member_id)
    turn.wake(session_key(group.group_id, member_id), None)


def rebalance_or_complete(group: ClassicGroup, turn: Turn, reason: Note) -> None:
    """After a change of membership."""
    if group.state in MAY_FOLLOW[State.PREPARING_REBALANCE]:
        prepare(group, turn, reason)
    else:
        maybe_complete(group, turn)


def prepare(group: ClassicGroup, turn: Turn, reason: Note) -> None:
    """Begins a rebalance."""
    if group.state is State.COMPLETING_REBALANCE:
        reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, turn)
    end_wait_for_syncs(group, turn)
    initial = group.state is State.EMPTY and turn.manners.initial_delay
    group.transition(State.PREPARING_REBALANCE, turn.now)
    turn.note(
        What.REBALANCE_BEGAN,
        group=group.group_id,
        state=group.state.value,
        generation=group.generation,
        reason=reason,
    )
    if initial:
        delay = turn.config.initial_rebalance_delay_ms
        _delay(group, delay, max(group.rebalance_timeout_ms - delay, 0), turn)
    elif group.all_have_joined:
        complete(group, turn)
    else:
        _wait_for_joins(group, group.rebalance_timeout_ms, turn)


def maybe_complete(group: ClassicGroup, turn: Turn) -> None:
    """Ends the rebalance if everyone is here. The first one of a group waits for its delay in any case."""
    if group.state is not State.PREPARING_REBALANCE or group.initial_delay is not None:
        return
    if group.all_have_joined:
        complete(group, turn)


def complete_after_expiry(group: ClassicGroup, turn: Turn) -> None:
    """As maybe_complete, but Kafka 4 looks at nothing but the members when a session has ended."""
    may_end = group.initial_delay is None or turn.manners.expiry_ends_initial_delay
    if may_end and group.state is State.PREPARING_REBALANCE and group.all_have_joined:
        complete(group, turn)


def join_timer(group: ClassicGroup, turn: Turn) -> None:
    """The wait for joins is over, or a part of the initial delay is."""
    if group.join_deadline is None or turn.now < group.join_deadline:
        return
    assert group.state is State.PREPARING_REBALANCE
    if group.initial_delay is not None:
        delay, remaining = group.initial_delay
        if group.new_member_added and remaining != 0:
            group.new_member_added = False
            _delay(
                group,
                min(turn.config.initial_rebalance_delay_ms, remaining),
                max(remaining - delay, 0),
                turn,
            )
            return
    complete(group, turn)


def sync_timer(group: ClassicGroup, turn: Turn) -> None:
    """Members that have joined and not synced in time are removed, static ones too (KAFKA-12890)."""
    if group.sync_deadline is None or turn.now < group.sync_deadline:
        return
    assert group.state in (State.COMPLETING_REBALANCE, State.STABLE)
    group.sync_deadline = None
    if not group.pending_sync:
        return
    unsynced = sorted(group.pending_sync)
    turn.note(What.UNSYNCED_REMOVED, group=group.group_id, members=unsynced)
    for member_id in unsynced:
        drop(group, member_id, turn)
    prepare(group, turn, note(What.BY_MISSING_SYNC, members=unsynced))


def complete(group: ClassicGroup, turn: Turn) -> None:
    """Ends the wait for joins: the next generation is of those who are here, and of static members."""
    _stop_waiting_for_joins(group, turn)
    late = [m.member_id for m in group.members.values() if m.join is None and not m.is_static]
    if late:
        turn.note(What.LATE_REMOVED, group=group.group_id, members=late)
    for member_id in late:
        drop(group, member_id, turn)
    if not group.members:
        _become_empty(group, turn)
    elif not _elect_leader(group, turn):
        # Only static members are left and none is here. Wait on, until their sessions end.
        turn.note(What.NOBODY_REJOINED, group=group.group_id)
        _wait_for_joins(group, group.rebalance_timeout_ms, turn)
    else:
        _begin_generation(group, turn)


def _elect_leader(group: ClassicGroup, turn: Turn) -> bool:
    before = group.leader
    elected = group.elect_joined_leader()
    if before is not None and (not elected or group.leader != before):
        old = group.members[before]
        turn.note(
            What.LEADER_REPLACED if elected else What.NO_LEADER_JOINED,
            group=group.group_id,
            old=before,
            instance=old.instance_id,
            member=group.leader,
        )
    return elected


def _begin_generation(group: ClassicGroup, turn: Turn) -> None:
    group.next_generation(turn.now)
    turn.note(
        What.GENERATION_BEGAN,
        group=group.group_id,
        generation=group.generation,
        count=len(group.members),
    )
    for member in group.members.values():
        call = group.take_join(member)
        if call is not None:
            turn.answer(call.to, answers.joined(group, member.member_id, call.version))
        renew(group, member, turn)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    if turn.manners.pending_syncs_expire:
        group.sync_deadline = turn.now + group.rebalance_timeout_ms
        turn.wake(("sync", group.group_id), group.sync_deadline)


def _become_empty(group: ClassicGroup, turn: Turn) -> None:
    if turn.manners.has_empty_state:
        group.next_generation(turn.now)
    turn.note(What.EMPTIED, group=group.group_id, generation=group.generation)
    if turn.manners.has_empty_state:
        # If this cannot be written, the next coordinator finds the last generation, and its members time out.
        turn.write([group_record(group, {}, turn.manners)])
    else:
        group.transition(State.DEAD, turn.now)
        turn.write([group_tombstone(group.group_id)])


def reset_assignments(group: ClassicGroup, error: ErrorCode, turn: Turn) -> None:
    """Nobody has an assignment any more; parked syncs hear why."""
    assert group.state is State.COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = b""
        answer_sync(group, member, error, turn)


def answer_sync(group: ClassicGroup, member: Member, error: ErrorCode, turn: Turn) -> None:
    call, member.sync = member.sync, None
    if call is not None:
        refused = error is not ErrorCode.NONE
        response = answers.sync_refused(error) if refused else answers.synced(group, member.assignment)
        turn.answer(call.to, response)
        # Its session may have ended, without effect, while the call was parked.
        renew(group, member, turn)


def end_wait_for_syncs(group: ClassicGroup, turn: Turn) -> None:
    group.pending_sync.clear()
    group.sync_deadline = None
    turn.wake(("sync", group.group_id), None)


def _delay(group: ClassicGroup, delay_ms: int, remaining_ms: int, turn: Turn) -> None:
    group.initial_delay = (delay_ms, remaining_ms)
    _wait_for_joins(group, delay_ms, turn)


def _wait_for_joins(group: ClassicGroup, timeout_ms: int, turn: Turn) -> None:
    group.join_deadline = turn.now + timeout_ms
    turn.wake(("join", group.group_id), group.join_deadline)


def _stop_waiting_for_joins(group: ClassicGroup, turn: Turn) -> None:
    group.join_deadline = group.initial_delay = None
    turn.wake(("join", group.group_id), None)
