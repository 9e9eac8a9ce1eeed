"""OffsetCommit and TxnOffsetCommit: who may store an offset, and as which record.

| who            | Empty             | PreparingRebalance | CompletingRebalance   | Stable            | Dead |
|----------------|-------------------|--------------------|-----------------------|-------------------|------|
| a member       | UNKNOWN_MEMBER_ID | accepted           | REBALANCE_IN_PROGRESS | accepted          | 15   |
| nobody         | accepted          | UNKNOWN_MEMBER_ID  | UNKNOWN_MEMBER_ID     | UNKNOWN_MEMBER_ID | 15   |

"Nobody" gives neither member nor generation: a consumer that assigns its partitions itself, or an
administrator. Such a commit creates the group if there is none. Transactions do not look at the state, and
look at the member only if one is given (KIP-447).
"""

from typing import Any

from kelpie.coordinator import fetching
from kelpie.coordinator.classic_group import ClassicGroup
from kelpie.coordinator.membership import check_member
from kelpie.coordinator.notes import What
from kelpie.coordinator.offsets import CommittedOffset, offset_record
from kelpie.coordinator.rebalance import renew
from kelpie.coordinator.shard_state import ShardState
from kelpie.coordinator.state import State
from kelpie.coordinator.turn import Turn
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Commits = dict[TopicPartition, CommittedOffset]


def commit(shard: ShardState, turn: Turn, to: Any, request: OffsetCommitRequest, version: int) -> None:
    group = shard.groups.get(request.group_id)
    error = _refusal(group, request, version, turn)
    if error is not None:
        turn.answer(to, refused(request, error))
        return
    if group is not None and group.state in (State.STABLE, State.PREPARING_REBALANCE):
        renew(group, group.members[request.member_id], turn)
    commits: Commits = {}
    topics = []
    for topic in request.topics:
        results = []
        for each in topic.partitions:
            too_large = _is_too_large(each.committed_metadata, turn)
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE
            results.append(
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
            if not too_large:
                commits[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    _metadata(each, turn),
                    _commit_timestamp(each, turn),
                    _expire_timestamp(each, request.retention_time_ms, turn),
                    topic.topic_id,
                )
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results))
    errors = turn.manners.commit_errors
    response = OffsetCommitResponse(topics=topics)
    turn.answer_when_written(to, response, lambda error: refused(request, errors.get(error, error)))
    _write(shard, turn, request.group_id, commits)


def commit_in_transaction(shard: ShardState, turn: Turn, to: Any, request: TxnOffsetCommitRequest) -> None:
    group = shard.groups.get(request.group_id)
    error = _transaction_refusal(group, request, turn)
    if error is not None:
        turn.answer(to, transaction_refused(request, error))
        return
    commits: Commits = {}
    topics = []
    for topic in request.topics:
        results = []
        for each in topic.partitions:
            too_large = _is_too_large(each.committed_metadata, turn)
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE
            results.append(
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
            if not too_large:
                commits[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    turn.now,
                )
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
    errors = turn.manners.commit_errors
    turn.answer_when_written(
        to,
        TxnOffsetCommitResponse(throttle_time_ms=0, topics=topics),
        lambda error: transaction_refused(request, errors.get(error, error)),
    )
    producer = (request.producer_id, request.producer_epoch)
    _write(shard, turn, request.group_id, commits, producer=producer)


def refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def transaction_refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _refusal(
    group: ClassicGroup | None, request: OffsetCommitRequest, version: int, turn: Turn
) -> ErrorCode | None:
    manners = turn.manners
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return None
        named = version >= 9 and manners.commit_names_missing_group
        return ErrorCode.GROUP_ID_NOT_FOUND if named else ErrorCode.ILLEGAL_GENERATION
    if group.state is State.DEAD:
        return manners.dead_error
    completing = group.state is State.COMPLETING_REBALANCE
    if completing and manners.state_before_member:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if generation < 0 and group.state is State.EMPTY:
        return None
    error = check_member(group, request.member_id, request.group_instance_id, turn, "offset-commit")
    if error is not None:
        return error
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # It knows the new generation, so it has the answer to its join. It is to sync first.
    return ErrorCode.REBALANCE_IN_PROGRESS if completing else None


def _transaction_refusal(
    group: ClassicGroup | None, request: TxnOffsetCommitRequest, turn: Turn
) -> ErrorCode | None:
    manners = turn.manners
    generation, member_id, instance = request.generation_id, request.member_id, request.group_instance_id
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return None if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if group.state is State.DEAD:
        return manners.dead_error
    if manners.transaction_checks_what_is_given:
        fenced = instance is not None and group.static.get(instance, member_id) != member_id
        if fenced:
            return ErrorCode.FENCED_INSTANCE_ID
        if member_id and member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.ILLEGAL_GENERATION if generation not in (-1, group.generation) else None
    if generation < 0 and group.state is State.EMPTY:
        return None
    if generation < 0 and not member_id and instance is None:
        return None
    error = check_member(group, member_id, instance, turn, "txn-offset-commit")
    if error is None and generation != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    return error


def _write(
    shard: ShardState,
    turn: Turn,
    group_id: str,
    commits: Commits,
    *,
    producer: tuple[int, int] | None = None,
) -> None:
    created = None
    if group_id not in shard.groups and turn.manners.simple_groups:
        created = shard.new_group(group_id, turn)
        turn.note(What.SIMPLE_GROUP_CREATED, group=group_id)
    if not commits:
        return  # The group is there all the same, in memory.
    partitions, transactional = tuple(commits), producer is not None
    shard.offsets.begin(group_id, partitions, transactional)

    def written(turn: Turn) -> None:
        for partition in partitions:
            if commits[partition].metadata is None:
                shard.offsets.without_metadata.add((group_id, partition))
        fetching.release(shard, turn, group_id)

    def failed(error: ErrorCode, turn: Turn) -> None:
        if error is ErrorCode.REQUEST_TIMED_OUT:
            return  # It is still on its way, and may arrive.
        shard.offsets.settle(group_id, partitions, transactional)
        unused = created is not None and created.is_simple and not shard.offsets.has_any(group_id)
        if unused and shard.groups.get(group_id) is created:
            del shard.groups[group_id]
        fetching.release(shard, turn, group_id)

    version = turn.manners.offset_value_version
    records = [offset_record(group_id, partition, each, version) for partition, each in commits.items()]
    sequence = turn.manners.commit_sequence
    turn.write(records, written=written, failed=failed, producer=producer, sequence=sequence)


def _metadata(partition: OffsetCommitRequestPartition, turn: Turn) -> str | None:
    given = partition.committed_metadata
    return given if given is not None or turn.manners.keeps_null_metadata else ""


def _is_too_large(metadata: str | None, turn: Turn) -> bool:
    if metadata is None:
        return False
    # String.length() of Java counts UTF-16 code units.
    length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return length > turn.config.offset_metadata_max_bytes


def _commit_timestamp(partition: OffsetCommitRequestPartition, turn: Turn) -> Instant:
    if partition.commit_timestamp == -1 or turn.manners.every_offset_expires:
        return turn.now
    return partition.commit_timestamp


def _expire_timestamp(
    partition: OffsetCommitRequestPartition, retention_ms: int, turn: Turn
) -> Instant | None:
    """A client that names a retention (versions 2 to 4) gets it. Before KIP-211 every offset has an end."""
    if not turn.manners.every_offset_expires:
        return None if retention_ms == -1 else turn.now + retention_ms
    begin = turn.now if partition.commit_timestamp == -1 else partition.commit_timestamp
    return begin + (turn.config.offsets_retention_ms if retention_ms == -1 else retention_ms)
