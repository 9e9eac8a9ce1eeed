"""OffsetForLeaderEpoch: where an epoch ended, so that a reader can tell whether its log was cut (KIP-320)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.fetch_service import check_epoch
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: OffsetForLeaderEpochRequest = call.message
    call.answer(
        OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_find(broker, topic.topic, part) for part in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _find(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    replica = broker.led(TopicPartition(topic, asked.partition))
    if not isinstance(replica, Replica):
        return EpochEndOffset(error_code=replica, partition=asked.partition)
    fenced = check_epoch(replica, asked.current_leader_epoch)
    if fenced is not None:
        return EpochEndOffset(error_code=fenced, partition=asked.partition)
    end = replica.log.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(
        error_code=ErrorCode.NONE,
        partition=asked.partition,
        leader_epoch=end.epoch,
        end_offset=end.end_offset,
    )
