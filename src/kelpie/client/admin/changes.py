"""Changes to groups at their coordinators: committing offsets as no member, deleting groups and offsets.

Such commits (generation −1, no member id) are what Kafka takes from consumers that assign partitions to
themselves. A group that has members refuses them.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter

from kelpie.client.admin.asking import Asking, chunks, error_of
from kelpie.client.admin.rows import PartitionChange
from kelpie.model.names import TopicPartition
from kelpie.observations import CoordinatorAnswer
from kelpie.questions.offset_commit import AskToCommit, OffsetToCommit
from kelpie.questions.question import by_topic
from kelpie.wire.api.delete_groups import DeleteGroupsRequest
from kelpie.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

_OFFSETS_PER_COMMIT = 5_000
_LIMIT_S = 10.0
"""A coordinator may wait five seconds for a follower that has just died before it says so."""
_OLDEST_COMMIT = 2
"""Older versions carry the time of the commit."""


async def commit_offsets(
    asking: Asking, node: int, group: str, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> None:
    """Commits as no member of the group. If the coordinator does not answer, the rest is not tried."""
    source = asking.source(node)
    with asking.noting("group", [group], source):
        for names in chunks(list(offsets), _OFFSETS_PER_COMMIT):
            question = AskToCommit(group, -1, "", None, {name: offsets[name] for name in names})
            version = asking.versions[node].pick_for(question, _OLDEST_COMMIT)
            response, at = await asking.ask(node, question.request(version), version, _LIMIT_S)
            asking.changes += [
                PartitionChange(*name, error, group=group, at=at, source=source)
                for name, error in question.answer(response, version).items()
            ]


async def delete_groups(asking: Asking, node: int, groups: Sequence[str]) -> None:
    """Deletes groups without members, with their offsets. Adds a CoordinatorAnswer for each."""
    source = asking.source(node)
    why = f"{source} did not say whether it is deleted."
    with asking.noting("group", groups, source):
        response, at = await asking.ask(node, DeleteGroupsRequest(groups_names=list(groups)))
        asking.changes += [
            CoordinatorAnswer(
                result.group_id, "DeleteGroups", error_of(result.error_code), node, at=at, source=source
            )
            for result in asking.answered(groups, response.results, attrgetter("group_id"), source, why)
        ]


async def delete_offsets(asking: Asking, node: int, group: str, partitions: Sequence[TopicPartition]) -> None:
    """Deletes offsets of partitions that no member of the group subscribes to (Kafka 2.4 and later)."""
    source = asking.source(node)
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
        )
        for topic, numbers in by_topic(partitions).items()
    ]
    with asking.noting("group", [group], source):
        response, at = await asking.ask(node, OffsetDeleteRequest(group_id=group, topics=topics))
        if response.error_code:
            code = error_of(response.error_code)
            answer = CoordinatorAnswer(group, "OffsetDelete", code, node, at=at, source=source)
            asking.seen.answers.append(answer)
        asking.changes += [
            PartitionChange(topic.name, row.partition_index, row.error_code, "", group, at, source)
            for topic in response.topics
            for row in topic.partitions
        ]
