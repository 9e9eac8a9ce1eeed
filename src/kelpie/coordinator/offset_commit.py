"""OffsetCommit and TxnOffsetCommit: which senders may commit, and the records that are written.

| sender         | Empty             | PreparingRebalance | CompletingRebalance   | Stable            | Dead |
|----------------|-------------------|--------------------|-----------------------|-------------------|------|
| a member       | UNKNOWN_MEMBER_ID | accepted           | REBALANCE_IN_PROGRESS | accepted          | 15   |
| no member      | accepted          | UNKNOWN_MEMBER_ID  | UNKNOWN_MEMBER_ID     | UNKNOWN_MEMBER_ID | 15   |

"No member" gives neither member id nor generation: a consumer that assigns its partitions itself, or an
administrator. Such a commit creates the group if there is none. Commits in a transaction do not check the
state, and check the member only if one is given (KIP-447).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kelpie.coordinator import offset_fetch
from kelpie.coordinator.classic.group import create_group
from kelpie.coordinator.event import ShardEvent
from kelpie.coordinator.group import Group
from kelpie.coordinator.notes import NoteKind
from kelpie.coordinator.offsets import OffsetAndMetadata, offset_record
from kelpie.coordinator.shard_state import ShardState
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
)
from kelpie.wire.structs import PartitionResult, TopicResults

Commits = dict[TopicPartition, OffsetAndMetadata]
ErrorOf = Callable[[str | None], ErrorCode]
"""The error for a partition, by the metadata of its offset."""


def commit(shard: ShardState, event: ShardEvent, to: Any, request: OffsetCommitRequest, version: int) -> None:
    group = shard.groups.get(request.group_id)
    error = _missing_group(request, version, event) if group is None else group.commit_refusal(request, event)
    if error is not None:
        event.answer(to, _response(request, lambda _: error))
        return
    if group is not None:
        group.commit_accepted(request.member_id, event)
    commits = {
        TopicPartition(topic.name, part.partition_index): OffsetAndMetadata(
            part.committed_offset,
            part.committed_leader_epoch,
            _metadata(part, event),
            _commit_timestamp(part, event),
            _expire_timestamp(part, request.retention_time_ms, event),
            topic.topic_id,
        )
        for topic in request.topics
        for part in topic.partitions
        if not _is_too_large(part.committed_metadata, event)
    }
    _answer(event, to, partial(_response, request))
    _write(shard, event, request.group_id, commits)


def commit_in_transaction(
    shard: ShardState, event: ShardEvent, to: Any, request: TxnOffsetCommitRequest
) -> None:
    group = shard.groups.get(request.group_id)
    error = _transaction_refusal(group, request, event)
    if error is not None:
        event.answer(to, transaction_refused(request, error))
        return
    commits = {
        TopicPartition(topic.name, part.partition_index): OffsetAndMetadata(
            part.committed_offset, part.committed_leader_epoch, part.committed_metadata or "", event.now
        )
        for topic in request.topics
        for part in topic.partitions
        if not _is_too_large(part.committed_metadata, event)
    }
    _answer(event, to, partial(_transaction_response, request))
    producer = (request.producer_id, request.producer_epoch)
    _write(shard, event, request.group_id, commits, producer=producer)


def transaction_refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return _transaction_response(request, lambda _: error)


def _answer(event: ShardEvent, to: Any, response: Callable[[ErrorOf], Any]) -> None:
    errors = event.behaviour.commit_errors
    event.answer_when_written(
        to,
        response(lambda metadata: _metadata_error(metadata, event)),
        lambda error: response(lambda _: errors.get(error, error)),
    )


def _response(request: OffsetCommitRequest, error: ErrorOf) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=_results(topic.partitions, error)
            )
            for topic in request.topics
        ]
    )


def _transaction_response(request: TxnOffsetCommitRequest, error: ErrorOf) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TopicResults(name=topic.name, partitions=_results(topic.partitions, error))
            for topic in request.topics
        ],
    )


def _results(
    partitions: Sequence[OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition], error: ErrorOf
) -> list[PartitionResult]:
    return [
        PartitionResult(partition_index=part.partition_index, error_code=error(part.committed_metadata))
        for part in partitions
    ]


def _missing_group(request: OffsetCommitRequest, version: int, event: ShardEvent) -> ErrorCode | None:
    """A commit without a generation creates the group; a member's is refused."""
    if request.generation_id_or_member_epoch < 0:
        return None
    named = version >= 9 and event.behaviour.commit_names_missing_group
    return ErrorCode.GROUP_ID_NOT_FOUND if named else ErrorCode.ILLEGAL_GENERATION


def _transaction_refusal(
    group: Group | None, request: TxnOffsetCommitRequest, event: ShardEvent
) -> ErrorCode | None:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return None if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
    return group.transaction_refusal(request, event)


def _write(
    shard: ShardState,
    event: ShardEvent,
    group_id: str,
    commits: Commits,
    *,
    producer: tuple[int, int] | None = None,
) -> None:
    created = None
    if group_id not in shard.groups and event.behaviour.simple_groups:
        created = create_group(shard, group_id, event.now)
        event.note(NoteKind.SIMPLE_GROUP_CREATED, group=group_id)
    if not commits:
        return  # The group exists all the same, in memory.
    partitions, transactional = tuple(commits), producer is not None
    shard.offsets.begin(group_id, partitions, transactional)

    def written(event: ShardEvent) -> None:
        for partition in partitions:
            if commits[partition].metadata is None:
                shard.offsets.without_metadata.add((group_id, partition))
        offset_fetch.release(shard, event, group_id)

    def failed(error: ErrorCode, event: ShardEvent) -> None:
        if error is ErrorCode.REQUEST_TIMED_OUT:
            return  # It is still on its way, and may arrive.
        shard.offsets.settle(group_id, partitions, transactional)
        unused = created is not None and created.is_simple and not shard.offsets.has_any(group_id)
        if unused and shard.groups.get(group_id) is created:
            del shard.groups[group_id]
        offset_fetch.release(shard, event, group_id)

    version = event.behaviour.offset_value_version
    records = [offset_record(group_id, partition, each, version) for partition, each in commits.items()]
    sequence = event.behaviour.commit_sequence
    event.write(records, written=written, failed=failed, producer=producer, sequence=sequence)


def _metadata(partition: OffsetCommitRequestPartition, event: ShardEvent) -> str | None:
    given = partition.committed_metadata
    return given if given is not None or event.behaviour.keeps_null_metadata else ""


def _metadata_error(metadata: str | None, event: ShardEvent) -> ErrorCode:
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if _is_too_large(metadata, event) else ErrorCode.NONE


def _is_too_large(metadata: str | None, event: ShardEvent) -> bool:
    if metadata is None:
        return False
    # String.length() of Java counts UTF-16 code units.
    length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return length > event.config.offset_metadata_max_bytes


def _commit_timestamp(partition: OffsetCommitRequestPartition, event: ShardEvent) -> Instant:
    if partition.commit_timestamp == -1 or event.behaviour.every_offset_expires:
        return event.now
    return partition.commit_timestamp


def _expire_timestamp(
    partition: OffsetCommitRequestPartition, retention_ms: int, event: ShardEvent
) -> Instant | None:
    """A client that names a retention (versions 2 to 4) gets it. Before KIP-211 every offset has an end."""
    if not event.behaviour.every_offset_expires:
        return None if retention_ms == -1 else event.now + retention_ms
    begin = event.now if partition.commit_timestamp == -1 else partition.commit_timestamp
    return begin + (event.config.offsets_retention_ms if retention_ms == -1 else retention_ms)
