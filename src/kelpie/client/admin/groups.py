"""State and members of groups, from their coordinators, many in one request.

Each kind of group has an API: classic groups, consumer groups of KIP-848, share groups and groups of the
Streams protocol (the last two: `share_groups`, `streams_groups`). Brokers since 3.8 list the type of a group;
where the type is not known, DescribeGroups is asked first, then the others for groups that are still unknown.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from kelpie.client.admin.asking import Asking, chunks, each, error_of
from kelpie.client.admin.share_groups import describe_share_groups, partitions_of
from kelpie.client.admin.streams_groups import describe_streams_groups
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.observations import GroupState, Member
from kelpie.observations.groups import CLASSIC, CONSUMER, OTHER_KINDS, SHARE, STREAMS
from kelpie.observations.offsets_topic import read_blobs
from kelpie.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.list_groups import ListedGroup
from kelpie.wire.api.share_group_describe import ShareGroupDescribeRequest
from kelpie.wire.api.streams_group_describe import StreamsGroupDescribeRequest
from kelpie.wire.consumer_protocol import PROTOCOL_TYPE

ABSENT = "Dead"
"""The state of a group that does not exist, in the words of DescribeGroups."""
_GROUP_ID = attrgetter("group_id")


async def describe_groups(
    asking: Asking, node: int, groups: Sequence[str], listed: Mapping[str, ListedGroup]
) -> None:
    """Adds one GroupState for each group, or an Unasked row.

    `listed`: what ListGroups said of the groups, where that is known.
    """
    kinds = {group: listed[group].group_type.lower() if group in listed else "" for group in groups}
    source = asking.source(node)
    why = f"{source} did not describe it."
    await _describe_others(asking, node, kinds, listed)
    consumer = [group for group in groups if kinds[group] == CONSUMER]
    classic = [group for group in groups if kinds[group] not in (CONSUMER, *OTHER_KINDS)]
    both = asking.versions[node].speaks(ConsumerGroupDescribeRequest)
    perhaps_consumer: list[str] = []
    size = asking.groups_per_request

    async def ask_classic(part: Sequence[str]) -> None:
        with asking.noting("group", part, source, why):
            response, at = await asking.ask(node, DescribeGroupsRequest(groups=list(part)))
            for group in asking.answered(part, response.groups, _GROUP_ID, source, why):
                if both and not kinds[group.group_id] and _is_unknown(group):
                    perhaps_consumer.append(group.group_id)
                else:
                    asking.seen.states.append(_classic_state(group, node, at, source))

    async def ask_consumer(part: Sequence[str]) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=list(part), include_authorized_operations=False)
        with asking.noting("group", part, source, why):
            response, at = await asking.ask(node, request)
            described = asking.answered(part, response.groups, _GROUP_ID, source, why)
            asking.seen.states += [_consumer_state(group, node, at, source) for group in described]

    await each(chunks(classic, size), ask_classic)
    await each(chunks(consumer + perhaps_consumer, size), ask_consumer)
    await _describe_unlisted(asking, node, perhaps_consumer)


async def _describe_others(
    asking: Asking, node: int, kinds: Mapping[str, str], listed: Mapping[str, ListedGroup]
) -> None:
    """Share groups and groups of the Streams protocol. Early releases list them, and cannot describe them."""
    for kind, request, describe in _OTHERS:
        groups = [group for group, its_kind in kinds.items() if its_kind == kind]
        if asking.versions[node].speaks(request):
            await each(chunks(groups, asking.groups_per_request), partial(describe, asking, node))
        else:
            at, source = asking.clock(), asking.source(node)
            asking.seen.states += [listed_state(listed[group], node, at, source) for group in groups]


_OTHERS = (
    (SHARE, ShareGroupDescribeRequest, describe_share_groups),
    (STREAMS, StreamsGroupDescribeRequest, describe_streams_groups),
)


async def _describe_unlisted(asking: Asking, node: int, groups: Sequence[str]) -> None:
    """Groups that were named, and that no request so far knew, may be of another kind."""
    unknown = {
        state.group
        for state in asking.seen.states
        if state.coordinator == node and state.error is ErrorCode.GROUP_ID_NOT_FOUND
    }.intersection(groups)
    for _, request, describe in _OTHERS:
        if unknown and asking.versions[node].speaks(request):
            await each(chunks(sorted(unknown), asking.groups_per_request), partial(describe, asking, node))
    best: dict[str, GroupState] = {}
    rows = [row for row in asking.seen.states if row.group in unknown and row.coordinator == node]
    for row in rows:
        if row.group not in best or (best[row.group].error and not row.error):
            best[row.group] = row
    left_out = {id(row) for row in rows if row is not best[row.group]}
    asking.seen.states[:] = [row for row in asking.seen.states if id(row) not in left_out]


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
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
        tuple(member.subscribed_topic_names),
        partitions_of(member.assignment),
        epoch=member.member_epoch,
        target=partitions_of(member.target_assignment),
        pattern=member.subscribed_topic_regex or "",
    )
