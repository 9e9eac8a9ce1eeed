"""How groups and offsets are deleted: DeleteGroups, OffsetDelete, deleted topics, and age (KIP-211).

An offset expires when its own end has come, if its record names one, or else when the retention has passed
since its base: for an Empty group the time it became so (its commit, if that is not known), for a group that
only commits the commit. In a Stable group of consumers only topics without a subscriber expire, from the
commit on. An offset in a transaction stays. An Empty group without any offset is deleted too.

Groups leave memory when their tombstones are appended, as in Kafka: the next request finds no group. If the
tombstones cannot be written, the group comes back.
"""

from collections.abc import Iterable
from typing import Any

from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.group import Group
from kelpie.coordinator.notes import NoteKind
from kelpie.coordinator.offsets import OffsetAndMetadata, offset_tombstone
from kelpie.coordinator.outcome import CoordinatorRecord
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.delete_groups import DeletableGroupResult
from kelpie.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kelpie.wire.structs import PartitionResult, TopicResults


def delete_group(shard: ShardState, event: ShardEvent, to: Any, group_id: str) -> None:
    group = shard.groups.get(group_id)
    if group is None or group.is_dead:
        event.answer(to, _deleted(group_id, ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if not group.is_empty:
        event.answer(to, _deleted(group_id, ErrorCode.NON_EMPTY_GROUP))
        return
    records = [offset_tombstone(group_id, partition) for partition in shard.offsets.all_of(group_id)]
    event.note(NoteKind.GROUP_DELETED, group=group_id, offsets=len(records))
    records += _take_out(shard, group, event)
    errors = event.behaviour.group_errors
    event.answer_when_written(
        to,
        _deleted(group_id, ErrorCode.NONE),
        lambda error: _deleted(group_id, errors.get(error, error)),
    )
    if records:
        event.write(records, failed=lambda error, _event: _put_back(shard, [group], error))


def delete_offsets(shard: ShardState, event: ShardEvent, to: Any, request: OffsetDeleteRequest) -> None:
    error = _offsets_refusal(shard, request.group_id)
    if error is not ErrorCode.NONE:
        event.answer(to, OffsetDeleteResponse(error_code=error, topics=[]))
        return
    group = shard.groups[request.group_id]
    known = set(shard.offsets.all_of(group.group_id))
    removed: list[TopicPartition] = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        asked = [TopicPartition(topic.name, each.partition_index) for each in topic.partitions]
        removed += [] if subscribed else [partition for partition in asked if partition in known]
        results = [PartitionResult(partition_index=each.partition, error_code=code) for each in asked]
        topics.append(TopicResults(name=topic.name, partitions=results))
    errors = event.behaviour.group_errors
    event.answer_when_written(
        to,
        OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics),
        lambda error: OffsetDeleteResponse(error_code=errors.get(error, error), topics=[]),
    )
    _remove(shard, event, {group.group_id: removed})


def _offsets_refusal(shard: ShardState, group_id: str) -> ErrorCode:
    group = shard.groups.get(group_id)
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None or group.is_dead:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return group.offset_deletion_refusal()


def topic_deleted(shard: ShardState, event: ShardEvent, topics: Iterable[str]) -> None:
    gone = frozenset(topics)
    removed = {
        group_id: [partition for partition in shard.offsets.all_of(group_id) if partition.topic in gone]
        for group_id in shard.offsets.groups()
    }
    _remove(shard, event, removed)


def expire(shard: ShardState, event: ShardEvent) -> None:
    if event.behaviour.every_offset_expires:
        expired = {
            group_id: [
                partition
                for partition, committed in offsets.items()
                if _end_of(committed, event.config.offsets_retention_ms) < event.now
            ]
            for group_id, offsets in shard.offsets.committed.items()
        }
        _remove(shard, event, expired)
        count = sum(map(len, expired.values()))
        event.note(NoteKind.EXPIRED, offsets=count, tombstones=count)
        return
    records: list[CoordinatorRecord] = []
    taken: list[Group] = []
    offsets = 0
    for group in list(shard.groups.values()):
        expired_here = _expired(shard, group, event)
        records += [offset_tombstone(group.group_id, partition) for partition in expired_here]
        offsets += len(expired_here)
        if group.is_empty and _nothing_left(shard, group.group_id, expired_here):
            records += _take_out(shard, group, event)
            taken.append(group)
    event.note(NoteKind.EXPIRED, offsets=offsets, tombstones=len(records))
    if records:
        event.write(records, failed=lambda error, _event: _put_back(shard, taken, error))


def _expired(shard: ShardState, group: Group, event: ShardEvent) -> list[TopicPartition]:
    expired = []
    for partition, committed in shard.offsets.of(group.group_id).items():
        start = group.retention_start(committed)
        if start is None:
            continue
        end = committed.expire_timestamp
        due = event.now - start >= event.config.offsets_retention_ms if end is None else event.now >= end
        held = shard.offsets.in_transaction(group.group_id, partition)
        if due and not held and not group.is_subscribed_to(partition.topic):
            expired.append(partition)
    return expired


def _end_of(committed: OffsetAndMetadata, retention_ms: int) -> Instant:
    """Before KIP-211. A record of Kafka 0.8 does not name its end."""
    if committed.expire_timestamp is not None:
        return committed.expire_timestamp
    return committed.commit_timestamp + retention_ms


def _remove(shard: ShardState, event: ShardEvent, removed: dict[str, list[TopicPartition]]) -> None:
    """Writes tombstones; the Scala coordinator forgets the Empty groups that they leave without offsets."""
    records = [offset_tombstone(group_id, each) for group_id, parts in removed.items() for each in parts]
    taken = []
    if event.behaviour.group_goes_with_last_offset:
        for group_id, parts in removed.items():
            group = shard.groups.get(group_id)
            if group is None or not group.is_empty or not parts:
                continue
            if _nothing_left(shard, group_id, parts):
                records += _take_out(shard, group, event)
                taken.append(group)
    if records:
        event.write(records, failed=lambda error, _event: _put_back(shard, taken, error))


def _nothing_left(shard: ShardState, group_id: str, removed: list[TopicPartition]) -> bool:
    if shard.offsets.has_transactions(group_id) or shard.offsets.any_on_the_way(group_id):
        return False
    return len(shard.offsets.of(group_id)) == len(removed)


def _take_out(shard: ShardState, group: Group, event: ShardEvent) -> list[CoordinatorRecord]:
    del shard.groups[group.group_id]
    return group.dissolve(event)


def _put_back(shard: ShardState, groups: Iterable[Group], error: ErrorCode) -> None:
    if error is ErrorCode.REQUEST_TIMED_OUT:
        return  # The tombstones are in the log, and may yet count.
    for group in groups:
        shard.groups.setdefault(group.group_id, group)


def _deleted(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error)
