"""OffsetFetch: what a group has committed. The shapes of its versions meet here.

Versions 0 to 7 ask for one group, 8 and later for many, which may live in many shards: each answers an
OffsetFetchResponseGroup, whatever the version, and `response_of` puts them together.

With `require_stable` (KIP-447) an offset that a transaction is about to change is UNSTABLE_OFFSET_COMMIT.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.offsets import OffsetAndMetadata
from kelpie.coordinator.shard_state import ShardState, WaitingFetch
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api import offset_fetch as wire
from kelpie.wire.schema import NO_UUID

_ABSENT = OffsetAndMetadata(offset=-1, leader_epoch=-1, metadata="", commit_timestamp=-1)


def fetch(
    shard: ShardState, event: ShardEvent, to: Any, group: wire.OffsetFetchRequestGroup, require_stable: bool
) -> None:
    waits = require_stable and not event.behaviour.unreplicated_is_unstable
    if waits and shard.offsets.any_on_the_way(group.group_id):
        deadline = event.now + event.config.offsets_commit_timeout_ms
        shard.fetches.append(WaitingFetch(to, group, deadline))
        _set_timer(shard, event, group.group_id)
        return
    event.answer(to, offsets_of(shard, group.group_id, group.topics, require_stable))


def release(shard: ShardState, event: ShardEvent, group_id: str) -> None:
    """A commit has been written. Fetches that waited for it are answered, unless there is another."""
    if shard.offsets.any_on_the_way(group_id):
        return
    for each in _waiting(shard, group_id):
        shard.fetches.remove(each)
        event.answer(each.to, offsets_of(shard, group_id, each.group.topics, require_stable=True))
    _set_timer(shard, event, group_id)


def fetch_timer(shard: ShardState, event: ShardEvent, group_id: str) -> None:
    """The wait is over. Kafka answers NOT_COORDINATOR, which all clients can handle."""
    for each in _waiting(shard, group_id):
        if event.now >= each.deadline:
            shard.fetches.remove(each)
            event.answer(each.to, refused(each.group, ErrorCode.NOT_COORDINATOR, version=8))
    _set_timer(shard, event, group_id)


def _waiting(shard: ShardState, group_id: str) -> list[WaitingFetch]:
    return [each for each in shard.fetches if each.group.group_id == group_id]


def _set_timer(shard: ShardState, event: ShardEvent, group_id: str) -> None:
    first = min((each.deadline for each in _waiting(shard, group_id)), default=None)
    event.wake(("fetch", group_id), first)


def offsets_of(
    shard: ShardState,
    group_id: str,
    topics: Sequence[wire.OffsetFetchRequestTopics] | None,
    require_stable: bool,
) -> wire.OffsetFetchResponseGroup:
    """The offsets of these topics, or of all. What is not there is offset -1, and no error."""
    gone = shard.behaviour.simple_groups and not _exists(shard, group_id)
    committed_offsets = {} if gone else shard.offsets.of(group_id)
    if topics is None:
        asked: dict[tuple[str, bytes], list[int]] = {}
        for partition in committed_offsets:
            asked.setdefault((partition.topic, NO_UUID), []).append(partition.partition)
        wanted = list(asked.items())
    else:
        wanted = [((topic.name, topic.topic_id), topic.partition_indexes) for topic in topics]
    answered = []
    for (name, topic_id), indexes in wanted:
        partitions = []
        for index in indexes:
            partition = TopicPartition(name, index)
            unstable = require_stable and not gone and _is_unstable(shard, group_id, partition)
            committed = _ABSENT if unstable else committed_offsets.get(partition, _ABSENT)
            error = ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else ErrorCode.NONE
            if (group_id, partition) in shard.offsets.without_metadata:
                committed = replace(committed, metadata=None)
            partitions.append(_partition(index, committed, error))
        answered.append(wire.OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
    return wire.OffsetFetchResponseGroup(group_id=group_id, topics=answered)


def _exists(shard: ShardState, group_id: str) -> bool:
    return group_id in shard.groups and not shard.groups[group_id].is_dead


def _is_unstable(shard: ShardState, group_id: str, partition: TopicPartition) -> bool:
    if shard.offsets.in_transaction(group_id, partition):
        return True
    return shard.behaviour.unreplicated_is_unstable and shard.offsets.is_on_the_way(group_id, partition)


def _partition(
    index: int, committed: OffsetAndMetadata, error: ErrorCode
) -> wire.OffsetFetchResponsePartitions:
    return wire.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error,
    )


def groups_asked(request: wire.OffsetFetchRequest, version: int) -> list[wire.OffsetFetchRequestGroup]:
    """The groups of a request of any version."""
    if version >= 8:
        return request.groups
    return [wire.OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)]


def refused(
    group: wire.OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> wire.OffsetFetchResponseGroup:
    """An error of the group. Versions 0 and 1 have no place for it, so every partition bears it."""
    if version >= 2:
        return wire.OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error)
    topics = [
        wire.OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[_partition(index, _ABSENT, error) for index in topic.partition_indexes],
        )
        for topic in group.topics or []
    ]
    return wire.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def response_of(groups: Sequence[wire.OffsetFetchResponseGroup], version: int) -> wire.OffsetFetchResponse:
    if version >= 8:
        return wire.OffsetFetchResponse(groups=list(groups))
    (group,) = groups
    return wire.OffsetFetchResponse(topics=group.topics, error_code=group.error_code)
