"""TxnOffsetCommit: offsets within a transaction, by the group's shard; they count once the transaction
commits.

Partitions that do not exist are refused here. The others are written if the transaction's coordinator says
that the group is part of it (verification.py).
"""

from dataclasses import replace

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.shard_host import ShardHost
from kelpie.broker.tokens import Relay
from kelpie.broker.verification import verify_offsets
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: TxnOffsetCommitRequest = call.message
    known, absent = _sort(broker, request)
    asked = replace(request, topics=known)
    missing = refused(replace(request, topics=absent), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def finish(response: TxnOffsetCommitResponse) -> None:
        call.answer(_merged(missing, response))

    if not known:
        call.answer(missing)
        return
    host = broker.groups.host_for(request.group_id, named=True)
    if not isinstance(host, ShardHost):
        finish(refused(asked, host))
        return

    def verified(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            outcome = host.shard.commit_offsets_in_transaction(Relay(finish), asked, call.version, now)
            host.carry_out(outcome, now)
        else:
            finish(refused(asked, broker.groups.behaviour.commit_errors.get(error, error)))

    verify_offsets(broker, request, call.version, now, verified)


def _sort(
    broker: Broker, request: TxnOffsetCommitRequest
) -> tuple[list[TxnOffsetCommitRequestTopic], list[TxnOffsetCommitRequestTopic]]:
    """What exists, and what does not."""
    known, absent = [], []
    for topic in request.topics:
        there: list[TxnOffsetCommitRequestPartition] = []
        gone: list[TxnOffsetCommitRequestPartition] = []
        for it in topic.partitions:
            found = broker.image.partition(TopicPartition(topic.name, it.partition_index)) is not None
            (there if found else gone).append(it)
        if there:
            known.append(replace(topic, partitions=there))
        if gone:
            absent.append(replace(topic, partitions=gone))
    return known, absent


def _merged(first: TxnOffsetCommitResponse, second: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    """Kafka puts what it refused by itself in front."""
    topics = {topic.name: topic for topic in first.topics}
    for topic in second.topics:
        if topic.name in topics:
            topics[topic.name].partitions.extend(topic.partitions)
        else:
            topics[topic.name] = topic
    return TxnOffsetCommitResponse(topics=list(topics.values()))


def refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=it.partition_index, error_code=code)
                    for it in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
