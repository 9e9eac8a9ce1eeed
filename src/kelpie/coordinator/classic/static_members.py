"""Static members (KIP-345): an instance that comes back takes the place it had, under a new member id.

In a Stable group that costs no rebalance, if the choice of protocol stays: the group is written down with the
new id, and the member gets the current generation. If it leads, the answer of
version 9 and later says to skip the assignment (KIP-814). Older answers name the old leader's id, so that it
does not take itself for the leader.
"""

from dataclasses import dataclass

from kelpie.coordinator.classic import responses
from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.member import ClassicMember, ParkedJoin
from kelpie.coordinator.classic.rebalance import maybe_complete, prepare, rebalance_or_complete, refuse_parked
from kelpie.coordinator.classic.records import group_record
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.notes import NoteKind, note
from kelpie.errors import ErrorCode
from kelpie.wire.api.join_group import JoinGroupRequest


@dataclass(frozen=True, slots=True)
class Joiner:
    """A JoinGroup and its sender."""

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


def update(group: ClassicGroup, member: ClassicMember, joiner: Joiner, event: ShardEvent) -> None:
    """A known member joins, with what it now supports. Its call is parked."""
    group.change_protocols(member, joiner.protocols)
    if event.behaviour.rejoin_changes_timeouts:
        member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
        member.session_timeout_ms = joiner.request.session_timeout_ms
    before = group.park_join(member, joiner.call)
    if before is not None:
        event.abandon(before.to)  # Kafka keeps one call a member; the older one is never answered.


def replace(group: ClassicGroup, joiner: Joiner, new_id: str, event: ShardEvent) -> None:
    instance = joiner.request.group_instance_id
    assert instance is not None
    assert group.state not in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)
    old_leader = group.leader
    old = group.members[group.static[instance]]
    member = _rename(group, old, new_id, event)
    group.renew_session(member, event)
    update(group, member, joiner, event)
    values = {"member": new_id, "instance": instance, "client_reason": joiner.request.reason}
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id at this moment.
        prepare(group, event, note(NoteKind.BY_CHANGED_STATIC_MEMBER, **values))
    elif group.state is ClassicGroupState.PREPARING_REBALANCE:
        maybe_complete(group, event)
    elif group.select_protocol() != group.protocol:
        rebalance_or_complete(group, event, note(NoteKind.BY_CHANGED_PROTOCOL, **values))
    else:
        event.note(NoteKind.STATIC_KEPT, group=group.group_id, member=new_id, instance=instance)
        _write(group, member, old, old_leader, event)


def _write(
    group: ClassicGroup, member: ClassicMember, old: ClassicMember, old_leader: str | None, event: ShardEvent
) -> None:
    call, generation = member.join, group.generation

    def still_parked() -> bool:
        # Otherwise a rebalance has begun meanwhile, and it takes care of the call.
        same = group.state is ClassicGroupState.STABLE and group.generation == generation
        return same and member.join is call and group.members.get(member.member_id) is member

    def written(event: ShardEvent) -> None:
        if not still_parked():
            return
        assert call is not None
        group.take_join(member)
        leads = group.leader == member.member_id
        if call.version >= 9:
            response = responses.joined(group, member.member_id, call.version, skip_assignment=leads)
        else:
            response = responses.joined(
                group, member.member_id, call.version, leader=old_leader, with_members=False
            )
        event.answer(call.to, response)

    def failed(error: ErrorCode, event: ShardEvent) -> None:
        if not still_parked():
            return
        assert call is not None
        group.take_join(member)
        group.change_protocols(member, old.protocols)
        member.rebalance_timeout_ms = old.rebalance_timeout_ms
        member.session_timeout_ms = old.session_timeout_ms
        group.renew_session(_rename(group, member, old.member_id, event), event)
        code = event.behaviour.group_errors.get(error, error)
        response = responses.joined(
            group, "", call.version, leader=old_leader, with_members=False, error=code
        )
        event.answer(call.to, response)

    assignments = {each.member_id: each.assignment for each in group.members.values()}
    event.write([group_record(group, assignments, event.behaviour)], written=written, failed=failed)


def _rename(group: ClassicGroup, old: ClassicMember, new_id: str, event: ShardEvent) -> ClassicMember:
    """Parked calls of the old member id are answered FENCED_INSTANCE_ID."""
    refuse_parked(group, old, ErrorCode.FENCED_INSTANCE_ID, event)
    event.wake(group.session_key(old.member_id), None)
    return group.rename_static(old, new_id)
