"""State, members and positions of share groups (Kafka 4.1 and later), from their coordinators.

A share group commits no offsets. Its coordinator says for each partition up to where all records are done,
and since 4.2 how many are left. Until a member has acquired the first record there is no such position.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from kelpie.client.admin.asking import Asking, error_of
from kelpie.model.names import TopicPartition
from kelpie.observations import CoordinatorAnswer, GroupState, Member
from kelpie.observations.groups import SHARE, SharePosition
from kelpie.wire.api.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsRequestGroup,
)
from kelpie.wire.api.share_group_describe import ShareGroupDescribeRequest
from kelpie.wire.structs import DescribedAssignment

_POSITIONS = "DescribeShareGroupOffsets"


async def describe_share_groups(asking: Asking, node: int, groups: Sequence[str]) -> None:
    """Adds one GroupState for each group, or an Unasked row; errors of positions become answers."""
    source = asking.source(node)
    why = f"{source} did not describe it."
    with asking.noting("group", groups, source, why):
        positions = await _positions(asking, node, groups)
        request = ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
        response, at = await asking.ask(node, request)
        asking.seen.states += [
            GroupState(
                group.group_id,
                group.group_state,
                SHARE,
                SHARE,
                group.assignor_name,
                group.group_epoch,
                tuple(map(_member, group.members)),
                node,
                error_of(group.error_code),
                at,
                source,
                positions.get(group.group_id, ()),
            )
            for group in asking.answered(groups, response.groups, attrgetter("group_id"), source, why)
        ]


async def _positions(
    asking: Asking, node: int, groups: Sequence[str]
) -> dict[str, tuple[SharePosition, ...]]:
    if not asking.versions[node].speaks(DescribeShareGroupOffsetsRequest):
        return {}
    wanted = [ShareOffsetsRequestGroup(group_id=group, topics=None) for group in groups]
    response, at = await asking.ask(node, DescribeShareGroupOffsetsRequest(groups=wanted))
    positions = {}
    for group in response.groups:
        if group.error_code:
            error = error_of(group.error_code)
            asking.seen.answers.append(
                CoordinatorAnswer(group.group_id, _POSITIONS, error, node, at=at, source=asking.source(node))
            )
        positions[group.group_id] = tuple(
            SharePosition(
                topic.topic_name,
                row.partition_index,
                row.start_offset,
                row.lag,
                row.leader_epoch,
                row.error_code,
            )
            for topic in group.topics
            for row in topic.partitions
        )
    return positions


def _member(member: Any) -> Member:
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        subscribed=tuple(member.subscribed_topic_names),
        assigned=partitions_of(member.assignment),
        epoch=member.member_epoch,
    )


def partitions_of(assignment: DescribedAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
