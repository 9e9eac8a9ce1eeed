"""Changes to groups at their coordinators: committing offsets as no member, deleting groups and offsets.

Such commits (generation −1, no member id) are what Kafka takes from consumers that assign partitions to
themselves. A group that has members refuses them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kelpie.client.admin.asking import Asking, chunks, error_of
from kelpie.client.admin.rows import PartitionChange
from kelpie.client.client_errors import ClientError, Unsupported
from kelpie.model.names import TopicPartition
from kelpie.observations import CoordinatorAnswer
from kelpie.questions.offset_commit import AskToCommit
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


class OffsetToCommit(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


async def commit_offsets(
    asking: Asking, node: int, group: str, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> list[PartitionChange]:
    """Commits as no member of the group. If the coordinator does not answer, the rest is not tried."""
    changes: list[PartitionChange] = []
    source = asking.source(node)
    for names in chunks(list(offsets), _OFFSETS_PER_COMMIT):
        part = {name: (offsets[name].offset, _epoch(offsets[name]), offsets[name].metadata) for name in names}
        question = AskToCommit(group, -1, "", None, part)
        try:
            version = asking.versions[node].pick_for(question, _OLDEST_COMMIT)
            response, at = await asking.ask(node, question.request(version), version, _LIMIT_S)
        except ClientError as error:
            _not_changed(asking, "group", [group], error, source)
            break
        answer = question.answer(response, version)
        changes += [
            PartitionChange(*name, error, group=group, at=at, source=source) for name, error in answer.items()
        ]
    return changes


async def delete_groups(asking: Asking, node: int, groups: Sequence[str]) -> None:
    """Deletes groups without members, with their offsets. Adds a CoordinatorAnswer for each."""
    source = asking.source(node)
    try:
        response, at = await asking.ask(node, DeleteGroupsRequest(groups_names=list(groups)))
    except ClientError as error:
        _not_changed(asking, "group", groups, error, source)
        return
    asking.seen.answers += [
        CoordinatorAnswer(
            result.group_id, "DeleteGroups", error_of(result.error_code), node, at=at, source=source
        )
        for result in response.results
    ]


async def delete_offsets(
    asking: Asking, node: int, group: str, partitions: Sequence[TopicPartition]
) -> list[PartitionChange]:
    """Deletes offsets of partitions that no member of the group subscribes to (Kafka 2.4 and later)."""
    source = asking.source(node)
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
        )
        for topic, numbers in by_topic(partitions).items()
    ]
    try:
        response, at = await asking.ask(node, OffsetDeleteRequest(group_id=group, topics=topics))
    except ClientError as error:
        _not_changed(asking, "group", [group], error, source)
        return []
    if response.error_code:
        code = error_of(response.error_code)
        asking.seen.answers.append(CoordinatorAnswer(group, "OffsetDelete", code, node, at=at, source=source))
    return [
        PartitionChange(topic.name, row.partition_index, row.error_code, "", group, at, source)
        for topic in response.topics
        for row in topic.partitions
    ]


def _epoch(offset: OffsetToCommit) -> int | None:
    return offset.leader_epoch if offset.leader_epoch >= 0 else None


def _not_changed(asking: Asking, kind: str, names: Sequence[str], error: ClientError, source: str) -> None:
    asking.unasked(kind, names, error.reason, source)
    if isinstance(error, Unsupported):
        asking.lasting.update(names)
