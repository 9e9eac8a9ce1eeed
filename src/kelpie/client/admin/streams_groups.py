"""State and members of groups of the Streams protocol (Kafka 4.1 and later), from their coordinators.

Members are assigned tasks. A task is a number of a subtopology; its active member reads the partitions of
that number of all topics that the subtopology reads. Standby and warm-up tasks read changelogs only, and
commit nothing. Offsets are committed as by any group.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from kelpie.client.admin.asking import Asking, error_of
from kelpie.model.names import TopicPartition
from kelpie.observations import GroupState, Member
from kelpie.observations.groups import STREAMS
from kelpie.wire.api.streams_group_describe import StreamsGroupDescribeRequest
from kelpie.wire.structs import TaskIds

SourceTopics = Mapping[str, Sequence[str]]
"""By subtopology: the topics that it reads."""


async def describe_streams_groups(asking: Asking, node: int, groups: Sequence[str]) -> None:
    """Adds one GroupState for each group, or an Unasked row."""
    source = asking.source(node)
    why = f"{source} did not describe it."
    with asking.noting("group", groups, source, why):
        request = StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
        response, at = await asking.ask(node, request)
        for group in asking.answered(groups, response.groups, attrgetter("group_id"), source, why):
            sources = _sources(group)
            asking.seen.states.append(
                GroupState(
                    group.group_id,
                    group.group_state,
                    STREAMS,
                    STREAMS,
                    epoch=group.group_epoch,
                    members=tuple(_member(member, sources) for member in group.members),
                    coordinator=node,
                    error=error_of(group.error_code),
                    at=at,
                    source=source,
                )
            )


def _sources(group: Any) -> SourceTopics:
    subtopologies = (group.topology.subtopologies if group.topology is not None else None) or ()
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }


def _member(member: Any, sources: SourceTopics) -> Member:
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
        tuple(sorted({topic for topics in sources.values() for topic in topics})),
        _partitions(member.assignment.active_tasks, sources),
        epoch=member.member_epoch,
        target=_partitions(member.target_assignment.active_tasks, sources),
    )


def _partitions(tasks: Iterable[TaskIds], sources: SourceTopics) -> tuple[TopicPartition, ...]:
    """A topic may have fewer partitions than its subtopology has tasks: such names are of no partition."""
    return tuple(
        TopicPartition(topic, number)
        for task in tasks
        for topic in sources.get(task.subtopology_id, ())
        for number in task.partitions
    )
