"""State and members of groups, from their coordinators, many in one request.

Classic groups and consumer groups of KIP-848 have an API each. Brokers since 3.8 list the type of a group;
where the type is not known, DescribeGroups is asked first, then ConsumerGroupDescribe for unknown groups.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kelpie.client.admin.asking import Asking, chunks, each, error_of
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.observations import GroupState, Member
from kelpie.observations.groups import CLASSIC, CONSUMER, OTHER_KINDS
from kelpie.observations.offsets_topic import read_blobs
from kelpie.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.list_groups import ListedGroup
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE

ABSENT = "Dead"
"""The state of a group that does not exist, in the words of DescribeGroups."""
"""Groups of these types are listed; Kelpie does not describe them."""


async def describe_groups(
    asking: Asking, node: int, groups: Sequence[str], listed: Mapping[str, ListedGroup]
) -> None:
    """Adds one GroupState for each group, or an Unasked row.

    `listed`: what ListGroups said of the groups, where that is known.
    """
    kinds = {group: listed[group].group_type.lower() if group in listed else "" for group in groups}
    others = [group for group in groups if kinds[group] in OTHER_KINDS]
    at, source = asking.clock(), asking.source(node)
    why = f"{source} did not describe it."
    asking.seen.states += [listed_state(listed[group], node, at, source) for group in others]
    consumer = [group for group in groups if kinds[group] == CONSUMER]
    classic = [group for group in groups if kinds[group] not in (CONSUMER, *OTHER_KINDS)]
    both = asking.versions[node].speaks(ConsumerGroupDescribeRequest)
    perhaps_consumer: list[str] = []
    size = asking.groups_per_request

    async def ask_classic(part: Sequence[str]) -> None:
        with asking.noting("group", part, source, why):
            response, at = await asking.ask(node, DescribeGroupsRequest(groups=list(part)))
            for group in response.groups:
                if both and not kinds[group.group_id] and _is_unknown(group):
                    perhaps_consumer.append(group.group_id)
                else:
                    asking.seen.states.append(_classic_state(group, node, at, source))

    async def ask_consumer(part: Sequence[str]) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=list(part), include_authorized_operations=False)
        with asking.noting("group", part, source, why):
            response, at = await asking.ask(node, request)
            asking.seen.states += [_consumer_state(group, node, at, source) for group in response.groups]

    await each(chunks(classic, size), ask_classic)
    await each(chunks(consumer + perhaps_consumer, size), ask_consumer)


def _is_unknown(group: Any) -> bool:
    unknown = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    return unknown or (not group.error_code and group.group_state == ABSENT)


def listed_state(group: ListedGroup, node: int, at: Instant, source: str) -> GroupState:
    """A group as ListGroups tells of it: without members, and before 2.6 without its state."""
    return GroupState(
        group.group_id,
        group.group_state,
        group.group_type.lower(),
        group.protocol_type,
        coordinator=node,
        at=at,
        source=source,
    )


def _classic_state(group: Any, node: int, at: Instant, source: str) -> GroupState:
    speaks = group.protocol_type == PROTOCOL_TYPE
    members = tuple(_classic_member(member, speaks) for member in group.members) if group.members else ()
    return GroupState(
        group.group_id,
        group.group_state,
        CLASSIC,
        group.protocol_type,
        group.protocol_data,
        -1,
        members,
        node,
        error_of(group.error_code),
        at,
        source,
    )


def _classic_member(member: Any, speaks: bool) -> Member:
    """Subscription and assignment are bytes, which only groups of consumers fill in the same way."""
    blobs = read_blobs(member.member_metadata, member.member_assignment) if speaks else (None, None)
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.group_instance_id,
        *blobs,
    )


def _consumer_state(group: Any, node: int, at: Instant, source: str) -> GroupState:
    error = error_of(group.error_code)
    return GroupState(
        group.group_id,
        # A group that the coordinator does not know has no state; the classic API calls that Dead.
        group.group_state or (ABSENT if error is ErrorCode.GROUP_ID_NOT_FOUND else ""),
        CONSUMER,
        PROTOCOL_TYPE,
        group.assignor_name,
        group.group_epoch,
        tuple(map(_consumer_member, group.members)),
        node,
        error,
        at,
        source,
    )


def _consumer_member(member: Any) -> Member:
    assigned = tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    )
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
        tuple(member.subscribed_topic_names),
        assigned,
        epoch=member.member_epoch,
    )
