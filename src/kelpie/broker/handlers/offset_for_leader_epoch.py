"""OffsetForLeaderEpoch: where an epoch ended, so that a reader can tell whether its log was cut (KIP-320)."""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.fetch_service import check_epoch
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import offset_for_leader_epoch as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.OffsetForLeaderEpochRequest = call.message
    call.answer(
        wire.OffsetForLeaderEpochResponse(
            topics=[
                wire.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_find(broker, topic.topic, part) for part in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _find(broker: Broker, topic: str, asked: wire.OffsetForLeaderPartition) -> wire.EpochEndOffset:
    replica = broker.led(TopicPartition(topic, asked.partition))
    if not isinstance(replica, Replica):
        return wire.EpochEndOffset(error_code=replica, partition=asked.partition)
    fenced = check_epoch(replica, asked.current_leader_epoch)
    if fenced is not None:
        return wire.EpochEndOffset(error_code=fenced, partition=asked.partition)
    end = replica.log.end_offset_for_epoch(asked.leader_epoch)
    return wire.EpochEndOffset(
        error_code=ErrorCode.NONE,
        partition=asked.partition,
        leader_epoch=end.epoch,
        end_offset=end.end_offset,
    )
