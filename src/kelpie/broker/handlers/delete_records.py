"""DeleteRecords: moves the beginning of a log. −1 means up to the high watermark.

The answer waits until the records are gone from every living replica, as they could come back otherwise.
"""

from kelpie.broker.broker import Broker
from kelpie.broker.call import Call
from kelpie.broker.deletions import Deletion
from kelpie.broker.image import INTERNAL_TOPICS
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.wire.api import delete_records as wire


def handle(broker: Broker, call: Call, now: Instant) -> None:
    request: wire.DeleteRecordsRequest = call.message
    asked = [
        (topic.name, [_begin(broker, topic.name, part) for part in topic.partitions])
        for topic in request.topics
    ]

    def finish() -> None:
        call.answer(
            wire.DeleteRecordsResponse(
                topics=[
                    wire.DeleteRecordsTopicResult(
                        name=name, partitions=[_result(deletion) for deletion in deletions]
                    )
                    for name, deletions in asked
                ]
            )
        )

    everything = [deletion for _, deletions in asked for deletion in deletions]
    broker.deletions.wait(everything, finish, request.timeout_ms, now)


def _begin(broker: Broker, topic: str, asked: wire.DeleteRecordsPartition) -> Deletion:
    """The leader deletes at once; its followers do as soon as they fetch."""
    partition, offset = TopicPartition(topic, asked.partition_index), asked.offset

    def refused(code: ErrorCode) -> Deletion:
        return Deletion(partition, offset, code, done=True)

    if partition.topic in INTERNAL_TOPICS:
        return refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    replica = broker.led(partition)
    if not isinstance(replica, Replica):
        return refused(replica)
    if not broker.log_config(partition).deletes:
        return refused(ErrorCode.POLICY_VIOLATION)
    if offset == -1:
        offset = replica.high_watermark
    if not 0 <= offset <= replica.high_watermark:
        return refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    replica.log.delete_before(offset)
    broker.links.appended(partition)
    return Deletion(partition, offset)


def _result(deletion: Deletion) -> wire.DeleteRecordsPartitionResult:
    return wire.DeleteRecordsPartitionResult(
        partition_index=deletion.partition.partition,
        low_watermark=deletion.low_watermark,
        error_code=deletion.error,
    )
