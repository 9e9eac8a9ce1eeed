"""Groups as records of `__consumer_offsets`, and back (GroupCoordinatorRecordHelpers of Kafka 4)."""

from collections.abc import Mapping

from kelpie.coordinator.classic.group import ClassicGroup
from kelpie.coordinator.classic.member import ClassicMember
from kelpie.coordinator.classic.state import ClassicGroupState
from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.wire.offsets_topic import encode_key, encode_value
from kelpie.wire.offsets_topic.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata


def group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes], behaviour: GroupBehaviour
) -> CoordinatorRecord:
    """The group as it will be known to the next coordinator: with the protocol that was selected, only."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol or ""),
            assignment=assignments[member.member_id],
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=-1 if group.since is None else group.since,
        members=members,
    )
    key = encode_key(GroupMetadataKey(group=group.group_id))
    return CoordinatorRecord(key, encode_value(value, behaviour.group_value_version))


def new_group_record(group: ClassicGroup, behaviour: GroupBehaviour) -> CoordinatorRecord:
    """What Kafka 4 writes when a join creates a group: nothing but its name is known yet."""
    return group_record(ClassicGroup(group.group_id, ClassicGroupState.EMPTY, group.since), {}, behaviour)


def group_from(group_id: str, value: GroupMetadataValue, behaviour: GroupBehaviour) -> ClassicGroup:
    state = (
        ClassicGroupState.STABLE
        if value.members or not behaviour.has_empty_state
        else ClassicGroupState.EMPTY
    )
    since = None if value.current_state_timestamp == -1 else value.current_state_timestamp
    group = ClassicGroup(group_id, state, since)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.leader = value.leader
    for each in value.members:
        member = ClassicMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout,
            each.session_timeout,
            value.protocol_type,
            ((value.protocol or "", each.subscription),),
            each.assignment,
        )
        group.add(member)
    group.subscribed = group.subscriptions()
    return group
