"""Static members (KIP-345): an instance that comes back takes the place it had, under a new member id.

In a Stable group that costs no rebalance, if the choice of protocol stays: the group is written down with the
new id, and the member gets the current generation. If it leads, then since version 9 it is told to skip the
assignment (KIP-814); before, it is told the old leader's id, so that it does not take itself for the leader.
"""

from dataclasses import dataclass

from kelpie.coordinator import answers
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.group_records import group_record
from kelpie.coordinator.member import Member, ParkedJoin
from kelpie.coordinator.notes import What, note
from kelpie.coordinator.rebalance import maybe_complete, prepare, rebalance_or_complete, renew, session_key
from kelpie.coordinator.state import State
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode
from kelpie.wire.api.join_group import JoinGroupRequest


@dataclass(frozen=True, slots=True)
class Joiner:
    """A JoinGroup, and who sent it."""

    request: JoinGroupRequest
    call: ParkedJoin
    client_id: str
    client_host: str

    @property
    def protocols(self) -> tuple[tuple[str, bytes], ...]:
        return tuple((protocol.name, protocol.metadata) for protocol in self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has none: the session timeout serves for both."""
        return (
            self.request.session_timeout_ms if self.call.version == 0 else self.request.rebalance_timeout_ms
        )


def update(group: ClassicGroup, member: Member, joiner: Joiner, turn: Turn) -> None:
    """A known member joins, with what it now supports. Its call is parked."""
    group.change_protocols(member, joiner.protocols)
    if turn.manners.rejoin_changes_timeouts:
        member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
        member.session_timeout_ms = joiner.request.session_timeout_ms
    before = group.park_join(member, joiner.call)
    if before is not None:
        turn.abandon(before.to)  # Kafka keeps one call a member; the older one is never answered.


def replace(group: ClassicGroup, joiner: Joiner, new_id: str, turn: Turn) -> None:
    instance = joiner.request.group_instance_id
    assert instance is not None
    assert group.state not in (State.EMPTY, State.DEAD)
    old_leader = group.leader
    old = group.members[group.static[instance]]
    kept = (old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
    member = _rename(group, old, new_id, turn)
    renew(group, member, turn)
    update(group, member, joiner, turn)
    said = {"member": new_id, "instance": instance, "client_reason": joiner.request.reason}
    if group.state is State.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id at this moment.
        prepare(group, turn, note(What.BY_CHANGED_STATIC_MEMBER, **said))
    elif group.state is State.PREPARING_REBALANCE:
        maybe_complete(group, turn)
    elif group.select_protocol() != group.protocol:
        rebalance_or_complete(group, turn, note(What.BY_CHANGED_PROTOCOL, **said))
    else:
        turn.note(What.STATIC_KEPT, group=group.group_id, member=new_id, instance=instance)
        _write(group, member, _Before(old.member_id, old_leader, *kept), turn)


@dataclass(frozen=True, slots=True)
class _Before:
    member_id: str
    leader: str | None
    protocols: tuple[tuple[str, bytes], ...]
    rebalance_timeout_ms: int
    session_timeout_ms: int


def _write(group: ClassicGroup, member: Member, before: _Before, turn: Turn) -> None:
    call, generation = member.join, group.generation

    def still_parked() -> bool:
        # Otherwise a rebalance has begun meanwhile, and it takes care of the call.
        same = group.state is State.STABLE and group.generation == generation
        return same and member.join is call and group.members.get(member.member_id) is member

    def written(turn: Turn) -> None:
        if not still_parked():
            return
        assert call is not None
        group.take_join(member)
        leads = group.leader == member.member_id
        if call.version >= 9:
            response = answers.joined(group, member.member_id, call.version, skip_assignment=leads)
        else:
            response = answers.joined(
                group, member.member_id, call.version, leader=before.leader, with_members=False
            )
        turn.answer(call.to, response)

    def failed(error: ErrorCode, turn: Turn) -> None:
        if not still_parked():
            return
        assert call is not None
        group.take_join(member)
        group.change_protocols(member, before.protocols)
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.session_timeout_ms = before.session_timeout_ms
        renew(group, _rename(group, member, before.member_id, turn), turn)
        code = turn.manners.group_errors.get(error, error)
        response = answers.joined(
            group, "", call.version, leader=before.leader, with_members=False, error=code
        )
        turn.answer(call.to, response)

    assignments = {each.member_id: each.assignment for each in group.members.values()}
    turn.write([group_record(group, assignments, turn.manners)], written=written, failed=failed)


def _rename(group: ClassicGroup, old: Member, new_id: str, turn: Turn) -> Member:
    """Whoever still speaks for the old id hears that it is fenced."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    join = group.take_join(old)
    if join is not None:
        turn.answer(join.to, answers.join_refused(old.member_id, fenced, join.version, turn.manners))
    sync, old.sync = old.sync, None
    if sync is not None:
        turn.answer(sync.to, answers.sync_refused(fenced))
    turn.wake(session_key(group.group_id, old.member_id), None)
    return group.rename_static(old, new_id)
